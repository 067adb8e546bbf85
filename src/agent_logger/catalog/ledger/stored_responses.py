"""The responses and totals of a source as the database holds them: MessagePack, compressed."""

from collections.abc import Sequence

import msgspec

from agent_logger.files.sealed import zstd
from agent_logger.model.responses import ModelResponse, ReportedTotal

_LEVEL = 1

_compressor = zstd.ZstdCompressor(_LEVEL)  # to make one takes longer than to compress the responses of a session
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[ModelResponse]).decode
_decode_totals = msgspec.msgpack.Decoder(list[ReportedTotal]).decode


def encode_responses(responses: Sequence[ModelResponse]) -> bytes:
    """Raises `UnicodeEncodeError` for halves of characters."""
    return _compressor.compress(_encode(responses), zstd.ZstdCompressor.FLUSH_FRAME)


def decode_responses(data: bytes) -> list[ModelResponse]:
    """Raises `msgspec.DecodeError` for damage, from which the catalog recovers."""
    try:
        return _decode(zstd.decompress(data))
    except zstd.ZstdError as error:
        raise msgspec.DecodeError(str(error)) from error


def encode_totals(totals: Sequence[ReportedTotal]) -> bytes | None:
    return _encode(totals) if totals else None


def decode_totals(data: bytes | None) -> list[ReportedTotal]:
    return _decode_totals(data) if data else []
