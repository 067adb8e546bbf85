"""Remove keys from what is shown, between a session and its pieces: nothing reaches a view without passing here."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.model.records import Headers
from agent_logger.model.redaction.redactor import credentials_of, hidden, hidden_bytes, hidden_header
from agent_logger.model.session import ToolCall

DEEPEST = 100  # levels of a JSON value that are shown


def hidden_value(value: Any, depth: int = 0) -> Any:
    """A JSON value with the keys hidden in all its texts."""
    if isinstance(value, str):
        return hidden(value)
    if depth > DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {
            hidden(key) if isinstance(key, str) else key: hidden_value(item, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [hidden_value(item, depth + 1) for item in value]
    return value


def hidden_call(call: ToolCall) -> ToolCall:
    """The tool call with keys hidden, except in `raw`: only pictures of that are shown, and hiding text in one would
    break it."""
    return replace(
        call,
        name=None if call.name is None else hidden(call.name),
        input=hidden_value(call.input),
        result=None if call.result is None else hidden(call.result),
    )


def hidden_headers(headers: Headers) -> Headers:
    """The headers with keys hidden by today's rule: older logs hold the headers of gateways in clear."""
    return {
        name: hidden_header(name, value) if isinstance(value, str) else [hidden_header(name, text) for text in value]
        for name, value in headers.items()
    }


class _Carriers(msgspec.Struct):
    """The fields of a wire record that carry credentials."""

    headers: Headers | None = None
    trailers: Headers | None = None
    path: str = ""


def hidden_line(line: bytes) -> bytes:
    """A line of JSON without keys. A log that is older than a rule for headers holds in clear what the rule would hide:
    such values are hidden here, in the headers and elsewhere in the line."""
    try:
        carriers = _decode(line) if b'"headers"' in line else _Carriers()
    except (ValueError, RecursionError, UnicodeDecodeError):
        carriers = _Carriers()
    pairs = [*_pairs(carriers.headers), *_pairs(carriers.trailers)]
    for name, values in pairs:
        hidden = [hidden_header(name, text) for text in values]
        if hidden != values:  # however short it is
            for form, hidden_form in ((values[0], hidden[0]), (values, hidden)):
                line = line.replace(_member(name, form), _member(name, hidden_form))
    headers = [(_encode(name), _encode(text)) for name, values in pairs for text in values]
    return hidden_bytes(line, credentials_of(headers, _encode(carriers.path)))


def _pairs(headers: Headers | None) -> Iterator[tuple[str, list[str]]]:
    for name, value in (headers or {}).items():
        values = [value] if isinstance(value, str) else value
        if values:
            yield name, values


def _member(name: str, value: str | list[str]) -> bytes:
    return msgspec.json.encode({name: value})[1:-1]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_decode = msgspec.json.Decoder(_Carriers).decode
