"""The lines of Grok Build's `updates.jsonl`: what the agent told the program that shows it, one update in each line."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import decoded, salvaged, time_of_ms
from agent_logger.agents.source_files import File, RepeatedLines, raw_lines_of
from agent_logger.model.session import Block, ModelTotal, Usage
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import REFUSED, fitting
from agent_logger.providers.token_counts import TokenCounts


class Update(msgspec.Struct, gc=False):
    """An update. Its kind decides which fields it has."""

    kind: str = msgspec.field(name="sessionUpdate", default="")
    content: Any = None  # of a message: a part; of a tool: a list of parts
    call: str | None = msgspec.field(name="toolCallId", default=None)  # fields of tools: this and the next four
    title: str | None = None
    status: str | None = None
    given: Any = msgspec.field(name="rawInput", default=None)
    output: Any = msgspec.field(name="rawOutput", default=None)
    about: Json | None = msgspec.field(name="_meta", default=None)  # also of a message from the user
    prompt: str | None = msgspec.field(
        name="prompt_id", default=None
    )  # fields of `turn_completed`: this and the next 3
    reason: str | None = msgspec.field(name="stop_reason", default=None)
    result: str | None = msgspec.field(name="agent_result", default=None)
    usage: Json | None = None
    type: str | None = None  # fields of `retry_state`: this and the next two
    error: str | None = msgspec.field(name="message", default=None)
    cause: Any = msgspec.field(name="reason", default=None)
    agent: str | None = msgspec.field(name="child_session_id", default=None)  # of `subagent_spawned`: this and the next
    parent_prompt: str | None = msgspec.field(name="parent_prompt_id", default=None)
    tokens_before: Any = None  # fields of `auto_compact_completed`: this and the next
    tokens_after: Any = None


class About(msgspec.Struct, gc=False):
    event: str | None = msgspec.field(name="eventId", default=None)  # the session that wrote it first, and a number
    time: Any = msgspec.field(name="agentTimestampMs", default=None)
    prompt: str | None = msgspec.field(name="promptId", default=None)
    # When the answer of the model began that the update belongs to: the same in all updates of one response.
    stream: Any = msgspec.field(name="streamStartMs", default=None)


class _Parameters(msgspec.Struct, gc=False):
    update: Update | None = None
    about: About | None = msgspec.field(name="_meta", default=None)


class _Line(msgspec.Struct, gc=False):
    timestamp: Any = None  # seconds
    params: _Parameters | None = None


class UpdateLine(msgspec.Struct, gc=False):
    update: Update
    about: About
    at: datetime | None


_decode = msgspec.json.Decoder(_Line).decode
_KIND = re.compile(rb'"sessionUpdate":"(\w+)"')
_KIND_BYTES = 250  # the kind is in the beginning of a line
BILLED = frozenset(
    {b"turn_completed", b"subagent_spawned", b"user_message_chunk", b"agent_message_chunk", b"agent_thought_chunk"}
    | {b"tool_call", b"retry_state"}
)
SPOKEN = BILLED | {b"tool_call_update", b"auto_compact_completed"}
_LINE = b'{"timestamp":'
_STARTED = b'"status":null}}}}'  # the end of an update of a tool that says nothing of its result


def updates_of(file: File, *, spoken: bool) -> Iterator[UpdateLine]:
    """Yield the updates that matter, in order; with `spoken`, also those that nothing was billed for."""
    kinds = SPOKEN if spoken else BILLED
    repeats = RepeatedLines()
    for line in raw_lines_of(file):
        match = _KIND.search(line, 0, _KIND_BYTES)
        is_whole = match is not None and line.find(_LINE, 1) < 0
        if is_whole and match and (match[1] not in kinds or line.endswith(_STARTED)):
            continue
        if repeats.has(line):
            continue
        for read in _read(line):
            if read.params and read.params.update and read.params.update.kind.encode() in kinds:
                about = read.params.about or About()
                yield UpdateLine(read.params.update, about, time_of_ms(about.time) or _seconds(read.timestamp))


def _seconds(since_1970: Any) -> datetime | None:
    return time_of_ms(since_1970 * 1000) if type(since_1970) is int else None


def _read(line: bytes) -> Iterator[_Line]:
    try:
        yield (
            _decode(line) if line.count(b"{") + line.count(b"[") <= MOST_NESTED else fitting(_Line, decoded(line, line))
        )
    except REFUSED:
        yield from (fitting(_Line, fields) for fields in salvaged(line))


# ---------------------------------------------------------------- what they hold


def text_in(part: Any) -> str:
    """Return the text of a part of a message."""
    return text_of(fields_of(part).get("text")) or ""


def tool_use_of(update: Update) -> Block:
    tool = fields_of((update.about or {}).get("x.ai/tool"))
    return base.use(update.call, text_of(tool.get("name")) or update.title, update.given)


ENDED = ("completed", "failed")  # of a tool
# The names under which tools say what the model was told, and under which they give bytes.
_TEXTS = ("content", "output_for_prompt", "tool_output_for_prompt", "output", "stdout")


def result_of(update: Update) -> Block:
    """Return the result of a tool. Its text is in the parts, as a rule; otherwise where its kind of tool has it, as
    text or as a list of bytes."""
    raw = fields_of(update.output)
    parts = [fields_of(part).get("content") for part in base.parts_of(update.content)]
    text = "\n".join(filter(None, map(text_in, parts))) or _text_of(raw)
    failed = update.status == "failed" or raw.get("exit_code") not in (None, 0)
    return base.result(update.call, text, is_error=failed)


def _text_of(output: Json) -> str:
    for fields in (output, *(inner for inner in output.values() if type(inner) is dict)):
        texts = (_plain(fields.get(name)) for name in _TEXTS)
        if text := next(filter(None, texts), None):
            return text
    return ""


def _plain(value: Any) -> str | None:
    if type(value) is list:
        try:
            return bytes(value).decode("utf-8", "replace")
        except (TypeError, ValueError):
            return None
    return text_of(value)


# ---------------------------------------------------------------- what was billed


class TurnUsage(msgspec.Struct, frozen=True, gc=False):
    """What a prompt took: the requests of the agent, and those of the sub-agents that ended before it."""

    models: tuple[ModelTotal, ...]
    calls: int  # requests, those of sub-agents included
    own_calls: int | None  # requests of the agent; none: the line does not say


def turn_usage_of(fields: Json) -> TurnUsage | None:
    """Return what is reported of a prompt; None if nothing is. Tokens that are not understood are unknown."""
    by_model = {name: counted for name, counted in fields_of(fields.get("modelUsage")).items() if type(counted) is dict}
    models = tuple(ModelTotal(model=name, usage=_usage(counted)) for name, counted in by_model.items())
    if not models and (usage := _usage(fields)):
        models = (ModelTotal(model=text_of(fields.get("primaryModelId")), usage=usage),)
    if not models:
        return None
    return TurnUsage(models, _count(fields.get("modelCalls")) or 0, _count(fields.get("numTurns")))


def _usage(fields: Json) -> Usage | None:
    """Convert token counts. The input includes what was read from the cache, and what was written into it; the output
    includes the reasoning, unless the total says otherwise."""
    counts = TokenCounts(fields)
    given, output, reasoning = counts("input_tokens"), counts("output_tokens"), counts("reasoning_tokens")
    read, written = counts("cached_read_tokens"), counts("cache_creation_tokens")
    apart = reasoning if reasoning and counts("total_tokens") == given + output + reasoning else 0
    return counts.usage(given - read - written, output + apart, read, written)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
