"""The lines of Droid's sessions, and the settings beside them, decoded as far as they matter."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.objects import decoded, object_in, salvaged, time_of
from agent_logger.agents.source_files import File, raw_lines_of
from agent_logger.model.session import Block, Usage
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.blocks import anthropic, base
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import REFUSED, fitting
from agent_logger.providers.token_counts import usage_of

SETTINGS, BACKUP = ".settings.json", ".settings.json.bak"
CONTEXT = "context-"  # begins the ids of messages that Droid adds before an input


class DroidMessage(msgspec.Struct, gc=False):
    role: str = ""
    visibility: str | None = None  # none: of both the person and the model
    hook: str | None = msgspec.field(name="hookEventName", default=None)
    model: str | None = msgspec.field(name="modelId", default=None)
    openai_id: str | None = msgspec.field(name="openaiMessageId", default=None)
    summary: str | None = msgspec.field(name="openaiReasoningSummary", default=None)
    reasoning: str | None = msgspec.field(name="chatCompletionReasoningContent", default=None)

    @property
    def response_id(self) -> str | None:
        """The vendor's id of the response. Of the responses API, Droid keeps the id of an item in it."""
        return None if not self.openai_id or self.openai_id.startswith(("msg_", "rs_")) else self.openai_id


class SpokenMessage(DroidMessage, gc=False):
    content: Any = None


class DroidLine(msgspec.Struct, gc=False):
    """Any line. Its type decides which fields it has."""

    type: str = ""
    id: str | None = None
    parent_id: str | None = msgspec.field(name="parentId", default=None)
    timestamp: Any = None
    message: DroidMessage | None = None
    turn: str | None = msgspec.field(name="turnId", default=None)  # fields of `agent_turn_outcome`: this and the next
    reason: str | None = None
    summary_tokens: Any = msgspec.field(name="summaryTokens", default=None)  # fields of `compaction_state`: this, next
    summary_kind: str | None = msgspec.field(name="summaryKind", default=None)
    # Fields of `session_start`: the rest.
    title: str | None = None
    own_title: str | None = msgspec.field(name="sessionTitle", default=None)
    cwd: str | None = None
    parent: str | None = None
    forked_at: str | None = msgspec.field(name="forkedAtMessageId", default=None)
    caller: str | None = msgspec.field(name="callingSessionId", default=None)
    tool_call: str | None = msgspec.field(name="callingToolUseId", default=None)

    @property
    def at(self) -> datetime | None:
        return time_of(self.timestamp)

    @property
    def started_by(self) -> str | None:
        """The session whose tool call began this one. A fork of such a session is a person's."""
        return None if self.parent else self.caller


class SpokenLine(DroidLine, gc=False):
    message: SpokenMessage | None = None


_KINDS = frozenset({"session_start", "message", "compaction_state", "agent_turn_outcome"})
_decode_billed = msgspec.json.Decoder(DroidLine).decode
_decode_spoken = msgspec.json.Decoder(SpokenLine).decode


def lines_of(file: File, *, spoken: bool) -> Iterator[DroidLine]:
    """Yield the lines that matter, in order; with `spoken`, also what was said in them."""
    for line in raw_lines_of(file, unfinished=True):
        yield from (read for read in _read(line, spoken=spoken) if read.type in _KINDS)


def _read(line: bytes, *, spoken: bool) -> Iterator[DroidLine]:
    kind = SpokenLine if spoken else DroidLine
    try:
        if line.count(b"{") + line.count(b"[") <= MOST_NESTED:
            yield (_decode_spoken if spoken else _decode_billed)(line)
        else:
            yield fitting(kind, decoded(line, line))
    except REFUSED:
        yield from (fitting(kind, fields) for fields in salvaged(line))


def start_in(first_line: bytes) -> DroidLine:
    """Return what the first line says of the session."""
    start = next(_read(first_line, spoken=False), DroidLine())
    return start if start.type == "session_start" else DroidLine()


# ---------------------------------------------------------------- what a message says


def blocks_of(message: SpokenMessage) -> list[Block]:
    """Return the blocks of a message. What a model of OpenAI's thought is beside the content."""
    blocks = list(anthropic.blocks_of({"content": message.content}))
    thought = message.summary or message.reasoning
    if thought and not any(block.kind == "thinking" for block in blocks):
        blocks.insert(0, base.thinking(thought))
    return blocks


# ---------------------------------------------------------------- the settings beside the lines


class DroidSettings(msgspec.Struct, gc=False):
    model: str | None = None
    usage: Any = msgspec.field(name="tokenUsage", default=None)
    children: Json = msgspec.field(name="childInclusiveTokenUsageBySessionId", default_factory=dict)
    tags: list[Any] = []

    @property
    def counted(self) -> Usage | None:
        """The tokens of the session's own calls; None if they are not known. Zeros stand for calls whose server
        counted nothing."""
        usage = usage_of(self.usage)
        return usage if usage and any(usage.counts) else None

    @property
    def calling(self) -> Json:
        """The session and the tool call that began this one, if it is a sub-agent's."""
        of_agent = (fields_of(tag).get("metadata") for tag in self.tags if fields_of(tag).get("name") == "subagent")
        return fields_of(next(of_agent, None))


_USAGE = re.compile(r'"tokenUsage"\s*:\s*(\{[^{}]*\})')
_MODEL = re.compile(r'"model"\s*:\s*"([^"\\]*)"')


def settings_in(text: str | None) -> DroidSettings:
    """Read settings. Of a document that is damaged, what can be read counts."""
    if not text:
        return DroidSettings()
    settings = fitting(DroidSettings, object_in(text.encode("utf-8", "replace")))
    if settings.usage is None and (usage := _USAGE.search(text)):
        settings.usage = object_in(usage[1].encode("utf-8", "replace"))
        model = _MODEL.search(text)
        settings.model = settings.model or (model[1] if model else None)
    return settings
