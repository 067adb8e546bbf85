"""Codex rollouts: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, one file per thread, appended to by every resume.

What happened is in `response_item` lines, in the form of the responses API; `event_msg` lines repeat it for the screen.
Three things make it more than a list:

- Usage comes beside the items, after them or (before 0.77) before them; a turn is what is between.
- A fork begins with a copy of its parent's lines, with new times (since 2026: with a reference instead). The copy is
  cut: it was read in the parent's file, and billed there.
- Sub-agents are rollouts of their own, whose first line names the thread that started them.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from agent_logger.agents.codex.lines import (
    AnyLine,
    CodexContext,
    CodexEvent,
    CodexItem,
    CodexRecord,
    Compacted,
    lines_of,
)
from agent_logger.agents.codex.meta import CodexMeta
from agent_logger.agents.codex.usage import Meter
from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import time_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Block, Compaction, Session, Usage
from agent_logger.providers.blocks.openai_responses import item_blocks, item_result
from agent_logger.providers.json_values import Json, fields_of, text_of

AGENT_NAME = "codex"
BURST = timedelta(seconds=0.5)  # the lines of a copy come faster than this, one after the other
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_ID_IN_NAME = re.compile(r"rollout-[0-9T-]+?-([0-9a-f-]{36})\.jsonl")


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    main = _Rollout(source.main, MAIN)
    main.read_all()
    for file in source.others:
        other = _Rollout(file, None)
        other.read_all()
        main.conversation.place(other.conversation.turns())
        main.conversation.compactions += other.conversation.compactions
    conversation, meta = main.conversation, main.meta
    return Session(
        id=meta.id,
        agent=AGENT_NAME,
        title=conversation.title(),
        project=meta.cwd,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        parent=_parent(meta),
        compactions=conversation.compactions,
    )


def parent_of(source: SourceFiles) -> str | None:
    """Return the parent that the first line names."""
    meta = next((line for _, line in lines_of(source.main) if isinstance(line, CodexMeta)), None)
    return _parent(meta) if meta else None


def _parent(meta: CodexMeta) -> str | None:
    return meta.forked_from or meta.spawned_by


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield the responses with the same usage as the session's, without its texts."""
    session: str | None = None
    for file in (source.main, *source.others):
        rollout = _Rollout(file, MAIN if file is source.main else None)
        for at, usage, response_id in rollout.read_usage():
            session = session or rollout.meta.id
            yield ModelResponse(
                family="openai",
                message_id=response_id,
                model=rollout.model,
                usage=usage,
                tier=rollout.tier,
                at=at,
                session=session,
                project=rollout.meta.cwd,
                agent=AGENT_NAME,
                thread=rollout.thread,
            )
        session = session or rollout.meta.id


