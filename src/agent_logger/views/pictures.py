"""Pictures in what models, people and tools said, in the formats of all model APIs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_logger.views.pieces import Picture

_KIND = re.compile(r"image/[\w.+-]{1,40}")
_DATA_URL = re.compile(r"data:(image/[\w.+-]{1,40});base64,(.*)", re.DOTALL)


def pictures_in(raw: Any) -> tuple[Picture, ...]:
    """The pictures in a raw block, or in a list of raw blocks."""
    parts = raw if isinstance(raw, list) else [raw]
    return tuple(picture for part in parts if isinstance(part, Mapping) for picture in _pictures(part))


def _pictures(part: Mapping[Any, Any]) -> Iterator[Picture]:
    # Anthropic: source {media_type, data}; MCP: mimeType, data; Gemini: inlineData {mimeType, data}.
    for held in (part.get("source"), part.get("inlineData"), part.get("inline_data"), part):
        if isinstance(held, Mapping):
            kind = held.get("media_type") or held.get("mimeType") or held.get("mime_type")
            data = held.get("data")
            if isinstance(kind, str) and _KIND.fullmatch(kind) and isinstance(data, str):
                yield Picture(kind, data)
                return
    url = part.get("image_url")  # OpenAI: a text, or {url}
    url = url.get("url") if isinstance(url, Mapping) else url
    if isinstance(url, str) and (inline := _DATA_URL.match(url)):
        yield Picture(inline[1], inline[2])
