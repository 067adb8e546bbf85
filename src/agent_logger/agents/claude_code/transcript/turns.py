"""Turns while a file of Claude Code's is read: one response is several lines, and its tools' results come later."""

import re
from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.records import (
    AssistantRecord,
    ClaudeMessage,
    MessageUsage,
    ToolUseResult,
    UserRecord,
)
from agent_logger.agents.objects import in_utc
from agent_logger.model.prices import priced
from agent_logger.model.session import SYNTHETIC, Block, Turn, Usage, Witness
from agent_logger.providers.blocks.registry import answer_blocks
from agent_logger.providers.registry import ANTHROPIC

TRANSCRIPT: frozenset[Witness] = frozenset({"transcript"})

# The forms of ids that no two responses share. By these ids, lines and sessions of a response are found, so a gateway's
# UUID counts, too. The ledger would lose a billed response by a wrong match; it is stricter: `UNIQUE_ID` in
# catalog/ledger/ledger.py.
VENDOR_ID = re.compile(r"(?:msg|req|toolu)_.{12,}|[0-9a-fA-F-]{32,36}")


def is_unique(message_id: str | None) -> bool:
    """Whether no other response has this message id, judging by its form."""
    return message_id is not None and VENDOR_ID.match(message_id) is not None


def time_of(timestamp: str | None) -> datetime | None:
    """Read a time into a form that can be compared with others."""
    if not timestamp:
        return None
    try:
        time = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return time if time.tzinfo is UTC and MINYEAR < time.year < MAXYEAR else in_utc(time)


class Billed(msgspec.Struct, eq=False, gc=False, kw_only=True):
    """The usage of a response, from the most final of its lines."""

    reported: MessageUsage | None = None  # the source of `usage`
    usage: Usage | None = None
    tier: str | None = None
    final: bool = False  # `usage` comes from a copy that was complete
    unread: bool = False  # a usage was reported, and not understood

    def count(self, reported: MessageUsage, *, final: bool) -> None:
        if final == self.final and reported == self.reported:
            return  # most lines repeat it
        if not reported.is_understood:
            self.unread = True
            return
        usage = reported.usage()
        self.tier = reported.service_tier or self.tier
        if self.usage is None or more_final(usage, self.usage, final=final, was_final=self.final):
            self.reported, self.usage, self.final = reported, usage, final


class TurnLines(Billed, eq=False, gc=False):
    """A response, as far as its lines were read. A Struct, because it is made as often as a `Turn`."""

    message_id: str | None
    thread: str
    is_unique: bool = False  # no other response has this id
    request_id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    aborted: bool = False
    failed: bool = False  # the client reports an error in the model's place
    started: datetime | None = None
    ended: datetime | None = None
    blocks: list[Block] = []
    results: list[Block] = []
    copies_by_key: dict[object, str | set[str]] = {}  # texts of blocks: lines may repeat them

    def take(self, record: AssistantRecord, message: ClaudeMessage, at: datetime | None) -> list[Block]:
        """Add a line. Returns the blocks that are new."""
        self.request_id = record.request_id or self.request_id
        self.model = message.model or self.model
        self.stop_reason = message.stopped or self.stop_reason
        if record.is_aborted_mid_stream:
            self.aborted = True
        if record.is_api_error_message:
            self.failed = True
        self.see(at)
        reported = message.usage or record.usage
        if reported and self.model != SYNTHETIC:
            self.count(reported, final=message.stopped is not None)
        new = [block for block in blocks_of(message.content, at) if self._is_new(block, record.api_block_index)]
        self.blocks += new
        return new

    def see(self, at: datetime | None) -> None:
        if at is None:
            return
        if self.started is None or self.ended is None:
            self.started = self.ended = at
        elif at > self.ended:
            self.ended = at
        elif at < self.started:
            self.started = at

    def _is_new(self, block: Block, index: int | None) -> bool:
        """Whether a block is new: lines may repeat blocks of earlier lines of the same response."""
        if block.kind in ("other", "image"):
            return True
        used = block.id if block.kind == "tool_use" else None
        # Compare lengths first: hashing a text takes as long as reading it.
        key: object = used or (block.kind, len(block.text), index)
        copies = self.copies_by_key.get(key)
        if copies is None:
            self.copies_by_key[key] = block.text
            return True
        if isinstance(copies, str):
            copies = self.copies_by_key[key] = {copies}
        if used or block.text in copies:
            return False
        copies.add(block.text)
        return True

    def waits(self) -> bool:
        """Whether the turn called tools, so that their results, or the model's answer to them, are still to come."""
        return any(block.kind == "tool_use" for block in self.blocks)

    def as_turn(self) -> Turn:
        turn = Turn(
            message_id=self.message_id,
            request_id=self.request_id,
            thread=self.thread,
            model=self.model,
            service_tier=self.tier,
            stop_reason=self.stop_reason,
            blocks=[*self.blocks, *self.results],
            usage=self.usage,
            unread_usage=self.unread and self.usage is None,
            started=self.started,
            ended=self.ended,
            witnesses=TRANSCRIPT,
            complete=not self.aborted,
        )
        return priced(turn)


