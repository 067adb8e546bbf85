"""Masks records of the proxy: what is compressed is decoded first, and a text that streams in pieces is put together.

A login that a model writes comes as several events, and no event has all of it.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from agent_logger.exports.masks.mask import SessionMask
from agent_logger.model import records
from agent_logger.model.records import Headers, Record, Request, Response
from agent_logger.protocols.encodings import DecodeError, decode
from agent_logger.providers.deltas import split_texts

MOST_BYTES = 64 << 20  # of a body that is decoded


def readable_record(record: Record) -> Record:
    """Return the record with its body as text. A body that is none, or cannot be decoded, is left out: what is in it
    cannot be masked."""
    if isinstance(record, Request) and record.body_encoding:
        return replace(record, body=_text(_decoded(record.body), record.headers), body_encoding=None, recoded=True)
    if isinstance(record, Response) and record.body_encoding:
        body = _text(_decoded(record.body), record.headers or {})
        return replace(record, body=body, body_encoding=None, recoded=True)
    if isinstance(record, Response) and any(chunk.raw_encoding for chunk in record.chunks or ()):
        return _with_readable_chunks(record)
    return record


def _with_readable_chunks(response: Response) -> Response:
    """Return the response with its stream as text, all of it in the first chunk."""
    chunks = response.chunks or []
    stream = b"".join(
        _decoded(chunk.raw) if chunk.raw_encoding else (chunk.raw or "").encode("utf-8", "surrogatepass")
        for chunk in chunks
    )
    texts = [_text(stream, response.headers or {}), *[""] * len(chunks)]
    new = [replace(chunk, raw=text, raw_encoding=None) for chunk, text in zip(chunks, texts, strict=False)]
    return replace(response, chunks=new, deflated=None, recoded=True)


def _decoded(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "")
    except binascii.Error:
        return b""


def _text(data: bytes, headers: Headers) -> str:
    names = {name.lower(): value for name, value in headers.items()}
    encoding = names.get("content-encoding", "")
    try:
        plain = decode(data, encoding if isinstance(encoding, str) else ", ".join(encoding), MOST_BYTES)
        return plain.decode("utf-8")
    except DecodeError as error:
        return error.decoded.decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return ""


# ---------------------------------------------------------------- texts in pieces


def masked_stream(line: bytes, mask: SessionMask) -> bytes:
    """Return the line of a response with pseudonyms in the texts that its stream gives in pieces. A text that changes
    is whole in its first piece."""
    if not mask.kinds or b'"chunks"' not in line:
        return line
    record = records.decode(line, "wire")
    if not isinstance(record, Response) or not record.chunks:
        return line
    raw = [(chunk.raw or "").encode("utf-8", "surrogatepass") for chunk in record.chunks]
    stream = b"".join(raw)
    changes = dict(_changes(stream, mask))
    if not changes:
        return line
    new = _rewritten(raw, changes)
    chunks = [
        replace(chunk, raw=text.decode("utf-8", "surrogatepass"))
        for chunk, text in zip(record.chunks, new, strict=True)
    ]
    return records.encode(replace(record, chunks=chunks))


def _changes(stream: bytes, mask: SessionMask) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield the bounds of pieces with what is to be in their place."""
    for places in split_texts(stream):
        text = b"".join(stream[start:end] for start, end in places).decode("utf-8", "surrogatepass")
        masked = mask.text(text)
        if masked != text:
            yield places[0], masked.encode("utf-8", "surrogatepass")
            yield from ((place, b"") for place in places[1:])


def _rewritten(chunks: list[bytes], changes: Mapping[tuple[int, int], bytes]) -> list[bytes]:
    """Return the chunks with the changes. What a chunk boundary cuts through goes to the chunk where it begins."""
    bounds = sorted(changes)
    result, base, at, turn = [], 0, 0, 0
    stream = b"".join(chunks)
    for chunk in chunks:
        end, parts = base + len(chunk), []
        while turn < len(bounds) and bounds[turn][0] < end:
            start, stop = bounds[turn]
            parts += [stream[at:start], changes[start, stop]]
            at, turn = stop, turn + 1
        parts.append(stream[at:end])
        result.append(b"".join(parts))
        at, base = max(at, end), end
    return result
