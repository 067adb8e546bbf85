"""Sealed parts: the same bytes as zstd frames that can be read one by one.

Agents send their whole history again with every request, so a log shrinks to a fiftieth and less. The file
is in zstd's seekable format: any `zstd` unpacks it, and the table at its end leads to the frame of an
offset in the plain text. Frames end with a line, so a damaged one takes no line of its neighbours along.
"""

import contextlib
import errno
import mmap
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Self

from agent_logger.errors import SourceError
from agent_logger.files.parts import open_regular
from agent_logger.protocols.lines import LONGEST_LINE

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

FRAME_BYTES = 16 << 20
PIECE_BYTES = 256 << 10
LONGEST_FRAME = FRAME_BYTES + LONGEST_LINE  # a frame ends with the line that fills it
_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}

FRAME_MAGIC = b"\x28\xb5\x2f\xfd"  # every frame begins with it, and so does a sealed file
_SKIPPABLE = struct.Struct("<II")  # magic, length of what follows
_SKIPPABLE_MAGIC = 0x184D2A5E
_ENTRY = struct.Struct("<II")  # a frame's compressed and plain length
_FOOTER = struct.Struct("<IBI")  # how many frames, a flag byte, magic
_FOOTER_MAGIC = 0x8F92EAB1


@dataclass(frozen=True, slots=True)
class SealedFrame:
    offset: int  # in the plain text
    length: int
    file_offset: int
    file_length: int


def write_sealed(plain: int, out: BinaryIO) -> None:
    """Pack the file of a descriptor; `out` is left at its end."""
    table = []
    for text in _frames_of_text(plain):
        packed = zstd.compress(text, options=_OPTIONS)
        out.write(packed)
        table.append(_ENTRY.pack(len(packed), len(text)))
    entries = b"".join(table)
    out.write(_SKIPPABLE.pack(_SKIPPABLE_MAGIC, len(entries) + _FOOTER.size))
    out.write(entries + _FOOTER.pack(len(table), 0, _FOOTER_MAGIC))


def _frames_of_text(plain: int) -> Iterator[memoryview]:
    """Yield pieces that end with a line, or with the file. Each is invalid once the next one is yielded.

    They are read into one buffer and not mapped: then a disk that fails is an `OSError`, not a SIGBUS.
    """
    file, size = FileIO(plain, closefd=False), os.fstat(plain).st_size
    offset, buffer = 0, bytearray(FRAME_BYTES)
    while offset < size:
        file.seek(offset)
        length = file.readinto(buffer)
        if not length:
            raise OSError(errno.EIO, "became shorter while it was read")
        end = length if offset + length >= size else buffer.rfind(b"\n", 0, length) + 1
        if end == 0:  # a line that is longer than a frame
            buffer = bytearray(2 * len(buffer))
            continue
        yield memoryview(buffer)[:end]
        offset += end