def more_final(usage: Usage, before: Usage, *, final: bool, was_final: bool) -> bool:
    """Whether this copy of a response, rather than the one before, says what was billed: the one that ended, else the
    one that goes further."""
    if final != was_final:
        return final
    return usage.output_tokens >= before.output_tokens


# ---------------------------------------------------------------- blocks


def blocks_of(content: Any, at: datetime | None) -> list[Block]:
    """Return the blocks of a message's content: a text, or a list. The common kinds are made directly here, for
    speed."""
    if isinstance(content, list):
        return [_block(part, at) for part in content if isinstance(part, dict)]
    return [Block(kind="text", text=content, at=at)] if content and isinstance(content, str) else []


def _block(part: dict[str, Any], at: datetime | None) -> Block:
    kind = part.get("type")
    if kind == "text" or kind == "thinking":  # not `in`: mypy would not know which
        text = part.get(kind)
        if isinstance(text, str):
            return Block(kind=kind, text=text, at=at)
    elif kind == "tool_use":
        called, name = part.get("id"), part.get("name")
        if isinstance(called, str) and isinstance(name, str):
            return Block(kind="tool_use", id=called, name=name, input=part.get("input"), at=at)
    elif kind == "tool_result":
        called, content = part.get("tool_use_id"), part.get("content")
        if isinstance(called, str) and isinstance(content, str):
            is_error = part.get("is_error") is True
            return Block(kind="tool_result", text=content, id=called, is_error=is_error, at=at)
    return replace(answer_blocks(ANTHROPIC, {"content": [part]})[0], at=at)


def as_message(message: ClaudeMessage | str | None) -> ClaudeMessage:
    """Return the message; a text is short for a message that says it."""
    return ClaudeMessage(content=message) if isinstance(message, str) else message or ClaudeMessage()


_SAVED = re.compile(r"\s*<persisted-output>.*?saved to: (\S+)", re.DOTALL)
_SIDE_FILE = re.compile(r"[^/\\]+[/\\]tool-results[/\\][^/\\]+\Z")


def with_side_file(result: Block, record: UserRecord, text: Callable[[str], str | None]) -> Block:
    """Return the result with its whole text, where that was too long for the line and its file still exists."""
    name = _side_file(result, record.tool_use_result)
    whole = text(name) if name else None
    return result if whole is None else replace(result, text=whole)


def _side_file(result: Block, outcome: ToolUseResult | str | list[Any] | None) -> str | None:
    path = outcome.persisted_output_path if isinstance(outcome, ToolUseResult) else None
    if path is None and result.text.startswith("<persisted-output>") and (saved := _SAVED.match(result.text)):
        path = saved[1]
    match = _SIDE_FILE.search(path) if path else None
    return match[0].replace("\\", "/") if match else None
