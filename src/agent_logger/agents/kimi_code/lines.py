"""The lines of Kimi Code's `wire.jsonl`, decoded as far as they matter: each message is there twice, each usage three
times."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import decoded, salvaged, time_of_ms
from agent_logger.agents.source_files import File, RepeatedLines, raw_lines_of
from agent_logger.model.session import Block, Usage
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import fields_of
from agent_logger.providers.lenient import REFUSED, fitting
from agent_logger.providers.token_counts import TokenCounts

MAIN_AGENT = "main"  # the agent that a person talks to, and the name of its folder
STATE = "state.json"  # describes the session


class PromptOrigin(msgspec.Struct, gc=False):
    """What caused an input: `kind` is `user`, `injection`, `system_trigger`, and others."""

    kind: str = "user"
    name: str | None = None
    trigger: str | None = None


class KimiMessage(msgspec.Struct, gc=False):
    role: str = ""
    id: str | None = None
    content: Any = None
    origin: PromptOrigin | None = None


class KimiEvent(msgspec.Struct, gc=False):
    """An event of a step, which is one request to the model and the tools that its answer calls."""

    type: str = ""
    uuid: str | None = None  # of the step, in `step.begin` and `step.end`
    step: str | None = msgspec.field(name="stepUuid", default=None)  # in all others but `tool.result`
    part: Any = None  # a field of `content.part`
    call: str | None = msgspec.field(name="toolCallId", default=None)
    name: str | None = None  # fields of `tool.call`: this and the next
    args: Any = None
    result: Any = None  # a field of `tool.result`
    reason: str | None = msgspec.field(name="finishReason", default=None)  # fields of `step.end`: this and the rest
    message_id: str | None = msgspec.field(name="messageId", default=None)
    usage: Any = None


class KimiLine(msgspec.Struct, gc=False):
    """Any line. Its type decides which fields it has."""

    type: str = ""
    time: Any = None  # milliseconds
    input: Any = None  # fields of `turn.prompt` and `turn.steer`: this and the next two
    origin: PromptOrigin | None = None
    prompt_id: str | None = msgspec.field(name="promptId", default=None)
    message_id: str | None = msgspec.field(name="messageId", default=None)
    message: KimiMessage | str | None = None  # of `context.append_message`; of `turn.step.interrupted`, the error
    event: KimiEvent | None = None  # a field of `context.append_loop_event`
    kind: str | None = None  # fields of `llm.request`: this and the next two
    provider: str | None = None
    model: str | None = None
    usage: Any = None  # fields of `usage.record`: this and the next
    scope: str | None = msgspec.field(name="usageScope", default=None)
    source: str | None = None  # a field of `full_compaction.begin`
    summary: str | None = None  # fields of `context.apply_compaction`: this and the next two
    tokens_before: Any = msgspec.field(name="tokensBefore", default=None)
    tokens_after: Any = msgspec.field(name="tokensAfter", default=None)
    error: str | None = msgspec.field(name="errorMessage", default=None)  # a field of `turn.step.retrying`
    reason: str | None = None  # a field of `turn.ended`
    count: Any = None  # a field of `context.undo`
    agent: str | None = msgspec.field(
        name="subagentId", default=None
    )  # fields of `subagent.spawned`: this and the rest
    agent_kind: str | None = msgspec.field(name="subagentName", default=None)
    tool_call: str | None = msgspec.field(name="parentToolCallId", default=None)
    parent: str | None = msgspec.field(name="parentAgentId", default=None)
    description: str | None = None

    @property
    def at(self) -> datetime | None:
        return time_of_ms(self.time)


# Types of lines, and of events in them. Those that count also for the ledger, which needs no text:
_BILLED = frozenset({"step.begin", "step.end", "content.part", "tool.call", "llm.request", "usage.record"})
_SPOKEN = frozenset(
    {"turn.prompt", "turn.steer", "turn.ended", "turn.step.retrying", "turn.step.interrupted"}
    | {"context.append_message", "context.apply_compaction", "context.undo", "full_compaction.begin"}
    | {"tool.result", "subagent.spawned"}
)
_EVENT = "context.append_loop_event"
# The beginning of a line says what it is: half of a file is skipped without decoding.
_BEGINNING = re.compile(rb'\{"type":"([\w.]+)"(?:,"agentId":"[^"\\]*")?(?:,"event":\{"type":"([\w.]+)")?')
_REPEATED = (b'{"message":{"message":', b'{"turnId":')  # `agent.message.appended`, and when turns start and end
# The beginning of another line, which is glued to this one.
_NEXT = re.compile(rb'\{"type":"(?:context|full_compaction|llm|subagent|turn|usage)\.')

_decode = msgspec.json.Decoder(KimiLine).decode


def lines_of(file: File, *, spoken: bool) -> Iterator[KimiLine]:
    """Yield the lines that matter, in order; with `spoken`, also those that nothing was billed for."""
    kinds = frozenset(name.encode() for name in (_BILLED | _SPOKEN if spoken else _BILLED))
    repeats = RepeatedLines()
    for line in raw_lines_of(file):
        match = _BEGINNING.match(line)
        kind = (match[2] or match[1]) if match else None
        if kind in kinds:
            if not repeats.has(line):
                yield from _read(line)
        elif (kind or line.startswith(_REPEATED)) and not _NEXT.search(line, 1):
            continue
        else:
            yield from (each for each in _read(line) if _type_of(each).encode() in kinds)


def _type_of(line: KimiLine) -> str:
    return line.event.type if line.type == _EVENT and line.event else line.type


def _read(line: bytes) -> Iterator[KimiLine]:
    try:
        yield _decode(line) if line.count(b"{") + line.count(b"[") <= MOST_NESTED else _shallow_line(line)
    except REFUSED:
        yield from (fitting(KimiLine, fields) for fields in salvaged(line))


def _shallow_line(line: bytes) -> KimiLine:
    """Decode a line that may be nested too deeply to be kept. Raises those of `REFUSED`."""
    return fitting(KimiLine, decoded(line, line))


# ---------------------------------------------------------------- what the lines hold


def input_of(content: Any) -> str:
    """Return what was typed; a picture alone is `[image]`."""
    has_other = any(part.get("type") != "text" for part in base.parts_of(content))
    return base.joined_text(content).strip() or ("[image]" if has_other else "")


def block_of(part: Any) -> Block:
    """Return a part of the model's answer as it wrote it."""
    match part:
        case {"type": "text", "text": str(text)}:
            return base.text(text)
        case {"type": "think", "think": str(thought)}:
            return base.thinking(thought)
    return base.other(fields_of(part))


class _ToolResult(msgspec.Struct, gc=False):
    output: Any = None
    is_error: Any = msgspec.field(name="isError", default=False)


def result_of(event: KimiEvent) -> Block:
    result = fitting(_ToolResult, event.result)
    return base.result(event.call, result.output, is_error=result.is_error is True)


def usage_of(value: Any) -> Usage | None:
    """Return the tokens as they are billed; None if they are not understood, or are zeros, which stand for tokens that
    the provider did not count."""
    counts = TokenCounts(value)
    usage = counts.usage(
        counts("input_other"), counts("output"), counts("input_cache_read"), counts("input_cache_creation")
    )
    return usage if usage and any(usage.counts) else None
