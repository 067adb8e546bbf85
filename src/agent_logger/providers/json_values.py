"""JSON from others, as values without a type: any part of it may be missing, or something else."""

import json
import re
from typing import Any

import msgspec

Json = dict[str, Any]

_any = msgspec.json.Decoder()
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def parsed(text: str) -> Any:
    """JSON that came in pieces. Raises ValueError or RecursionError."""
    try:
        return _any.decode(text)
    except ValueError:
        return with_whole_characters(parse_odd(text))


def parse_odd(data: bytes | str) -> Any:
    """Parse JSON with lone surrogates, which msgspec refuses."""
    if isinstance(data, bytes) and not _HALF.search(data):
        raise ValueError("nothing odd is in it")
    return json.loads(data, parse_constant=refuse_constant)


def refuse_constant(constant: str) -> None:
    """Refuse `NaN` and `Infinity`, for `json.loads`."""
    raise ValueError(f"{constant} is not JSON")


def nested_deeper(value: dict[str, Any] | list[Any], levels: int) -> bool:
    level: list[Any] = [value]
    for _ in range(levels):
        inner: list[Any] = []
        for node in level:
            for child in node.values() if type(node) is dict else node:
                if type(child) is dict or type(child) is list:
                    inner.append(child)  # noqa: PERF401 - most are no nodes, and this is asked of every answer
        if not inner:
            return False
        level = inner
    return True


def with_whole_characters(value: Any) -> Any:
    """Replace surrogates: pairs side by side become their character, others U+FFFD, for no file can hold them."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [with_whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {with_whole_characters(key): with_whole_characters(item) for key, item in value.items()}
    return value


def text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def fields_of(value: Any) -> Json:
    """The fields of an object; empty for any other value."""
    return value if isinstance(value, dict) else {}
