"""Copilot CLI's sessions: `session-state/<id>/events.jsonl`, one event per line, appended to by every resume.

- A response is a `session.usage_record` and an `assistant.message`, with the vendor's id in both. Its tools are run by
  `tool.execution_…` events, in any order.
- Sub-agents are in the same file: their events have an `agentId`. Before that, their messages named the tool call that
  started them.
- A fork (`/fork`) begins with a copy of its source's events, with their ids and times. They are kept, because the
  source may be gone; the ledger recognises them by the ids of the responses.
- `session.shutdown` has totals by model. Older versions have no other counts; in newer ones the totals show what is
  missing, as after damage.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenExchange, OpenTurn
from agent_logger.agents.copilot_cli.description import field_of
from agent_logger.agents.copilot_cli.files import DESCRIPTION, EVENTS, session_id
from agent_logger.agents.copilot_cli.lines import (
    BILLING_EVENTS,
    FIRST_EVENTS,
    SESSION_EVENTS,
    AgentStart,
    AnswerHead,
    AssistantMessage,
    CopilotEvent,
    CopilotStart,
    ModelChange,
    SessionError,
    SessionInfo,
    Shutdown,
    SideCall,
    Summary,
    ToolEnd,
    ToolStart,
    TurnMark,
    UsageRecord,
    UserMessage,
    events_in,
)
from agent_logger.agents.copilot_cli.results import blocks_of, result_block
from agent_logger.agents.copilot_cli.usage import ProcessTotals, compaction_usage, count_of, response_usage, side_usage
from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.ids import UUID_PATTERN
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import (
    AGENT_PREFIX,
    MAIN,
    SIDE,
    SYNTHETIC,
    Block,
    Compaction,
    Exchange,
    Session,
    SubAgent,
    Turn,
)
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import fields_of

AGENT_NAME = "copilot-cli"
UNKNOWN = "unknown"  # the family of responses without an id
OPENAI = "openai"
LONGEST_CALL_MS = 3_600_000
# Parent and fork, in a sentence for people.
_FORKED = re.compile(rf"Forked from .*\(({UUID_PATTERN})\) as .*\(({UUID_PATTERN})\)\.?", re.DOTALL)


@dataclass(slots=True)
class _CopilotTurn(OpenTurn):
    family: str = UNKNOWN
    error: str | None = None
    has_message: bool = False

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error)


@dataclass(slots=True)
class _CopilotExchange(OpenExchange):
    was_interrupted: bool = False  # its process ended while it was in flight

    def as_exchange(self, number: int, *, last: bool) -> Exchange:
        exchange = OpenExchange.as_exchange(self, number, last=last)
        if not self.was_interrupted or self.end_reason:
            return exchange
        return replace(exchange, complete=False, end_reason=None if last else "input")


@dataclass(slots=True)
class _Thread:
    """The main agent, or a sub-agent."""

    name: str
    exchange: OpenExchange | None = None  # the one in flight when a sub-agent began
    model: str | None = None
    latest: _CopilotTurn | None = None
    started_by: str | None = None  # the tool call
    kind: str | None = None
    description: str | None = None
    turns: list[_CopilotTurn] = field(default_factory=list)


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    file = _SessionFile(source, says_all=True)
    conversation = file.conversation
    return Session(
        id=file.id,
        agent=AGENT_NAME,
        title=file.title(source) or conversation.title(),
        project=file.project,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        side_turns=[turn.as_turn() for turn in file.turns if turn.thread == SIDE],
        parent=file.parent,
        agents=file.agents(),
        compactions=conversation.compactions,
        totals=file.totals.reported,
    )


def parent_of(source: SourceFiles) -> str | None:
    """Return the session that this one was forked from. A fork's first event is later than the copies after it."""
    session, started = session_id(source.main.name), None
    for event in events_in(source.main, FIRST_EVENTS):
        if isinstance(event.data, CopilotStart) and event.kind == "session.start":
            session, started = event.data.session or session, event.at
        elif isinstance(event.data, SessionInfo):
            if parent := _forked_from(event.data, session):
                return parent
        elif event.at and (started is None or event.at >= started):
            return None
    return None


