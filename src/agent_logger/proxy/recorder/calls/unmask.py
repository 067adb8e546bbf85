"""The credentials of calls: put back in their places, in memory, and redacted for the call that carries them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from agent_logger.model.redaction.redactor import credentials_of
from agent_logger.proxy.head import ParsedHead
from agent_logger.proxy.recorder.calls.payload import REDACTED, restored
from agent_logger.proxy.recorder.calls.recorded_call import RequestStart
from agent_logger.proxy.recorder.calls.secrets import Secrets
from agent_logger.proxy.spool.frames import Mask, RequestHeadFrame
from agent_logger.proxy.spool.segments import SpoolFollower

MOST_SECRETS = 256
MOST_EARLIER = 64

# The values of a relay's credentials, as far as they are known.
Values = Callable[[SpoolFollower, Sequence[Mask]], Mapping[int, bytes]]
# Credentials that any relay wants to be searched for, each once.
TakeLasting = Callable[[], Sequence[bytes]]


class Unmask:
    def __init__(self, key: bytes, values: Values, take_lasting: TakeLasting, *, patterns: bool) -> None:
        self._key, self._values, self._patterns = key, values, patterns
        self._take_lasting = take_lasting
        self._secrets: OrderedDict[tuple[str, frozenset[int], int], Secrets] = OrderedDict()
        # Credentials that all relays want to be searched for, the newest last.
        self._earlier: OrderedDict[bytes, None] = OrderedDict()
        self._generation = 0  # a number that changes with these

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
        data, unknown = self.restored(relay, frame.head, frame.masked)
        head, path = ParsedHead(data), frame.path
        if b"\0" in path:  # the head has the credentials of the path, too
            path = head.target[-len(path) :] if not unknown else _visible_path(path)
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

    def secrets(self, relay: SpoolFollower, indexes: frozenset[int], *heads: ParsedHead, path: bytes = b"") -> Secrets:
        """Return the redaction for the credentials of these numbers, and for those in the heads and the path."""
        self._look_for(self._take_lasting())
        key = relay.relay, indexes, self._generation
        secrets = self._secrets.get(key)
        if secrets is None:
            own_values = self._values(relay, [Mask(0, 0, index) for index in indexes])
            values = [own_values[index] for index in indexes if index in own_values]
            for head in heads:
                fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.fields]
                values += credentials_of(fields, head.target)
            values += credentials_of([], path)
            values = [value for value in dict.fromkeys([*values, *self._earlier]) if REDACTED not in value]
            secrets = self._secrets[key] = Secrets(self._key, values, patterns=self._patterns)
            if len(self._secrets) > MOST_SECRETS:
                self._secrets.popitem(last=False)
        return secrets


def _visible_path(path: bytes) -> bytes:
    parts = path.split(b"\0")
    return REDACTED.join(part for index, part in enumerate(parts) if part or index in (0, len(parts) - 1))
