"""A body as a record may hold it: HMACs are taken first, then it is redacted, also inside compression.

This module handles bodies that are in memory as a whole; those over 8 MB are in `large`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agent_logger.model import records
from agent_logger.model.records import Chunk, Encoding, Redaction, Stored
from agent_logger.model.redaction.redactor import Redactor, redacted_part
from agent_logger.protocols.encodings import DecodeError, Decoder, decode, decoder
from agent_logger.providers.deltas import split_texts
from agent_logger.proxy.call_state import chunk_records, chunk_size_records, chunks_of
from agent_logger.proxy.recorder.calls.known_request import RequestText, keyed
from agent_logger.proxy.spool.frames import Mask

REDACTED = b"[redacted]"

Pieces = Sequence[bytes]


def restored(data: bytes, masks: Sequence[Mask], values: Mapping[int, bytes]) -> tuple[bytes, int]:
    """The data with the credentials in their places again, and how many are not known: these are shown as redacted."""
    if not masks:
        return data, 0
    whole, unknown = bytearray(data), 0
    for mask in sorted(masks, key=lambda mask: mask.offset, reverse=True):
        value = values.get(mask.credential)
        unknown += value is None
        whole[mask.offset : mask.offset + mask.length] = REDACTED if value is None else value
    return bytes(whole), unknown


def body_hmac(key: bytes, data: bytes) -> str:
    state = keyed(key).copy()
    state.update(data)
    return "v1:" + state.hexdigest()


@dataclass(slots=True)
class StoredBody:
    """A body as its record has it. Size and HMAC are those of the received bytes."""

    # The body as it was received, with its encoding undone; empty if the body is in a file.
    text: bytes
    bytes: int
    hmac: str | None = None
    body: str | None = None
    encoding: Encoding | None = None
    chunks: Pieces | None = None  # of a stream, as they are recorded
    file: Path | None = None  # the file with the body, if it is too large for a record
    file_bytes: int = 0
    recoded: bool = False
    redactions: tuple[Redaction, ...] = ()
    # Whether the last event of a body in a file was seen; `None` if that is unknown.
    stream_ended: bool | None = None
    pieces: Pieces = ()  # the text, chunk by chunk
    starts: Sequence[int] = ()  # when these pieces began
    sizes: Sequence[int] | None = None  # of the chunks of a stream that is in a file

    def chunk_records(self, times_of: Callable[[Sequence[int]], Sequence[str]]) -> list[Chunk] | None:
        """The chunks of a stream, each with the time at which it began."""
        if self.chunks is not None:
            return chunk_records(self.chunks, self.starts, times_of(self.starts))
        return None if self.sizes is None else chunk_size_records(self.sizes, self.starts, times_of(self.starts))

    @property
    def original(self) -> Stored | None:
        return Stored(bytes=self.bytes, hmac=self.hmac or "") if self.recoded else None


class BodyPolicy(NamedTuple):
    """How a body is to be processed."""

    key: bytes
    redactor: Redactor
    place: str
    encoding: str = ""  # the Content-Encoding
    stream: bool = False  # recorded chunk by chunk
    end: re.Pattern[bytes] | None = None  # the end of the stream, if it is too large to be read

    @property
    def is_readable(self) -> bool:
        """Whether its encoding is none, or one that can be undone."""
        return self._is_plain or self.decoder() is not None

    @property
    def _is_plain(self) -> bool:
        return not self.encoding or self.encoding.strip().lower() in ("", "identity")

    def decoder(self, limit: int | None = None) -> Decoder | None:
        if self._is_plain:
            return None
        return decoder(self.encoding, limit) if limit else decoder(self.encoding)


def store_body(
    pieces: Sequence[bytes],
    times: Sequence[int],
    policy: BodyPolicy,
    *,
    clean: bool = False,
) -> StoredBody:
    """Make the record of a body that is in memory as a whole. `clean`: it was searched, and nothing is to be redacted
    in its bytes."""
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    stored = StoredBody(data, len(data), body_hmac(policy.key, data) if data else None)
    chunks, stored.starts = chunks_of(pieces, times) if policy.stream else ([data], [])
    stored.pieces = chunks
    if data and (undo := policy.decoder()):
        stored.pieces, whole = _decoded(undo, chunks, policy.encoding)
        stored.text = b"".join(stored.pieces)
        redacted = policy.redactor.redact_chunks(stored.pieces, policy.place)
        if redacted.redactions:
            chunks, stored.redactions, stored.recoded = redacted.data, redacted.redactions, True
        elif not whole:
            raw = policy.redactor.redact_chunks(chunks, policy.place)
            chunks, stored.redactions = raw.data, raw.redactions
    elif clean:
        pass
    elif policy.stream:
        redacted = policy.redactor.redact_chunks(chunks, policy.place)
        chunks, stored.redactions = redacted.data, redacted.redactions
    elif data:
        one = policy.redactor.redact(data, policy.place)
        chunks, stored.redactions = [one.data], one.redactions
    _set_content(stored, chunks, policy)
    return stored


def store_request(data: bytes, policy: BodyPolicy, text: RequestText) -> StoredBody:
    """Make the record of a request's body, whose encoding could be undone. Only what is not known of the text is worked
    on."""
    is_plain = text.text is data
    stored = StoredBody(data, len(data), text.hmac(policy.key) if is_plain else body_hmac(policy.key, data))
    spans = text.search(policy.redactor).spans
    stored.redactions = policy.redactor.listed(text.text, policy.place, spans)
    stored.recoded = not is_plain and bool(spans)
    if not (is_plain or spans):
        stored.body, stored.encoding = records.as_text(data)
    elif encoded := text.encoded():
        stored.body = records.encoded_text(encoded)
    else:
        stored.body, stored.encoding = records.as_text(redacted_part(text.text, spans, 0, len(text.text)))
    return stored


def hide_pieces(stored: StoredBody, policy: BodyPolicy) -> None:
    """Redact secrets that show only when the texts that the answer gives in pieces are joined."""
    if not stored.pieces:
        return
    redacted = policy.redactor.redact_chunks(stored.pieces, policy.place, split_texts(stored.text))
    if redacted.redactions and redacted.redactions != stored.redactions:
        stored.redactions = redacted.redactions
        stored.recoded = policy.decoder() is not None
        _set_content(stored, redacted.data, policy)


def _set_content(stored: StoredBody, chunks: Sequence[bytes], policy: BodyPolicy) -> None:
    if policy.stream:
        stored.chunks = chunks
    elif stored.bytes:
        stored.body, stored.encoding = records.as_text(chunks[0])


def _decoded(undo: Decoder, pieces: Sequence[bytes], encoding: str) -> tuple[list[bytes], bool]:
    """Decode as much as possible, piece by piece, and whether that is all of it."""
    try:
        return [undo.feed(piece) for piece in pieces], True
    except DecodeError:
        return [_before_damage(b"".join(pieces), encoding), *[b""] * (len(pieces) - 1)], False


def _before_damage(data: bytes, encoding: str) -> bytes:
    try:
        return decode(data, encoding)
    except DecodeError as error:
        return error.decoded
