"""The lines of pi's session files: a header, then entries that form a tree by `id` and `parentId`."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import structs_of, time_of, time_of_ms
from agent_logger.agents.source_files import File
from agent_logger.model.session import Block, Usage
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

MOST_USD = 1e9  # a higher price is a mistake
_FILE_NAME = re.compile(r"(?:^|[/\\])\d{4}-\d\d-\d\dT[^/\\_]*_([^/\\]+)\.jsonl$")
_ITEM_ID = re.compile(r"\|.*", re.DOTALL)


class PiMessage(msgspec.Struct, gc=False):
    """The message of a line of type `message`, from the user, the model or a tool."""

    role: str = ""
    content: Any = None  # a text, or a list of parts
    timestamp: Any = None  # milliseconds: when it began
    api: str | None = None  # fields of the assistant: this and the following
    model: str | None = None
    response_model: str | None = msgspec.field(name="responseModel", default=None)
    response_id: str | None = msgspec.field(name="responseId", default=None)
    usage: Any = None  # also in a tool's result: the usage of models that the tool called
    stop_reason: str | None = msgspec.field(name="stopReason", default=None)
    error: str | None = msgspec.field(name="errorMessage", default=None)
    tool_call: str | None = msgspec.field(name="toolCallId", default=None)  # fields of a result: this and the rest
    tool: str | None = msgspec.field(name="toolName", default=None)
    is_error: Any = msgspec.field(name="isError", default=False)
    details: Any = None
    custom_type: str | None = msgspec.field(name="customType", default=None)
    is_hidden: Any = msgspec.field(name="excludeFromContext", default=False)  # from the model

    @property
    def began(self) -> datetime | None:
        return time_of_ms(self.timestamp)


class PiLine(msgspec.Struct, gc=False):
    """Any line. Its type decides which fields it has."""

    type: str = ""
    id: str | None = None
    parent: str | None = msgspec.field(name="parentId", default=None)
    timestamp: Any = None  # when the line was written
    cwd: str | None = None  # fields of the header: this and the next
    parent_session: str | None = msgspec.field(name="parentSession", default=None)
    depth: Any = msgspec.field(name="rlmDepth", default=None)  # of a sub-agent (Prime Agent)
    message: PiMessage | None = None
    name: str | None = None  # a field of `session_info`
    title: str | None = None  # in the header, or in a line before it (OhMyPi)
    model_id: str | None = msgspec.field(name="modelId", default=None)  # a field of `model_change`
    model: str | None = None  # a field of `usage`
    summary: str | None = None  # a field of `compaction` and `branch_summary`
    tokens_before: Any = msgspec.field(name="tokensBefore", default=None)
    usage: Any = None  # a field of these and of `usage`
    custom_type: str | None = msgspec.field(name="customType", default=None)  # a field of `custom_message`
    content: Any = None

    @property
    def at(self) -> datetime | None:
        return time_of(self.timestamp)


class BilledPart(msgspec.Struct, gc=False):
    """A part of a message, without what was said in it."""

    type: Any = None
    id: Any = None


class _BilledMessage(PiMessage, gc=False):
    content: list[BilledPart] | str | None = None
    details: msgspec.Raw = msgspec.Raw()


class _BilledLine(PiLine, gc=False):
    message: _BilledMessage | None = None


_spoken: msgspec.json.Decoder[PiLine] = msgspec.json.Decoder(PiLine)
_billed: msgspec.json.Decoder[PiLine] = msgspec.json.Decoder(_BilledLine)


def lines_of(file: File, *, spoken: bool = True) -> Iterator[PiLine]:
    """Yield the lines. Without `spoken`, parts of messages may be `BilledPart`s."""
    return structs_of(file, _spoken if spoken else _billed, PiLine)


def id_in_name(path: str) -> str | None:
    """Return the session's id from the name of its file, `<time>_<id>.jsonl`; None for a name of another form."""
    match = _FILE_NAME.search(path)
    return match[1] if match else None


def blocks_of(content: Any) -> Iterator[Block]:
    """Yield the parts of a message as the model wrote them."""
    if type(content) is list and content and type(content[0]) is BilledPart:
        yield from map(_billed_block, content)
        return
    for part in base.parts_of(content):
        match part:
            case {"type": "text", "text": str(text)}:
                yield base.text(text)
            case {"type": "thinking", "thinking": str(thought)}:
                yield base.thinking(thought)
            case {"type": "toolCall"}:
                yield _tool_use(part)
            case {"type": "image"}:
                yield base.other(part, "image")
            case _:
                yield base.other(part)


def _billed_block(part: BilledPart) -> Block:
    """Return a part as a block that says nothing. Tool calls keep their ids: results have times."""
    if part.type != "toolCall":
        return _SILENT
    return base.use(vendors_id(part.id if type(part.id) is str else None), None, None)


_SILENT = base.text("")


class _ToolCall(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    arguments: Any = None


def _tool_use(part: Json) -> Block:
    call = fitting(_ToolCall, part)
    return base.use(vendors_id(call.id), call.name, call.arguments)


def result_of(message: PiMessage) -> Block:
    """Return the result of a tool. A command that fails is a success of OpenClaw's tool."""
    exit_code, content = fields_of(message.details).get("exitCode"), message.content
    return base.result(
        vendors_id(message.tool_call),
        content if isinstance(content, str | list) and not isinstance(message, _BilledMessage) else None,
        name=message.tool,
        is_error=message.is_error is True or exit_code not in (None, 0),
    )


def vendors_id(call: str | None) -> str | None:
    """Return the vendor's id of a tool call; pi appends the item's id to those of OpenAI's responses: `call_…|fc_…`."""
    return _ITEM_ID.sub("", call) if call else call


def usage_of(value: Any) -> Usage | None:
    """Return the tokens as pi counts them, which is as they are billed; None if there are none, or they are not
    understood.

    pi writes zeros for what its provider did not count.
    """
    counts = TokenCounts(value)
    usage = counts.usage(
        counts("input"),
        counts("output"),
        counts("cache_read"),
        counts("cache_write"),
        counts("cache_write_1h"),
    )
    return usage if usage and any(usage.counts) else None


def cost_of(value: Any) -> float | None:
    """Return the price in dollars that pi calculates; None for 0, which pi also writes without a price."""
    total = fields_of(fields_of(value).get("cost")).get("total")
    if type(total) is not int and type(total) is not float:
        return None
    return float(total) if 0 < total < MOST_USD else None
