"""Blocks of OpenAI's Responses API: an item is a message, a thought, a call of a tool, or the output of one."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agent_logger.model.session import Block
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting

# Items of tools that the provider runs hold what came out of them.
_RUN_BY_PROVIDER = {"mcp_call": "output", "code_interpreter_call": "outputs", "file_search_call": "results"}
_RUN_BY_CLIENT = frozenset(
    (
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
    )
)
_GIVEN = ("input", "action", "code", "queries", "operation")
_EXIT_STATUS = re.compile(r"^(?:Process exited with|Exit) code:? (\d+)$", re.MULTILINE)


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    content: Any = None
    summary: Any = None
    arguments: Any = UNSET
    output: Any = None
    error: Any = None


class _Part(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None


def answered(message: Json) -> Iterator[Block]:
    for item in base.parts_of(message.get("output")):
        yield from item_blocks(item)


def sent(item: Json) -> Iterator[Block]:
    if item.get("role"):
        yield from _content(item.get("content"))
    elif str(item.get("type")).endswith("_output"):
        yield item_result(item)
    else:
        yield from item_blocks(item)


def item_blocks(raw: Json) -> Iterator[Block]:
    """Yield the blocks of one item, as the model answered it."""
    item = fitting(_Item, raw)
    if item.type == "message":
        yield from _content(item.content)
    elif item.type == "reasoning":
        yield base.thinking(base.joined_text(item.summary) or base.joined_text(item.content))
    elif item.type.endswith("_call"):
        yield from _call(raw, item)
    else:
        yield base.other(raw)


def _call(raw: Json, item: _Item) -> Iterator[Block]:
    called, name = item.call_id or item.id, item.name or item.type.removesuffix("_call")
    given = next((raw[key] for key in _GIVEN if key in raw), None)
    yield base.use(called, name, given if item.arguments is UNSET else base.arguments(item.arguments))
    if item.type not in _RUN_BY_CLIENT:
        came_out = raw.get(_RUN_BY_PROVIDER.get(item.type, ""))
        yield base.result(called, came_out, is_error=bool(item.error))


def _content(content: Any) -> Iterator[Block]:
    for raw in base.parts_of(content):
        part = fitting(_Part, raw)
        match part.type:
            case "input_text" | "output_text" | "text":
                yield base.text(part.text)
            case "refusal":
                yield base.text(part.refusal)
            case _:
                yield base.other(raw, "image" if part.type == "input_image" else "other")


# ---------------------------------------------------------------- what a tool gave


class _Metadata(msgspec.Struct):
    exit_code: Any = None


class _Command(msgspec.Struct):
    output: str | None = None
    metadata: _Metadata | None = None


def item_result(raw: Json) -> Block:
    """The block of a tool's output. The output of Codex commands contains their exit status, in a form that differs by
    version."""
    item = fitting(_Item, raw)
    block = base.result(item.call_id, item.output)
    if block.text.startswith("{"):
        command = fitting(_Command, base.value_of(block.text))
        status = command.metadata.exit_code if command.metadata else None
        if command.output is not None and status is not None:
            return replace(block, text=command.output, is_error=status != 0)
    head = block.text[:400].split("\nOutput:", 1)[0]
    match = _EXIT_STATUS.search(head)
    failed = isinstance(item.output, dict) and item.output.get("success") is False
    return replace(block, is_error=failed or bool(match and match[1] != "0"))
