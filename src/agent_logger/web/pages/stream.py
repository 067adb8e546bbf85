"""The events of a streamed answer, each with the time when it arrived."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent_logger.model.records import Response, as_bytes
from agent_logger.model.redaction.redactor import hidden
from agent_logger.protocols.encodings import DecodeError, decoder
from agent_logger.protocols.sse import EventSplitter
from agent_logger.providers.ending import header_of


@dataclass(frozen=True, slots=True)
class StreamEvent:
    at_ms: float  # since the first piece of the answer
    name: str
    data: str  # redacted


def events_of(response: Response, *, websocket: bool = False) -> Iterator[StreamEvent]:
    """The events; none if the answer was not streamed, or the stream was too large to be stored in its record."""
    at, splitter = 0.0, EventSplitter()
    undo = None if response.recoded else decoder(header_of(response, "content-encoding"))
    for number, chunk in enumerate(response.chunks or ()):
        at += chunk.delta_ms if number else 0.0
        try:
            data = as_bytes(chunk.raw or "", chunk.raw_encoding)
            data = undo.feed(data) if undo else data
        except (DecodeError, ValueError):
            return
        if websocket:
            yield StreamEvent(at, "message", _text(data))
        else:
            yield from (
                StreamEvent(at, _text(event.name) or "message", _text(event.data)) for event in splitter.feed(data)
            )


def _text(data: bytes) -> str:
    return hidden(data.decode("utf-8", "replace"))
