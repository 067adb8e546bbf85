"""Blocks of Anthropic's Messages API."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from agent_logger.model.session import Block
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import fitting


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    partial_json: Any = UNSET  # in place of the input, where that was cut
    tool_use_id: str | None = None
    content: Any = None
    is_error: Any = None


def blocks_of(message: Json) -> Iterator[Block]:
    for part in base.parts_of(message.get("content")):
        yield _block(part, fitting(_Block, part))


def _block(part: Json, block: _Block) -> Block:
    kind = block.type
    if kind == "text":
        return base.text(block.text)
    if kind == "thinking":
        return base.thinking(block.thinking)
    if kind.endswith("tool_use"):  # server_tool_use, mcp_tool_use
        given = block.input if block.partial_json is UNSET else block.partial_json
        return base.use(block.id, block.name, given)
    if kind.endswith("tool_result"):  # web_search_tool_result, ...
        failed = block.is_error is True or "error_code" in fields_of(block.content)
        return base.result(block.tool_use_id, block.content, is_error=failed)
    return base.other(part, "image" if kind == "image" else "other")