class _Rollout:
    """A rollout, read line by line."""

    def __init__(self, file: File, thread: str | None) -> None:
        self.conversation = Conversation()
        self.meta = CodexMeta(id=_id_of_name(file.name))
        self.model: str | None = None
        self.tier: str | None = None
        self._file = file
        self._thread = thread
        self._has_head = False  # the first line was read
        self._copied = False  # the next lines are copies of the parent's
        self._dated = False  # ids of turns say whose they are
        self._last_time: datetime | None = None
        self._meter = Meter()
        self._turn: OpenTurn | None = None
        self._open = False  # the turn may get more items
        self._early: tuple[Usage | None, str | None, datetime | None] | None = None  # usage whose items are to come

    @property
    def thread(self) -> str:
        return self._thread or f"agent:{self.meta.id}"

    def read_all(self) -> None:
        for at, line in lines_of(self._file):
            self._follow(line, at)
            if type(line) is CodexItem:
                if not self._copied:
                    self._item(line.fields, at)
                continue
            if used := self._used(line):
                self._take_usage(*used, at)
            if not self._copied:
                self._happened(line, at)
        self._settle_early()

    def read_usage(self) -> Iterator[tuple[datetime | None, Usage | None, str | None]]:
        for at, line in lines_of(self._file, items=self._looks_for_a_pause):
            self._follow(line, at)
            if used := self._used(line):
                yield at, *used

    # ------------------------------------------------------------ whose lines, which model

    def _follow(self, line: AnyLine, at: datetime | None) -> None:
        if self._looks_for_a_pause():
            self._watch(at)
        if type(line) is CodexItem:
            return
        match line:
            case CodexMeta():
                self._take_meta(line)
            case CodexContext():
                self.model = line.model or self.model
                self.tier = line.service_tier or self.tier
                self._take_turn_id(line.turn_id)
            case CodexEvent(type="task_started"):
                self._take_turn_id(line.turn_id)

    def _take_meta(self, meta: CodexMeta) -> None:
        if not self._has_head:
            self._has_head, self.meta = True, meta
            self._copied = meta.forked_from is not None
            self.conversation.see(time_of(meta.started))
        elif meta.id != self.meta.id:
            self._copied = True

    def _take_turn_id(self, turn: str | None) -> None:
        """Read a turn's id, which contains the time: a turn that began before its session is the parent's."""
        started = time_of(self.meta.started) if self._has_head else None
        if turn and started and _UUID7.fullmatch(turn):
            began = int(turn[:8] + turn[9:13], 16)  # milliseconds
            self._copied, self._dated = began < int(started.timestamp() * 1000), True

    def _looks_for_a_pause(self) -> bool:
        """Whether only a pause can show where a copy ends: it is written in one go, and its turns have no ids."""
        return self._copied and not self._dated

    def _watch(self, at: datetime | None) -> None:
        if at and self._last_time and at - self._last_time > BURST:
            self._copied = False
        self._last_time = at or self._last_time

    # ------------------------------------------------------------ usage

    def _used(self, line: AnyLine) -> tuple[Usage | None, str | None] | None:
        """Return the usage of a response, with its id. Copied lines are counted too, because the counter continues
        after them."""
        match line:
            case CodexRecord():
                used, response_id = self._meter.record(line.usage), line.response_id
            case CodexEvent(type="token_count"):
                used, response_id = self._meter.counted(line.info), None
            case _:
                return None
        return (used.usage, response_id) if used and not self._copied else None

    def _take_usage(self, usage: Usage | None, response_id: str | None, at: datetime | None) -> None:
        self._settle_early()
        if self._turn and not self._turn.is_counted:
            self._turn.count(usage, response_id)
            self._turn.see(at)
            self._open = False
        else:
            self._early = usage, response_id, at

    def _settle_early(self) -> None:
        """Make a turn for usage that no item followed: it was billed all the same."""
        if self._early:
            self._begin(self._early[2])
            self._open = False

    def _begin(self, at: datetime | None) -> OpenTurn:
        self._turn = turn = OpenTurn(thread=self.thread, model=self.model, tier=self.tier)
        self._open = True
        turn.see(at)
        if self._early:
            turn.count(*self._early[:2])
            self._early = None
        self.conversation.add(turn)
        self.conversation.see(at)
        return turn

    # ------------------------------------------------------------ what happened

    def _happened(self, line: AnyLine, at: datetime | None) -> None:
        match line:
            case CodexEvent(type="task_complete" | "turn_complete"):
                self._settle_early()
                self.conversation.end("failed" if line.error else "result", at)
            case CodexEvent(type="turn_aborted"):
                if self._turn and not self._turn.is_counted:
                    self._turn.complete = False
                self.conversation.end("cut", at)
            case Compacted():
                self.conversation.compactions.append(Compaction(at=at, thread=self.thread))
                if self._early:  # the response that wrote the summary is not among the items
                    turn = self._begin(at)
                    self._open = False
                    summary = Block(kind="other", text=line.message or "", raw={"type": "compacted"})
                    self.conversation.put(turn, summary, at)

    def _item(self, item: Json, at: datetime | None) -> None:
        """Add an item. Only what a model says, thinks or calls makes a turn. What else Codex puts into the history
        (tools, settings, marks of a compaction), and items newer than this, belong to no turn."""
        kind, role = text_of(item.get("type")) or "", item.get("role")
        if kind == "message" and role == "user":
            self._open = False
            self._user(item, at)
        elif kind.endswith("_output"):
            self._result(item, at)
        elif _is_by_model(kind, role):
            turn = self._turn if self._turn and self._open else self._begin(at)
            for block in item_blocks(item):
                self.conversation.put(turn, _named(block, item), at)

    def _result(self, item: Json, at: datetime | None) -> None:
        result = item_result(item)
        if result.id is not None:
            self._open = False
            self.conversation.result(result, at)

    def _user(self, item: Json, at: datetime | None) -> None:
        text = _typed(item)
        if text:
            self._settle_early()
            self.conversation.ask(text, at)


def _is_by_model(kind: str, role: object) -> bool:
    """Whether a model made the item. Calls of tools all end in `_call`; some name a role, but never another than the
    model's."""
    if kind == "message":
        return role == "assistant"
    return (kind == "reasoning" or kind.endswith("_call")) and role in (None, "assistant")


def _id_of_name(name: str) -> str:
    """Return the session's id in the name of a file whose first line is lost."""
    match = _ID_IN_NAME.search(name)
    return match[1] if match else name


def _typed(item: Json) -> str | None:
    """Return what a person typed. Newer versions mark every piece; in others the beginning of the text decides."""
    content = item.get("content")
    parts = [part for part in content if type(part) is dict] if type(content) is list else []
    texts = [text_of(part.get("text")) or "" for part in parts]
    kinds = fields_of(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    if type(kinds) is list and len(kinds) == len(parts):
        mine = [text for text, kind in zip(texts, kinds, strict=True) if str(kind).startswith("user.")]
        return "\n".join(filter(None, mine)) or ("[image]" if mine else None)
    if any(part.get("type") == "input_image" for part in parts):
        return typed(texts) or "[image]"
    return typed(texts)


def _named(block: Block, item: Json) -> Block:
    """Add the server's name to a call of an MCP server's tool."""
    space = item.get("namespace")
    if block.kind == "tool_use" and type(space) is str and space.startswith("mcp__"):
        return replace(block, name=f"{space.removesuffix('__')}__{block.name}")
    return block
