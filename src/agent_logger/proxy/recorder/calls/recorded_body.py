"""The body of one direction of a call: in memory, or in a file once it is large."""

from dataclasses import dataclass
from pathlib import Path

from agent_logger.proxy.call_state import Collected
from agent_logger.proxy.recorder.calls.known_request import RequestText
from agent_logger.proxy.recorder.calls.large import LARGE_BYTES, LargeBody
from agent_logger.proxy.recorder.calls.payload import BodyPolicy, StoredBody, store_body, store_request
from agent_logger.proxy.recorder.disk import PatientDisk

# A body up to this size is read. No provider takes much more, and the body has to be in memory.
READABLE_BYTES = 24 << 20
_FIRST_BYTES = frozenset((b"{", b"[", b"e", b"d", b":"))  # the first bytes of JSON and of event streams


@dataclass(slots=True)
class RecorderContext:
    """The things that all calls share: the installation's key, and the place of large bodies."""

    key: bytes
    folder: Path
    disk: PatientDisk


class RecordedBody:
    """A body while it arrives. `collected` has the part that is in memory."""

    unknown = 0  # credentials that could not be put back: what the bytes were is not known
    _large: LargeBody | None = None
    _decoded_bytes = 0

    def __init__(self, collected: Collected, name: str, context: RecorderContext) -> None:
        self._collected, self._name, self._context = collected, name, context
        self.pieces: list[bytes] = []  # decoded pieces of a large body that is read nevertheless

    @property
    def is_large(self) -> bool:
        return self._collected.size > LARGE_BYTES

    def spill(self, policy: BodyPolicy) -> None:
        """Move the part in memory to a file."""
        if self._large is None:
            path = self._context.folder / f"{self._name}.body"
            self._large = LargeBody(path, policy, self._context.disk, self._keep)
        self._large.add(*self._collected.take())

    def _keep(self, text: bytes) -> None:
        """Keep the text in memory too, as long as it is not too large, and begins as JSON or events do."""
        first, self._decoded_bytes = not self._decoded_bytes, self._decoded_bytes + len(text)
        if self._decoded_bytes > READABLE_BYTES:
            self.pieces = []
        elif self.pieces or (first and text.lstrip()[:1] in _FIRST_BYTES):
            self.pieces.append(text)

    @property
    def is_in_file(self) -> bool:
        return self._large is not None

    def whole(self) -> bytes:
        """Return the received body; of a body in a file, the decoded pieces that are still in memory."""
        if self._large:
            self._large.add(*self._collected.take())
            return b"".join(self.pieces)
        collected = self._collected
        if len(collected.pieces) > 1:
            collected.pieces, collected.times = [b"".join(collected.pieces)], collected.times[:1]
        return collected.pieces[0] if collected.pieces else b""

    def so_far(self) -> bytes:
        """Return the part that is in memory. The pieces and their times stay as they are."""
        return b"".join(self._collected.pieces)

    def store(self, policy: BodyPolicy, text: RequestText | None = None, *, clean: bool = False) -> StoredBody:
        """Return the body as a record has it. `text`: that of a request, which is in memory. `clean`: see
        `store_body`."""
        pieces, times = self._collected.take()
        if self._large:
            self._large.add(pieces, times)
            stored, self._large = self._large.finish(), None
            return stored
        if text:
            return store_request(b"".join(pieces), policy, text)
        return store_body(pieces, times, policy, clean=clean)

    def discard(self) -> None:
        """Drop the body: its record is in the log already."""
        self._collected.take()
        if self._large:
            stored, self._large = self._large.finish(), None
            if stored.file:
                stored.file.unlink(missing_ok=True)
