"""Archives, packed by zstd and unpacked. One packed archive after another is an archive again."""

from collections.abc import Iterable, Iterator, Mapping
from io import RawIOBase

from agent_logger.files.sealed import zstd
from agent_logger.protocols.tar import members

_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zstd.ZstdCompressor(options=_OPTIONS)
    for piece in pieces:
        if data := compressor.compress(piece):
            yield data
    yield compressor.flush()


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