def _forked_from(info: SessionInfo, session: str) -> str | None:
    match = _FORKED.match(info.message or "") if info.kind == "fork" else None
    return match[1] if match and match[2] == session else None


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    return _responses(_SessionFile(source, says_all=False))


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    """Return the responses, and what the client counts in all where the responses do not make that up."""
    file = _SessionFile(source, says_all=False)
    totals = [
        ReportedTotal(session=file.id, project=file.project, agent=AGENT_NAME, family=UNKNOWN, total=total)
        for total in file.totals.reported
    ]
    return list(_responses(file)), totals


def _responses(file: "_SessionFile") -> Iterator[ModelResponse]:
    for turn in file.turns:
        if turn.is_counted and turn.model != SYNTHETIC:
            yield turn.as_response(family=turn.family, session=file.id, project=file.project, agent=AGENT_NAME)


class _SessionFile:
    """A session file, read event by event. `says_all`: with the conversation, not only with what was billed."""

    def __init__(self, source: SourceFiles, *, says_all: bool) -> None:
        self.conversation = Conversation()
        self.turns: list[_CopilotTurn] = []  # all responses, in the order of the file
        self.totals = ProcessTotals()
        self.id = session_id(source.main.name)
        self.project: str | None = None
        self.parent: str | None = None
        self._threads: dict[str, _Thread] = {}
        self._main = self._thread(None, None)
        self._by_id: dict[tuple[str, str], _CopilotTurn] = {}  # the latest response with this id
        self._callers: dict[str, _Thread] = {}  # the thread of each tool call
        self._made_up: set[str] = set()  # tool calls that no model made
        self._side_call: SideCall | None = None
        self._interaction: str | None = None  # the client's id of the exchange in flight
        self._has_ids = False  # the file has ids of responses
        self._is_working = False  # the main agent
        for event in events_in(source.main, SESSION_EVENTS if says_all else BILLING_EVENTS):
            self._take(event)
        self.totals.end()
        self._settle()

    def title(self, source: SourceFiles) -> str | None:
        if not source.main.name.endswith(EVENTS):
            return None
        text = source.text(source.main.name.removesuffix(EVENTS) + DESCRIPTION) or ""
        self.project = self.project or field_of(text, "cwd")
        return field_of(text, "name") or field_of(text, "summary")

    def agents(self) -> list[SubAgent]:
        return [
            SubAgent(
                thread=thread.name,
                parent_thread=self._callers[thread.started_by].name if thread.started_by in self._callers else MAIN,
                tool_use_id=thread.started_by,
                kind=thread.kind,
                description=thread.description,
            )
            for thread in self._threads.values()
            if thread is not self._main
        ]

    def _take(self, event: CopilotEvent) -> None:
        data = event.data
        thread = self._thread(event.agent, getattr(data, "caller", None))
        match data:
            case UsageRecord():
                self._count(data, thread, event.at)
            case AssistantMessage():
                self._answer(data, thread, event.at)
            case AnswerHead():
                self._turn_of(data.response_id, data.model, thread, event.at)
            case UserMessage():
                self._ask(data, thread, event.at)
            case ToolStart():
                self._call(data, thread, event.at)
            case ToolEnd():
                self._result(data, thread, event.at)
            case TurnMark():
                self._mark(event.kind, data, thread, event.at)
            case AgentStart():
                self._start_agent(data, event)
            case CopilotStart():
                self._begin(event.kind, data)
            case SessionInfo():
                self.parent = _forked_from(data, self.id) or self.parent
            case ModelChange():
                thread.model = data.model or thread.model
            case SessionError():
                self._fail(data, thread, event.at)
            case SideCall():
                self._call_aside(data, event.at)
            case Summary():
                self._compact(data, thread, event.at)
            case Shutdown():
                self.totals.shut_down(data, event.at)
        self.conversation.see(event.at)

    # ------------------------------------------------------------ whose events

    def _thread(self, agent: str | None, caller: str | None) -> _Thread:
        """Return the thread of an event. Before agents had ids, the tool call that started one named it."""
        name = AGENT_PREFIX + (agent or caller or "") if agent or caller else MAIN
        if name not in self._threads:
            self._threads[name] = _Thread(name)
            if name != MAIN and self.conversation.exchanges:
                self._threads[name].exchange = self.conversation.exchanges[-1]
        thread = self._threads[name]
        thread.started_by = thread.started_by or caller
        return thread

    def _start_agent(self, start: AgentStart, event: CopilotEvent) -> None:
        thread = self._thread(event.agent, start.call)
        thread.started_by = start.call or thread.started_by
        thread.kind = start.kind or thread.kind
        thread.description = start.description or start.name or thread.description

    def _begin(self, kind: str, start: CopilotStart) -> None:
        self._main.model = start.model or self._main.model
        self.project = (start.context.cwd if start.context else None) or self.project
        if kind == "session.start" and start.session:
            self.id = start.session
        exchange = self.conversation.exchanges[-1] if self.conversation.exchanges else None
        if self._is_working and isinstance(exchange, _CopilotExchange):
            exchange.was_interrupted = True
        self._is_working = False

    # ------------------------------------------------------------ responses

    def _count(self, record: UsageRecord, thread: _Thread, at: datetime | None) -> None:
        if (used := record.usage) is None:
            return
        if thread is self._main and used.accounting and used.accounting.session != self.id:
            self.parent = self.parent or used.accounting.session  # a copy: another session counted it
        turn = self._by_id.get((thread.name, used.response_id or ""))
        if turn is None or turn.usage is not None:
            turn = self._new_turn(used.response_id, used.model, thread)
        turn.model = used.model or turn.model
        turn.stop_reason = used.finish_reason
        turn.count(response_usage(used), used.response_id)
        turn.family = _family(used.response_id, used.endpoint)
        turn.see(_before(at, used.milliseconds))
        self.totals.add(turn.message_id, turn.usage, turn.started)

    def _turn_of(
        self, response_id: str | None, model: str | None, thread: _Thread, at: datetime | None
    ) -> _CopilotTurn:
        """Return the turn of a message: that of its usage, which comes first; else a new one, whose usage is not in the
        file."""
        turn = self._by_id.get((thread.name, response_id or ""))
        if turn is None:
            turn = self._new_turn(response_id, model, thread)
            turn.see(at)
            if response_id is None and self._has_ids:
                turn.model = SYNTHETIC
            elif response_id:
                turn.count(None, response_id)
                turn.family = _family(response_id, None)
            if turn.model != SYNTHETIC:
                self.totals.add(response_id, None, at)
        turn.has_message = True
        return turn

    def _new_turn(self, response_id: str | None, model: str | None, thread: _Thread) -> _CopilotTurn:
        turn = _CopilotTurn(thread=thread.name, model=model or thread.model, family=UNKNOWN)
        turn.message_id = response_id
        self.turns.append(turn)
        thread.turns.append(turn)
        thread.latest = turn
        if response_id:
            self._has_ids = True
            self._by_id[thread.name, response_id] = turn
        if thread is self._main:
            self._exchange()
            self.conversation.add(turn)
        else:
            thread.exchange = thread.exchange or self._exchange()
            thread.exchange.turns.append(turn)
        return turn

    def _answer(self, message: AssistantMessage, thread: _Thread, at: datetime | None) -> None:
        if thread is self._main and message.interaction:
            self._follow(message.interaction, at)
        turn = self._turn_of(message.response_id, message.model, thread, at)
        for block in blocks_of(message):
            if turn.model == SYNTHETIC and block.kind == "tool_use":
                self._made_up.add(block.id or "")
                block = replace(block, kind="other", raw={"type": "tool_use", "name": block.name, "input": block.input})
            self._put(turn, thread, block, at)

    def _put(self, turn: _CopilotTurn, thread: _Thread, block: Block, at: datetime | None) -> None:
        if block.kind == "tool_use" and block.id:
            self._callers[block.id] = thread
        self.conversation.put(turn, block, at)

    def _call(self, start: ToolStart, thread: _Thread, at: datetime | None) -> None:
        """Add a tool call whose message was lost."""
        if start.call and start.call not in self._callers and start.call not in self._made_up:
            turn = thread.latest or self._new_turn(None, None, thread)
            self._put(turn, thread, base.use(start.call, start.name, start.arguments), at)

    def _result(self, end: ToolEnd, thread: _Thread, at: datetime | None) -> None:
        block = result_block(end)
        if end.call in self._made_up and thread.latest:
            self.conversation.put(thread.latest, Block(kind="other", text=block.text, raw={"type": "tool_result"}), at)
            return
        if end.call not in self._callers and thread is not self._main and thread.latest:
            self.conversation.put(thread.latest, block, at)
            return
        self.conversation.result(block, at)

    def _settle(self) -> None:
        """Mark the responses whose usage nothing in the file reports."""
        for turn in self.turns:
            if turn.thread != SIDE and not turn.is_counted and turn.model != SYNTHETIC and not turn.error:
                turn.unread_usage = turn.has_message and not self.totals.covers(turn.started)

    # ------------------------------------------------------------ exchanges

    def _exchange(self) -> OpenExchange:
        if not self.conversation.exchanges:
            self.conversation.exchanges.append(_CopilotExchange())
        return self.conversation.exchanges[-1]

    def _ask(self, message: UserMessage, thread: _Thread, at: datetime | None) -> None:
        if thread is not self._main or (message.source and not self._has_yielded()):
            return  # the task of a sub-agent; the text of a skill, which belongs to the input before it
        text = (message.content or "").strip() or ("[image]" if message.attachments else "")
        self._interaction = message.interaction
        self.conversation.see(at)
        self.conversation.exchanges.append(_CopilotExchange(text or None, message.source or None, started=at, ended=at))

    def _has_yielded(self) -> bool:
        exchange = self.conversation.exchanges[-1] if self.conversation.exchanges else None
        return exchange is None or (not self._is_working and bool(exchange.turns))

    def _follow(self, interaction: str, at: datetime | None) -> None:
        """Begin an exchange whose input was lost, if the event is of another exchange than that in flight."""
        if self._interaction and interaction != self._interaction:
            self.conversation.exchanges.append(_CopilotExchange(started=at, ended=at))
        self._interaction = interaction

    def _mark(self, kind: str, mark: TurnMark, thread: _Thread, at: datetime | None) -> None:
        if thread is not self._main:
            return
        if kind == "abort":
            self.conversation.end("cut", at)
            self._is_working = False
            return
        self._is_working = kind == "assistant.turn_start"
        if self._is_working and mark.interaction:
            self._follow(mark.interaction, at)

    def _fail(self, error: SessionError, thread: _Thread, at: datetime | None) -> None:
        turn = self._new_turn(None, None, thread)
        turn.complete, turn.error = False, error.message or "error"
        turn.see(at)
        if thread is self._main:
            self.conversation.end("failed", at)
            self._is_working = False

    # ------------------------------------------------------------ calls outside of the conversation

    def _call_aside(self, call: SideCall, at: datetime | None) -> None:
        response_id = call.call.response_id if call.call else None
        if any((name, response_id or "") in self._by_id for name in (MAIN, SIDE)):
            return
        turn = self._side_turn(call.call.model if call.call else None, at)
        turn.count(side_usage(call.usage), response_id)
        turn.family = _family(response_id, None)
        if response_id:
            self._by_id[SIDE, response_id] = turn
        self._side_call = call

    def _compact(self, summary: Summary, thread: _Thread, at: datetime | None) -> None:
        if summary.success is not False:
            self.conversation.compactions.append(
                Compaction(
                    at=at,
                    thread=thread.name,
                    trigger=summary.trigger,
                    tokens_before=count_of(summary.tokens_before),
                    tokens_after=count_of(summary.tokens_after),
                )
            )
        used, self._side_call = summary.used if self._side_call is None else None, None
        side = [turn for turn in self.turns if turn.thread == SIDE]
        if used is not None:
            turn = self._side_turn(fields_of(used).get("model") or thread.model, at)
            turn.count(compaction_usage(used), None)
        elif side and summary.text:
            side[-1].blocks.append(Block(kind="text", text=summary.text, at=at))
            return
        else:
            return
        if summary.text:
            turn.blocks.append(Block(kind="text", text=summary.text, at=at))

    def _side_turn(self, model: Any, at: datetime | None) -> _CopilotTurn:
        turn = _CopilotTurn(thread=SIDE, model=model if isinstance(model, str) else None)
        turn.see(at)
        self.turns.append(turn)
        return turn


def _family(response_id: str | None, endpoint: str | None) -> str:
    if response_id is None:
        return UNKNOWN
    is_anthropic = (endpoint or "").endswith("/messages") if endpoint else response_id.startswith("msg_")
    return "anthropic" if is_anthropic else OPENAI


def _before(at: datetime | None, milliseconds: Any) -> datetime | None:
    """Return when a call began that ended then."""
    is_number = type(milliseconds) is int or type(milliseconds) is float
    if at is None or not is_number or not 0 <= milliseconds <= LONGEST_CALL_MS:
        return at
    return at - timedelta(milliseconds=milliseconds)
