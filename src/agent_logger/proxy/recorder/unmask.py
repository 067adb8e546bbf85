"""The credentials of calls: put back in their places, in memory, and redacted for the call that carries them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from agent_logger.model.redaction.redactor import credentials_of
from agent_logger.proxy.call_state import field_of, head_lines
from agent_logger.proxy.recorder.heads import Secrets, cut_request_line
from agent_logger.proxy.recorder.payload import REDACTED, restored
from agent_logger.proxy.recorder.recorded_call import RequestStart
from agent_logger.proxy.spool.frames import Mask, RequestHeadFrame
from agent_logger.proxy.spool.segments import SpoolFollower

MOST_SECRETS = 256
MOST_EARLIER = 64

Values = Callable[
    [SpoolFollower, Sequence[Mask]], Mapping[int, bytes]
]  # of a relay's credentials, as far as known
TakeLasting = Callable[[], Sequence[bytes]]  # credentials that any relay asked to look for, each once


class Unmask:
    def __init__(self, key: bytes, values: Values, take_lasting: TakeLasting, *, patterns: bool) -> None:
        self._key, self._values, self._patterns = key, values, patterns
        self._take_lasting = take_lasting
        self._secrets: OrderedDict[tuple[str, frozenset[int], int], Secrets] = OrderedDict()
        self._earlier: OrderedDict[bytes, None] = (
            OrderedDict()
        )  # what all relays have asked to look for, the newest last
        self._generation = 0  # of these

    def forget(self, relay: str) -> None:
        for key in [key for key in self._secrets if key[0] == relay]:
            del self._secrets[key]

    def restored(
        self, relay: SpoolFollower, data: bytes, masks: Sequence[Mask], secrets: Secrets | None = None
    ) -> tuple[bytes, int]:
        """Put credentials back in their places. With `secrets`: only those that these will redact again."""
        if not masks:
            return data, 0
        values = self._values(relay, masks)
        if secrets:
            by_index = {mask.credential: values.get(mask.credential, b"") for mask in masks}
            values = {index: value for index, value in by_index.items() if secrets.redactor.knows(value)}
        return restored(data, masks, values)

    def request_start(self, relay: SpoolFollower, frame: RequestHeadFrame) -> RequestStart:
        head, unknown = self.restored(relay, frame.head, frame.masked)
        path = frame.path
        if b"\0" in path:  # its credentials stand in the head, too
            _, target, _ = cut_request_line(head_lines(head)[0])
            path = target[-len(path) :] if not unknown else _visible_path(path)
        self._remember(relay, frame.sought)
        return RequestStart(frame, head, path, unknown, frozenset(mask.credential for mask in frame.masked))

    def _remember(self, relay: SpoolFollower, indexes: Sequence[int]) -> None:
        """Remember credentials to be searched for: a token that was replaced is still quoted by later calls, perhaps
        through another relay."""
        if not indexes:
            return
        values = self._values(relay, [Mask(0, 0, index) for index in indexes])
        self._look_for([value for index in indexes if (value := values.get(index))])

    def _look_for(self, values: Sequence[bytes]) -> None:
        new = [value for value in values if value not in self._earlier]
        if new:
            self._earlier.update(dict.fromkeys(new))
            while len(self._earlier) > MOST_EARLIER:
                self._earlier.popitem(last=False)
            self._generation += 1

    def secrets(self, relay: SpoolFollower, indexes: frozenset[int], *heads: bytes) -> Secrets:
        self._look_for(self._take_lasting())
        key = relay.relay, indexes, self._generation
        secrets = self._secrets.get(key)
        if secrets is None:
            own_values = self._values(relay, [Mask(0, 0, index) for index in indexes])
            values = [own_values[index] for index in indexes if index in own_values]
            for head in heads:
                start, *lines = head_lines(head)
                fields = [(field.name, field.value) for line in lines if (field := field_of(line))]
                values += credentials_of(fields, cut_request_line(start)[1])
            values = [value for value in dict.fromkeys([*values, *self._earlier]) if REDACTED not in value]
            secrets = self._secrets[key] = Secrets(self._key, values, patterns=self._patterns)
            if len(self._secrets) > MOST_SECRETS:
                self._secrets.popitem(last=False)
        return secrets


def _visible_path(path: bytes) -> bytes:
    parts = path.split(b"\0")
    return REDACTED.join(part for index, part in enumerate(parts) if part or index in (0, len(parts) - 1))