class SealedFile:
    """The plain text of a sealed part, frame by frame. Close it, or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_regular(path)
        table = self._read_table()
        self.cut = table is None
        self.frames = table if table is not None else self._find_frames()

    def read_frame(self, frame: SealedFrame) -> bytes:
        """Read one frame. Raises `SourceError` if it is damaged; the others can still be read."""
        with self._as_damage():
            return zstd.decompress(self._packed(frame))

    def pieces(self, frame: SealedFrame) -> Iterator[bytes]:
        """Yield the text of a frame piece by piece, as far as the caller takes them. Raises `SourceError` where it is
        damaged; its checksum comes after the last piece."""
        with self._as_damage():
            unpacker, data = zstd.ZstdDecompressor(), self._packed(frame)
            while not unpacker.eof:
                piece = unpacker.decompress(data, max_length=PIECE_BYTES)
                if not piece and not unpacker.eof:
                    raise SourceError(f"{self.path}: a frame is cut")
                yield piece
                data = b""

    def _packed(self, frame: SealedFrame) -> bytes:
        self._file.seek(frame.file_offset)
        packed = self._file.read(frame.file_length)
        claimed = zstd.get_frame_info(packed).decompressed_size
        if claimed != frame.length or claimed > LONGEST_FRAME:  # before it takes all memory
            raise SourceError(f"{self.path}: a frame has {claimed} bytes instead of {frame.length}")
        return packed

    @contextlib.contextmanager
    def _as_damage(self) -> Iterator[None]:
        try:
            yield
        except zstd.ZstdError as error:
            raise SourceError(f"{self.path}: a frame is damaged: {error}") from error

    def holds(self, plain: int) -> bool:
        """Whether this is the file of that descriptor, to the last byte."""
        same_length = self.length == os.fstat(plain).st_size
        return same_length and all(self._frame_holds(frame, plain) for frame in self.frames)

    def _frame_holds(self, frame: SealedFrame, plain: int) -> bool:
        """Whether a frame holds the bytes of the plain file. Piece by piece: allocating memory for a whole frame takes
        longer than filling it."""
        self._file.seek(frame.file_offset)
        unpacker, data = zstd.ZstdDecompressor(), self._file.read(frame.file_length)
        at, end = frame.offset, frame.offset + frame.length
        try:
            while at < end:
                piece = unpacker.decompress(data, max_length=PIECE_BYTES)
                if not piece or os.pread(plain, len(piece), at) != piece:
                    return False
                at, data = at + len(piece), b""
        except (zstd.ZstdError, EOFError):
            return False
        return at == end

    def read(self, offset: int, length: int) -> bytes:
        """A piece of the plain text. Raises `SourceError` if a frame under it is damaged."""
        pieces = []
        for frame in self.frames:
            start, end = max(offset, frame.offset), min(offset + length, frame.offset + frame.length)
            if start < end:
                pieces.append(self.read_frame(frame)[start - frame.offset : end - frame.offset])
        return b"".join(pieces)

    @property
    def length(self) -> int:
        """The length of the plain text, in bytes."""
        return self.frames[-1].offset + self.frames[-1].length if self.frames else 0

    def _read_table(self) -> list[SealedFrame] | None:
        """Read the table of frames. `None` if it is damaged or missing: then this is no sealed part, or a piece of
        one."""
        size = os.fstat(self._file.fileno()).st_size
        if size < _FOOTER.size + _SKIPPABLE.size:
            return None
        self._file.seek(size - _FOOTER.size)
        count, _, magic = _FOOTER.unpack(self._file.read(_FOOTER.size))
        length = count * _ENTRY.size
        start = size - _FOOTER.size - length - _SKIPPABLE.size
        if magic != _FOOTER_MAGIC or start < 0:
            return None
        self._file.seek(start)
        head = _SKIPPABLE.unpack(self._file.read(_SKIPPABLE.size))
        frames = list(_placed(_ENTRY.iter_unpack(self._file.read(length))))
        end = frames[-1].file_offset + frames[-1].file_length if frames else 0
        return frames if head == (_SKIPPABLE_MAGIC, length + _FOOTER.size) and end == start else None

    def _find_frames(self) -> list[SealedFrame]:
        """The whole frames of a file without its table, as far as they follow each other."""
        if not os.fstat(self._file.fileno()).st_size:
            return []
        sizes: list[tuple[int, int]] = []
        with (
            mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as file,
            memoryview(file) as data,
            contextlib.suppress(zstd.ZstdError),
        ):
            at = 0
            while at < len(data) and file[at : at + 4] != _SKIPPABLE_MAGIC.to_bytes(4, "little"):
                with data[at:] as rest:
                    packed, plain = zstd.get_frame_size(rest), zstd.get_frame_info(rest).decompressed_size
                sizes.append((packed, plain or 0))
                at += packed
        return list(_placed(sizes))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _placed(sizes: Iterable[tuple[int, ...]]) -> Iterator[SealedFrame]:
    offset = file_offset = 0
    for file_length, length in sizes:
        yield SealedFrame(offset, length, file_offset, file_length)
        offset, file_offset = offset + length, file_offset + file_length
