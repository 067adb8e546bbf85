"""Blocks of Gemini's API, which Gemini CLI and Qwen Code keep in their files too."""

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_logger.model.session import Block
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting

_ANSWERED = ("output", "error", "result", "content")  # what a tool gave stands in one of these


class _Call(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    args: Any = None


class _Response(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    response: Json | None = None


class _Data(msgspec.Struct):
    mime: str = msgspec.field(name="mimeType", default="")


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: Any = None
    function_call: _Call | None = None
    function_response: _Response | None = None
    inline_data: _Data | None = None
    file_data: _Data | None = None


def blocks_of(message: Json) -> Iterator[Block]:
    return map(part_block, base.parts_of(message.get("parts")))


def part_block(raw: Json) -> Block:
    part = fitting(_Part, raw)
    if part.text is not None:
        return base.thinking(part.text) if part.thought is True else base.text(part.text)
    if call := part.function_call:
        return base.use(call.id, call.name, call.args)
    if answer := part.function_response:
        given = answer.response or {}
        content = next((given[name] for name in _ANSWERED if name in given), given)
        return base.result(answer.id, content, name=answer.name, is_error="error" in given)
    data = part.inline_data or part.file_data
    return base.other(raw, "image" if data and data.mime.startswith("image/") else "other")
