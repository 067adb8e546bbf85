"""What a model answered to a call, from the record of its response.

The recorder has rejoined most answers already. What it could not read, and what older logs do not have, is read from
the stored bytes; so is how an answer ended, where the record does not say it.
"""

from dataclasses import replace
from typing import Any

from agent_logger.formats.blocks.parts import value_of
from agent_logger.records import Headers, Request, Response, as_bytes
from agent_logger.wire import encodings
from agent_logger.wire.answer import Answer, fields_of, text_of
from agent_logger.wire.dialects import Dialect
from agent_logger.wire.token_counts import usage_of

_NOT_ENDED_WELL = ("failed", "cancelled")  # words of the responses API


def answer_of(response: Response, dialect: Dialect, *, websocket: bool = False) -> Answer | None:
    """None if there is no message: an error, or no answer at all."""
    message = value_of(response.message) if response.message else None
    if message is None:
        answer = _read_again(response, dialect, websocket=websocket)
    elif response.stop_reason is None and response.complete is not False:
        again = _read_again(response, dialect, websocket=websocket)
        answer = replace(_told(response, message), complete=again.complete and not again.error)
    else:
        answer = _told(response, message)
    if answer.message is None:
        return None
    whole = answer.complete and response.complete is not False and answer.stop_reason not in _NOT_ENDED_WELL
    return replace(answer, complete=whole)


def _told(response: Response, message: Any) -> Answer:
    reported = value_of(response.usage) if response.usage else None
    return Answer(
        message=message,
        message_id=response.message_id,
        model=response.model,
        stop_reason=response.stop_reason,
        usage=usage_of(reported),
        raw_usage=reported,
        service_tier=_tier(reported) or _tier(message),
        complete=True,
    )


def _tier(told: Any) -> str | None:
    return text_of(fields_of(told).get("service_tier"))


def _read_again(response: Response, dialect: Dialect, *, websocket: bool) -> Answer:
    reader = dialect.reader(messages=websocket)
    if websocket:
        for chunk in response.chunks or ():
            reader.feed(_bytes(chunk.raw, chunk.raw_encoding))
    else:
        reader.feed(body_of(response))
    return reader.finish()


# ---------------------------------------------------------------- stored bodies


def body_of(record: Request | Response) -> bytes:
    """A body, its encodings undone as far as that goes."""
    if isinstance(record, Response) and record.chunks:
        data = b"".join(_bytes(chunk.raw, chunk.raw_encoding) for chunk in record.chunks)
    else:
        data = _bytes(record.body, record.body_encoding)
    encoding = "" if record.recoded else _header(record.headers, "content-encoding")
    try:
        return encodings.decode(data, encoding) if encoding else data
    except encodings.DecodeError as error:
        return error.decoded


def _bytes(text: str | None, encoding: Any) -> bytes:
    try:
        return as_bytes(text or "", encoding)
    except ValueError:
        return b""


def _header(headers: Headers | None, wanted: str) -> str:
    for name, value in (headers or {}).items():
        if name.lower() == wanted:
            return value if isinstance(value, str) else ", ".join(value)
    return ""
