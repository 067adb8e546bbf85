"""Bodies over 8 MB: they go to a file while they come.

They are redacted in windows that overlap, so that no secret is cut in two and only a window is in memory. For a
compressed body two files are written, as it came and decoded; one of them is kept.
"""

import hmac
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_logger.model.records import Redaction
from agent_logger.model.redaction.redactor import Redactor
from agent_logger.protocols.encodings import DecodeError
from agent_logger.proxy.recorder.calls.payload import BodyPolicy, StoredBody
from agent_logger.proxy.recorder.disk import PatientDisk

LARGE_BYTES = 8 << 20
WINDOW_BYTES = 1 << 20
OVERLAP_BYTES = 128 << 10  # twice the longest thing a pattern reads on for
CONTEXT_BYTES = 1 << 10  # bytes before a window: the text before a key may show that it is none
LARGE_DECODED_BYTES = 1 << 40  # windows bound the memory, so the decoder need not


class Window:
    """Redacts a stream of pieces that never is in memory as a whole. Offsets are those in the stream."""

    def __init__(self, redactor: Redactor, place: str) -> None:
        self.redactions: list[Redaction] = []
        self._redactor, self._place = redactor, place
        self._pieces: list[bytes] = []
        self._times: list[int] = []
        self._size = 0
        self._context = b""
        self._base = 0  # offset of the first piece

    def feed(self, piece: bytes, ns: int) -> list[tuple[bytes, int]]:
        """Take a piece. Returns what may be kept by now, in pieces as they came; the rest of one that was cut has time
        -1."""
        self._pieces.append(piece)
        self._times.append(ns)
        self._size += len(piece)
        return self._redact(self._size - OVERLAP_BYTES) if self._size >= WINDOW_BYTES else []

    def finish(self) -> list[tuple[bytes, int]]:
        return self._redact(self._size)

    def _redact(self, cut: int) -> list[tuple[bytes, int]]:
        while True:
            ready, times, rest, rest_times = _split(self._pieces, self._times, cut)
            redacted = self._redactor.redact_chunks([self._context, *ready, *rest], self._place)
            edge = len(self._context) + cut
            across = next(
                (
                    redaction
                    for redaction in redacted.redactions
                    if redaction.offset < edge < redaction.offset + redaction.length
                ),
                None,
            )
            if across is None:
                break
            start = across.offset - len(self._context)
            cut = start if start > 0 else self._size  # longer than a window: it ends with it
        self._list(redacted.redactions, cut)
        self._context = (self._context + b"".join(ready))[-CONTEXT_BYTES:]
        self._pieces, self._times = rest, rest_times
        self._size -= cut
        self._base += cut
        return list(zip(redacted.data[1 : len(ready) + 1], times, strict=True))

    def _list(self, redactions: Iterable[Redaction], cut: int) -> None:
        before = len(self._context)
        for redaction in redactions:
            start, end = max(redaction.offset - before, 0), redaction.offset + redaction.length - before
            if start < end and start < cut:
                self.redactions.append(replace(redaction, offset=self._base + start, length=end - start))


class SecretSearch:
    """A search for secrets in a stream of pieces. Only a window is in memory."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._window = bytearray()
        self._has_secret = False

    def feed(self, piece: bytes) -> None:
        if self._has_secret:
            return
        self._window += piece
        if len(self._window) >= WINDOW_BYTES:
            self._has_secret = self._redactor.finds(bytes(self._window))
            del self._window[:-OVERLAP_BYTES]

    def finish(self) -> bool:
        self._has_secret = self._has_secret or self._redactor.finds(bytes(self._window))
        return self._has_secret


def _split(
    pieces: Sequence[bytes], times: Sequence[int], cut: int
) -> tuple[list[bytes], list[int], list[bytes], list[int]]:
    at = 0
    for index, piece in enumerate(pieces):
        if at + len(piece) > cut:
            inside = cut - at
            before, after = ([piece[:inside]], -1) if inside else ([], times[index])
            return (
                [*pieces[:index], *before],
                list(times[: index + len(before)]),
                [piece[inside:], *pieces[index + 1 :]],
                [after, *times[index + 1 :]],
            )
        at += len(piece)
    return list(pieces), list(times), [], []


class _File:
    """A file of pieces, and the lengths of the chunks that they make."""

    def __init__(self, path: Path, disk: PatientDisk) -> None:
        self._held, self._disk = disk.create(path), disk
        self.path, self.size = path, 0
        self.sizes: list[int] = []
        self.starts: list[int] = []

    def add(self, pieces: Iterable[tuple[bytes, int]]) -> None:
        data: list[bytes] = []
        for piece, ns in pieces:
            data.append(piece)
            if ns >= 0 or not self.sizes:
                self.sizes.append(0)
                self.starts.append(max(ns, 0))
            self.sizes[-1] += len(piece)
        joined = b"".join(data)
        if joined:
            self._disk.write(self._held, joined)
        self.size += len(joined)

    def close(self, *, remove: bool = False) -> None:
        self._held.close()
        if remove:
            os.unlink(self.path)


class LargeBody:
    """A body on its way to a file. `path` is a name that nobody else uses."""

    def __init__(self, path: Path, how: BodyPolicy, disk: PatientDisk, also: Callable[[bytes], None]) -> None:
        self._how, self._also = how, also  # gets the text, its encoding undone
        self._hmac = hmac.new(how.key, digestmod="sha256")
        self._size = 0
        self._window = Window(how.redactor, how.place)
        self._undo = how.decoder(LARGE_DECODED_BYTES)
        self._raw: _File | None = _File(path.with_suffix(".raw"), disk) if self._undo else None
        self._stored_file = _File(path, disk)
        self._ended = False
        self._before = b""

    def add(self, pieces: Iterable[bytes], times: Iterable[int]) -> None:
        for piece, ns in zip(pieces, times, strict=True):
            self._hmac.update(piece)
            self._size += len(piece)
            text = piece
            if self._raw:
                self._raw.add([(piece, ns)])
                text = self._decoded(piece)
            self._also(text)
            self._look(text)
            self._stored_file.add(self._window.feed(text, ns))

    def finish(self) -> StoredBody:
        self._stored_file.add(self._window.finish())
        file, recoded = self._stored_file, False
        if self._raw:
            recoded = bool(self._window.redactions)
            file, other = (self._stored_file, self._raw) if recoded else (self._raw, self._stored_file)
            other.close(remove=True)
        file.close()
        return StoredBody(
            text=b"",
            bytes=self._size,
            hmac="v1:" + self._hmac.hexdigest(),
            starts=file.starts,
            sizes=file.sizes if self._how.stream else None,
            file=file.path,
            file_bytes=file.size,
            recoded=recoded,
            redactions=tuple(self._window.redactions),
            stream_ended=self._ended if self._how.stream and self._how.end else None,
        )

    def _decoded(self, piece: bytes) -> bytes:
        if not self._undo:
            return b""
        try:
            return self._undo.feed(piece)
        except DecodeError as error:
            self._undo = None
            return error.decoded

    def _look(self, text: bytes) -> None:
        if self._how.end and not self._ended:
            joined = self._before + text
            # Not at the first byte of what is only a piece: a line need not begin there.
            self._ended = self._how.end.search(joined, 1 if self._before else 0) is not None
            self._before = joined[-256:]
