"""Values from a program as JSON, whatever is in them: recording must never fail because of a value it is given."""

import json
import re
from typing import Any

import msgspec

from agent_logger.protocols.jsonl import is_utf8

_encoder = msgspec.json.Encoder(enc_hook=repr)


def encode(value: Any) -> bytes:
    """Encode a value. Lone surrogates and keys that are no strings are written as the standard library does; objects as
    their `repr`."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        return _encode_anything(value)


def _encode_anything(value: Any) -> bytes:
    try:
        return json.dumps(value, default=repr, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, a circle, too deep
        return json.dumps({"type": "unknown", "repr": _repr(value)}).encode("ascii")


def decode(data: bytes | msgspec.Raw) -> Any:
    """Decode what `encode` has written, lone surrogates too. Raises `ValueError` or `RecursionError` if it cannot be
    read."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(bytes(data))


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # somebody else's `__repr__` may raise anything
        return f"<{type(value).__name__}: {error!r}>"


def in_utf8(data: bytes) -> bytes:
    """JSON from outside, with U+FFFD for bytes that are not UTF-8; what is not JSON, as it is."""
    return data if is_utf8(data) else mended(data) or data


def mended(line: bytes) -> bytes | None:
    """JSON that msgspec can read, from JSON that only the standard library can: a lone surrogate becomes U+FFFD."""
    try:
        text = json.dumps(json.loads(line.decode("utf-8-sig", "replace")), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))


def is_null(value: msgspec.Raw | msgspec.UnsetType) -> bool:
    return isinstance(value, msgspec.UnsetType) or begins(value, b"n")


def begins(value: msgspec.Raw, first: bytes) -> bool:
    """Whether a value begins with this byte. No copy is made, for the value may be long."""
    return memoryview(value)[:1] == first
