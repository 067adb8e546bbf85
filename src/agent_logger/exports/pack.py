"""Archives, packed by zstd and unpacked. One packed archive after another is an archive again.

An import refuses what is packed so much that it may be a bomb. A log of the proxy may be: each request repeats the
whole conversation. So an archive is several frames, and what is packed too well is followed by a frame without content.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from io import RawIOBase

from agent_logger.files.sealed import zstd
from agent_logger.protocols.tar import members

_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}


FRAME_BYTES = 8 << 20  # of content; imports take more than that whatever its fold
CHUNK_BYTES = 1 << 20
MOST_FOLD = 100  # half of what an import takes, so that it may have read the content of a frame before the next
_NO_CONTENT = 0x184D2A50  # begins a frame that is skipped


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zstd.ZstdCompressor(options=_OPTIONS)
    plain, size, frame = 0, 0, 0
    for chunk in _chunks(pieces):
        data = compressor.compress(chunk)
        plain, frame = plain + len(chunk), frame + len(chunk)
        if frame >= FRAME_BYTES:
            data, frame = data + compressor.flush(), 0
            data += _filling(size + len(data), plain)
        size += len(data)
        yield data
    end = compressor.flush() if frame or not plain else b""
    yield end + _filling(size + len(end), plain)


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from (piece[at : at + CHUNK_BYTES] for at in range(0, len(piece), CHUNK_BYTES))


def _filling(size: int, plain: int) -> bytes:
    """Return a frame without content, by which so many bytes are not packed more than `MOST_FOLD` times."""
    missing = plain // MOST_FOLD - size
    return struct.pack("<II", _NO_CONTENT, missing) + bytes(missing) if missing > 0 else b""


def unpacked(chunks: Iterable[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the files of an archive that this program packed, each with its name."""
    with zstd.ZstdFile(_ChunkReader(chunks)) as plain:
        for member in members(plain.read):
            yield member.name, member.chunks


class _ChunkReader(RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._rest = iter(chunks), b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._rest = self._rest or next(self._chunks, b"")
        data, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return data
