"""Content encodings, so that what was fed so far can always be decoded so far."""

import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class Packer(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class Identity:
    def feed(self, data: bytes) -> bytes:
        return data

    def end(self) -> bytes:
        return b""


class Zlib:
    def __init__(self, wbits: int) -> None:
        self._compressor = zlib.compressobj(wbits=wbits)

    def feed(self, data: bytes) -> bytes:
        return self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._compressor.flush()


class Brotli:
    def __init__(self) -> None:
        self._compressor = brotli.Compressor()

    def feed(self, data: bytes) -> bytes:
        packed: bytes = self._compressor.process(data) + self._compressor.flush()
        return packed

    def end(self) -> bytes:
        packed: bytes = self._compressor.finish()
        return packed


class Zstd:
    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor()

    def feed(self, data: bytes) -> bytes:
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._compressor.flush()


PACKERS: Mapping[str, Callable[[], Packer]] = {
    "identity": Identity,
    "gzip": lambda: Zlib(31),
    "deflate": lambda: Zlib(15),
    "br": Brotli,
    "zstd": Zstd,
}

UNPACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": lambda data: zlib.decompress(data, 31),
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
}
