"""Putting credentials back in their places, in memory, and redacting for whoever carries them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from agent_logger.capture.proxy.recorder.heads import Secrets, cut_request_line
from agent_logger.capture.proxy.recorder.pair import Asked
from agent_logger.capture.proxy.recorder.payload import REDACTED, restored
from agent_logger.capture.proxy.spool.frames import Mask, RequestHead
from agent_logger.capture.proxy.spool.segments import Follower
from agent_logger.redact import credentials_of
from agent_logger.wire.call import field_of, head_lines

MOST_SECRETS = 256

Values = Callable[
    [Follower, Sequence[Mask]], Mapping[int, bytes]
]  # of a relay's credentials, as far as known


class Unmask:
    def __init__(self, key: bytes, values: Values, *, patterns: bool) -> None:
        self._key, self._values, self._patterns = key, values, patterns
        self._secrets: OrderedDict[tuple[str, frozenset[int]], Secrets] = OrderedDict()

    def forget(self, relay: str) -> None:
        for key in [key for key in self._secrets if key[0] == relay]:
            del self._secrets[key]

    def restored(self, relay: Follower, data: bytes, masks: Sequence[Mask]) -> tuple[bytes, int]:
        return restored(data, masks, self._values(relay, masks)) if masks else (data, 0)

    def asked(self, relay: Follower, frame: RequestHead) -> Asked:
        head, unknown = self.restored(relay, frame.head, frame.masked)
        path = frame.path
        if b"\0" in path:  # its credentials stand in the head, too
            _, target, _ = cut_request_line(head_lines(head)[0])
            path = target[-len(path) :] if not unknown else _shown(path)
        return Asked(frame, head, path, unknown, frozenset(mask.credential for mask in frame.masked))

    def secrets(self, relay: Follower, indexes: frozenset[int], *heads: bytes) -> Secrets:
        key = relay.relay, indexes
        secrets = self._secrets.get(key)
        if secrets is None:
            known = self._values(relay, [Mask(0, 0, index) for index in indexes])
            values = [known[index] for index in indexes if index in known]
            for head in heads:
                start, *lines = head_lines(head)
                fields = [(it.name, it.value) for line in lines if (it := field_of(line))]
                values += credentials_of(fields, cut_request_line(start)[1])
            values = [value for value in dict.fromkeys(values) if REDACTED not in value]
            secrets = self._secrets[key] = Secrets(self._key, values, patterns=self._patterns)
            if len(self._secrets) > MOST_SECRETS:
                self._secrets.popitem(last=False)
        return secrets


def _shown(path: bytes) -> bytes:
    parts = path.split(b"\0")
    return REDACTED.join(part for index, part in enumerate(parts) if part or index in (0, len(parts) - 1))
