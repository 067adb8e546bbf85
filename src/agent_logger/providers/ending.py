"""Whether an answer has ended: one rule, for the recorder, the tracker and every reader of logs.

An answer has ended when the last event of its dialect was seen, whatever happened to the connection after that. Many
clients close at that event, so the chunk that ends the body reaches nobody. So how a call ended (`reason`) is a
separate fact. An answer that is not streamed has ended when its body has: where its transport says so, or where it is a
whole JSON document. An error in the middle of a stream ends the stream, and not the answer.
"""

import msgspec

from agent_logger.model.records import Encoding, Headers, Request, Response, as_bytes
from agent_logger.protocols import encodings
from agent_logger.providers.answer import Answer, type_of
from agent_logger.providers.openai_responses import LAST
from agent_logger.providers.registry import Dialect

DROPPED = "dropped"  # pieces of the call are missing, so nothing can be said of its end
NO_STREAM_END = "no_stream_end"
FRAMED_REASONS = (None, NO_STREAM_END)  # of calls whose body ended where its transport says it does

_json = msgspec.json.Decoder(msgspec.Raw)
_EMPTY = (b"", b"{}", b"[]")


def has_ended(answer: Answer | None, body: bytes, *, framed: bool, in_pieces: bool) -> bool:
    """Whether an answer has ended. `answer`: what was read from the body, its encodings undone; `None` if it is not a
    model's, or an error page. `framed`: the body ended where its transport says it does. `in_pieces`: its head says
    that it is a stream."""
    if answer is None:
        return framed or is_whole_json(body)
    if framed and not (in_pieces or answer.streamed):
        return True
    return answer.ended


def is_whole_json(body: bytes) -> bool:
    """Whether the body is an object or an array from its first to its last byte: the beginning of one never is."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        _json.decode(body)
    except (ValueError, RecursionError):
        return False
    return True


def is_unread_answer(answer: Answer, body: bytes) -> bool:
    """Whether an answer came, its encodings undone, of which nothing was understood. An empty object says nothing."""
    return answer.says_nothing and body.strip() not in _EMPTY


def is_answered(status: int | None) -> bool:
    """Whether a model may have answered: the status is a success, or 101, which the messages of a WebSocket have."""
    return status is not None and (200 <= status < 300 or status == 101)


# ---------------------------------------------------------------- records


def is_complete(response: Response, dialect: Dialect | None, *, websocket: bool = False) -> bool:
    """Whether the answer in a record has ended. Older recorders called an answer cut whenever its connection was, so
    such a record is judged again, by today's rule."""
    if response.complete is not False:
        return True
    if response.reason == DROPPED or response.status is None:
        return False
    if dialect is None or not is_answered(response.status):
        return has_ended(None, body_of(response), framed=False, in_pieces=False)
    framed = response.reason == NO_STREAM_END
    return has_ended(read_again(response, dialect, websocket=websocket), b"", framed=framed, in_pieces=True)


def read_again(response: Response, dialect: Dialect, *, websocket: bool = False) -> Answer:
    """The answer in the stored bytes of a response; an empty one if they are in a file of their own."""
    reader = dialect.reader(messages=websocket)
    if websocket:
        for chunk in response.chunks or ():
            reader.feed(_bytes(chunk.raw, chunk.raw_encoding))
    else:
        reader.feed(body_of(response))
    return reader.finish(framed=response.reason in FRAMED_REASONS)


def body_of(record: Request | Response) -> bytes:
    """A body, its encodings undone as far as possible."""
    if isinstance(record, Response) and record.chunks:
        data = b"".join(_bytes(chunk.raw, chunk.raw_encoding) for chunk in record.chunks)
    else:
        data = _bytes(record.body, record.body_encoding)
    encoding = "" if record.recoded else header_of(record, "content-encoding")
    try:
        return encodings.decode(data, encoding) if encoding else data
    except encodings.DecodeError as error:
        return error.decoded


def header_of(record: Request | Response, header: str) -> str:
    """The value of a header, by its name in lower case; several values are joined."""
    headers: Headers = record.headers or {}
    for name, value in headers.items():
        if name.lower() == header:
            return value if isinstance(value, str) else ", ".join(value)
    return ""


def _bytes(text: str | None, encoding: Encoding | None) -> bytes:
    try:
        return as_bytes(text or "", encoding)
    except ValueError:
        return b""


_LAST_TYPES = frozenset((*LAST, "error"))


def ends_answer(message: bytes) -> str | None:
    """The type of a WebSocket message that is the last one of its answer; `None` for any other message."""
    kind = type_of(message)
    return kind if kind in _LAST_TYPES else None
