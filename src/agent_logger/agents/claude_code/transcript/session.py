"""Reads the files of a Claude Code session into a `Session`.

The client writes a line per block of a response, per prompt and per result of a tool, the moment it exists; a resumed
session continues in the same file, a forked one in a new file that begins with a copy. Sub-agents have their own files.
The order is that of the lines, with none before its parent; a line that occurs twice, as after retries, is read once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.beginning import BeginningReader
from agent_logger.agents.claude_code.transcript.cost_state import BilledAnswer, total_of
from agent_logger.agents.claude_code.transcript.exchanges import (
    ExchangeLines,
    command_of,
    origin_of,
    placed,
    prompt_of,
    queued,
)
from agent_logger.agents.claude_code.transcript.facts import Facts, FileState, Titles
from agent_logger.agents.claude_code.transcript.lines import records_of
from agent_logger.agents.claude_code.transcript.records import (
    AssistantRecord,
    AttachmentRecord,
    ClaudeMessage,
    CostRecord,
    ForkedFrom,
    RequestRecord,
    SessionRecord,
    SystemRecord,
    ToolResultRecord,
    ToolUseRecord,
    ToolUseResult,
    UserRecord,
)
from agent_logger.agents.claude_code.transcript.requests import (
    RequestReader,
    UnansweredRequest,
    model_of,
    of_agents,
    total_of_request,
)
from agent_logger.agents.claude_code.transcript.subagents import AgentLines, Joins, agent_of, meta_of
from agent_logger.agents.claude_code.transcript.tree import Lineage, Tree, behind_parents
from agent_logger.agents.claude_code.transcript.turns import (
    TurnLines,
    blocks_of,
    is_unique,
    text_of_message,
    time_of,
    with_side_file,
)
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import is_interruption
from agent_logger.messages.result_usage import Counted
from agent_logger.model.ids import UUID
from agent_logger.model.remainders import with_remainders
from agent_logger.model.session import MAIN, SIDE, SYNTHETIC, Block, ClientTotal, Session, Turn
from agent_logger.protocols.jsonl import Damage

AGENT = "claude-code"
MOST_DAMAGE = 1_000  # places that are kept; all are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A session, and what its files say beside it."""

    session: Session
    lineage: Lineage  # for `Relatives`
    files: Sequence[FileState]  # that the client keeps copies of
    summaries: Mapping[str, str]  # by the line of the session they are of, which may be another
    titled: bool  # by a person or the client; else the first prompt is the title
    loose: frozenset[str]  # ids of parent lines that are not in the file
    damage: Sequence[tuple[str, Damage]]  # with the name of the file; at most `MOST_DAMAGE`
    damaged: int


def session_of(source: SourceFiles, summaries: Mapping[str, str] | None = None) -> Session:
    """Read a session. Nothing is raised, whatever is in the files. `summaries`: those from other sessions' files."""
    reading = _Reading(source)
    reading.read_all()
    return reading.session(summaries or {})


def transcript_of(source: SourceFiles, summaries: Mapping[str, str] | None = None) -> Transcript:
    reading = _Reading(source)
    reading.read_all()
    return reading.transcript(summaries or {})


def session_id_of(name: str, named: str | None) -> str:
    """Return the session's id: the name of its file. Lines may still have the id of the session they were copied
    from."""
    stem = name.rpartition("/")[2].removesuffix(".jsonl")
    return stem if UUID.fullmatch(stem) else named or stem


@dataclass(slots=True)
class _Damages:
    places: list[tuple[str, Damage]] = field(default_factory=list)
    count: int = 0

    def add(self, name: str, damage: Damage) -> None:
        self.count += 1
        if len(self.places) < MOST_DAMAGE:
            self.places.append((name, damage))


class _Reading:
    def __init__(self, source: SourceFiles) -> None:
        self._source = source
        self._tree = Tree()
        self._types: dict[str | None, type[SessionRecord]] = {}  # of lines, by their ids
        self._facts = Facts()
        self._titles = Titles()
        self._damages = _Damages()
        self._forked_from: str | None = None
        self._beginning = BeginningReader()
        self._exchanges: list[ExchangeLines] = []
        self._command: str | None = None  # that may turn out to be a prompt
        self._agents: dict[str, AgentLines] = {}
        self._agent: AgentLines | None = None  # whose file is being read
        self._turns: dict[str, TurnLines] = {}  # by message id
        self._uses: dict[str, TurnLines] = {}  # by the id of a tool call
        self._unnamed: dict[str, list[str]] = {}  # by thread: calls without an id that have no result yet
        self._started_by: dict[str, str] = {}  # the call whose result names an agent
        self._latest: dict[str, TurnLines] = {}  # by thread
        self._open: dict[str, TurnLines] = {}  # the same, as long as nothing else was said there
        self._message_ids: list[str] = []  # of the main thread, each once
        self._now: datetime | None = None  # the time of the line that is being read
        self._all: list[TurnLines] = []  # in the order of their first lines
        self._counted: dict[str, Counted] | None = None  # by the client, for all of the session
        self._covered = 0  # turns before that
        self._main = 0  # turns of the session's own file
        self._requests = self._file_requests = RequestReader()  # of the main file; of the one that is read
        self._of_agents: list[UnansweredRequest] = []

    def read_all(self) -> None:
        self._read(self._source.main)
        self._main = len(self._all)
        for file in self._source.others:
            if file.name.endswith(".jsonl"):
                self._read(file)

    def _read(self, file: File) -> None:
        named = agent_of(file.name)
        self._agent = self._agent_lines(named) if named else None
        if self._agent:
            self._agent.meta = meta_of(file.name, self._source.text)
            self._file_requests = RequestReader()
        for record in behind_parents(self._records(file)):
            self._record(record)
        if self._agent:
            self._of_agents += self._file_requests.unanswered()

    def _records(self, file: File) -> Iterator[SessionRecord]:
        """Yield the records in the order of the file."""
        for record in records_of(file):
            if isinstance(record, SessionRecord):
                if self._agent is None and self._beginning.is_open:
                    self._beginning.see(record, _main_response(record))
                self._note_call(record)
                yield record
            elif isinstance(record, Damage):
                self._damages.add(file.name, record)

    def _note_call(self, record: SessionRecord) -> None:
        requests = self._file_requests
        match record:
            case AssistantRecord():
                is_restart = text_of_message(record.message).model == SYNTHETIC
                requests.restart() if is_restart and not record.is_api_error_message else requests.answer()
            case UserRecord():
                requests.interruption()
            case RequestRecord():
                requests.request(
                    time_of(record.timestamp), model_of(record.params), len(self._exchanges) or None
                )
            case SystemRecord(subtype="api_error"):
                requests.error(record.error)
            case CostRecord() if not self._agent and record.model_usage is not None:
                requests.total()

    def _record(self, record: SessionRecord) -> None:
        kind, uuid = type(record), record.uuid
        if self._types.get(uuid) is kind:  # a damaged line with the id of a good one is no copy
            self._copy(record)
            return
        now = self._now = time_of(record.timestamp)
        self._facts.see(record, now, is_bookkeeping=kind not in ACTIVITY)
        agent = self._agent_of(record) if self._agent or record.is_sidechain else None
        if isinstance(record, CostRecord) and not agent and record.model_usage is not None:
            self._counted, self._covered = record.model_usage, len(self._all)
        if kind not in CONVERSATION:
            self._facts.take(record, now, agent.thread if agent else MAIN)
            self._titles.take(record)
        if record.forked_from is not None and self._forked_from is None:
            self._forked_from = _session_of(record.forked_from)
        begun = len(self._exchanges)
        exchange = None if agent else self._tree.exchange_of.get(record.parent_uuid, begun)
        if take := TAKERS.get(kind):
            take(self, record, agent, exchange)
            if agent is None and len(self._exchanges) > begun:
                exchange = len(self._exchanges)
                if uuid:
                    self._tree.begins(exchange, uuid)
        if kind in STEPS or _is_retry(record):
            self._see(exchange)
        if uuid:
            self._types[uuid] = kind
            self._tree.add(uuid, record.parent_uuid, exchange)

    def _copy(self, record: SessionRecord) -> None:
        """Read a line that was read before. A copy of a response's line may know more, and the ledger uses it too."""
        if isinstance(record, AssistantRecord):
            message, self._now = text_of_message(record.message), time_of(record.timestamp)
            if (turn := self._turns.get(message.id or "")) and turn.is_unique:
                self._add_to(turn, record, message)
                self._open[turn.thread] = turn
        elif isinstance(record, UserRecord):
            self._open.clear()

    def _agent_of(self, record: SessionRecord) -> AgentLines | None:
        """Return the sub-agent that a line belongs to. Older clients write its lines into the session's file, without a
        name."""
        if self._agent:
            return self._agent
        if record.agent_id or record.uuid is None:
            return self._agent_lines(record.agent_id or "")
        parent = record.parent_uuid
        return self._agent_lines(
            self._tree.root(parent) if parent and parent in self._tree.parents else record.uuid
        )

    def _agent_lines(self, name: str) -> AgentLines:
        if name not in self._agents:
            self._agents[name] = AgentLines(name)
        return self._agents[name]

    # ------------------------------------------------------------ lines

    def _user(self, record: UserRecord, agent: AgentLines | None, exchange: int | None) -> None:
        self._open.clear()
        blocks = blocks_of(text_of_message(record.message).content, self._now)
        others = 0
        for block in blocks:
            if block.kind == "tool_result":
                self._see(exchange)
                self._result(with_side_file(block, record, self._source.text), agent, exchange)
                self._name_agent(record.tool_use_result, block)
            else:
                others += 1
        if blocks and not others:
            return
        if agent:
            if agent.prompt is None:
                agent.prompt = "\n".join(block.text for block in blocks if block.kind == "text") or None
            return
        if exchange and is_interruption(block.text for block in blocks if block.kind == "text"):
            self._exchanges[exchange - 1].interrupted = True
            self._see(exchange)
        origin = origin_of(record)
        prompt = prompt_of(record, blocks)
        if prompt is not None:
            self._begin(prompt, origin)
        elif origin not in (None, "sdk") and not any(block.kind == "tool_result" for block in blocks):
            self._begin(None, origin)
        else:
            self._command = command_of(record, blocks) or self._command

    def _see(self, exchange: int | None) -> None:
        """Note a step of an exchange.

        The client also writes lines while it waits for a person, and just before the next prompt: queued prompts,
        snapshots, titles, commands of its own. They do not prolong an exchange.
        """
        if exchange:
            self._exchanges[exchange - 1].see(self._now)

    def _name_agent(self, outcome: ToolUseResult | str | list[Any] | None, result: Block) -> None:
        if isinstance(outcome, ToolUseResult) and outcome.agent_id and result.id:
            self._started_by.setdefault(outcome.agent_id, result.id)

    def _attachment(self, record: AttachmentRecord, agent: AgentLines | None, exchange: int | None) -> None:
        attachment = record.attachment
        if agent or attachment is None:
            return
        if attachment.type == "queued_command" and (prompt := queued(attachment.prompt)):
            self._begin(prompt, None)
        elif attachment.type == "max_turns_reached" and exchange:
            self._exchanges[exchange - 1].stopped = True
            self._see(exchange)

    def _assistant(self, record: AssistantRecord, agent: AgentLines | None, exchange: int | None) -> None:
        message = text_of_message(record.message)
        turn = self._turn(message.id, record.request_id, agent, exchange)
        if turn.thread != (agent.thread if agent else MAIN):
            return  # a sub-agent's file may begin with its parent's input
        self._add_to(turn, record, message)
        self._latest[turn.thread] = self._open[turn.thread] = turn

    def _add_to(self, turn: TurnLines, record: AssistantRecord, message: ClaudeMessage) -> None:
        for block in turn.take(record, message, self._now):
            if block.kind == "tool_use":
                if not block.id:
                    at = next(at for at, other in enumerate(turn.blocks) if other is block)
                    block = turn.blocks[at] = self._named_call(block, turn)
                self._uses.setdefault(block.id or "", turn)

    def _tool_use(self, record: ToolUseRecord, agent: AgentLines | None, exchange: int | None) -> None:
        turn = self._latest_turn(agent, exchange)
        block = Block(
            kind="tool_use", id=record.tool_use_id, name=record.name, input=record.input, at=self._now
        )
        block = block if block.id else self._named_call(block, turn)
        turn.blocks.append(block)
        turn.see(self._now)
        self._uses.setdefault(block.id or "", turn)

    def _tool_result(self, record: ToolResultRecord, agent: AgentLines | None, exchange: int | None) -> None:
        block = {"type": "tool_result", "tool_use_id": record.tool_use_id, "content": record.content}
        for result in blocks_of([{**block, "is_error": record.is_error}], self._now):
            self._result(result, agent, exchange)

    # ------------------------------------------------------------ turns

    def _begin(self, prompt: str | None, origin: str | None, *, is_command: bool = False) -> None:
        self._command = None
        self._exchanges.append(ExchangeLines(prompt, origin, self._now, is_command))

    def _turn(
        self, message_id: str | None, request_id: str | None, agent: AgentLines | None, exchange: int | None
    ) -> TurnLines:
        earlier = self._turns.get(message_id) if message_id else None
        if earlier and (earlier.is_unique or self._is_same(earlier, request_id, agent)):
            return earlier
        # A turn is identified by its id, so one whose id was used before has none.
        thread = agent.thread if agent else MAIN
        turn = TurnLines(None if earlier else message_id, thread, is_unique=is_unique(message_id))
        self._all.append(turn)
        if message_id:
            self._turns[message_id] = turn
        if agent:
            agent.turns.append(turn)
            return turn
        if message_id and turn.is_unique:
            self._message_ids.append(message_id)
        self._exchange(exchange).turns.append(turn)
        return turn

    def _is_same(self, earlier: TurnLines, request_id: str | None, agent: AgentLines | None) -> bool:
        """Whether the line belongs to the earlier turn. Local servers count to 999 and start again, so several
        responses may share one id."""
        if earlier.request_id and request_id:
            return earlier.request_id == request_id
        thread = agent.thread if agent else MAIN
        return self._open.get(thread) is earlier and not earlier.results

    def _exchange(self, number: int | None) -> ExchangeLines:
        """Return the exchange that a turn belongs to. A command that was answered was a prompt after all."""
        if self._command and number == len(self._exchanges):
            self._begin(self._command, None, is_command=True)
        elif not self._exchanges:
            self._begin(None, None)
        else:
            return self._exchanges[max(number or 0, 1) - 1]
        return self._exchanges[-1]

    def _latest_turn(self, agent: AgentLines | None, exchange: int | None) -> TurnLines:
        thread = agent.thread if agent else MAIN
        turn = self._latest.get(thread) or self._turn(None, None, agent, exchange)
        self._latest[thread] = turn
        return turn

    def _named_call(self, use: Block, turn: TurnLines) -> Block:
        """Give an id to a call without one, so that its result, which has none either, can be joined to it."""
        name = f"#{len(self._uses)}"
        self._unnamed.setdefault(turn.thread, []).append(name)
        return replace(use, id=name)

    def _result(self, result: Block, agent: AgentLines | None, exchange: int | None) -> None:
        """Add a result to the turn that called the tool; if that is not known, to the latest. A result without an id
        belongs to the first call that has no id and no result yet."""
        waiting = self._unnamed.get(agent.thread if agent else MAIN) if not result.id else None
        result = replace(result, id=waiting.pop(0)) if waiting else result
        turn = self._uses.get(result.id or "") or self._latest_turn(agent, exchange)
        turn.results.append(result)

    # ------------------------------------------------------------ the session

    def transcript(self, summaries: Mapping[str, str]) -> Transcript:
        facts = self._facts
        session = self.session(summaries)
        beginning = self._beginning.beginning()
        descent = Lineage(
            session=session.id,
            message_ids=self._message_ids,
            began=facts.began,
            forked_from=self._forked_from,
            first_written=beginning.first_written,
            own_line_after=beginning.own_line_after,
        )
        return Transcript(
            session=session,
            lineage=descent,
            files=facts.files,
            summaries=self._titles.summaries,
            titled=self._titles.title(self._tree, summaries) is not None,
            loose=self._tree.loose(),
            damage=self._damages.places,
            damaged=self._damages.count,
        )

    def session(self, summaries: Mapping[str, str]) -> Session:
        agents = list(self._agents.values())
        joins = Joins(agents, self._started_by, self._uses)
        ordinary = [agent for agent in agents if agent.thread != SIDE]
        turns = placed(self._exchanges, ordinary, joins)
        aside = agents if not self._exchanges else [agent for agent in agents if agent.thread == SIDE]
        count, left = len(self._exchanges), self._tree.left()
        session = Session(
            id=session_id_of(self._source.main.name, self._facts.session_id),
            agent=AGENT,
            title=self._titles.title(self._tree, summaries) or self._first_prompt() or self._first_task(),
            project=self._facts.cwd,
            started=self._facts.began,
            ended=self._facts.ended,
            exchanges=[
                exchange.as_exchange(
                    number, _turns_of(turns[number - 1]), last=number == count, left=number in left
                )
                for number, exchange in enumerate(self._exchanges, 1)
            ],
            side_turns=_turns_of(turn for agent in aside for turn in agent.turns),
            parent=self._forked_from,
            agents=joins.sub_agents(),
            main_missing=self._source.main_missing,
            reported_cost_usd=self._facts.reported_cost_usd,
            compactions=self._facts.compactions,
            totals=self._totals(),
        )
        return with_remainders(session) if session.totals else session

    def _totals(self) -> tuple[ClientTotal, ...]:
        total = self._total()
        restarts = (
            turn.started
            for turn in self._all
            if turn.thread == MAIN and turn.model == SYNTHETIC and turn.started
        )
        requests = [*self._requests.unanswered(), *of_agents(self._of_agents, total, restarts)]
        return (*([total] if total else ()), *map(total_of_request, requests))

    def _total(self) -> ClientTotal | None:
        if self._counted is None:
            return None
        answers = [BilledAnswer(turn.message_id, turn.thread, turn.model, turn.started) for turn in self._all]
        return total_of(self._counted, answers[: self._covered], answers[self._main :])

    def _first_prompt(self) -> str | None:
        inputs = [
            exchange for exchange in self._exchanges if exchange.user_input and exchange.user_input.strip()
        ]
        first = next(
            (exchange for exchange in inputs if not exchange.is_command), inputs[0] if inputs else None
        )
        return first.user_input.strip().split("\n")[0] if first and first.user_input else None

    def _first_task(self) -> str | None:
        """Return the first task of a session of which only sub-agents are left."""
        prompts = (
            (agent.prompt.strip() for agent in self._agents.values() if agent.prompt)
            if not self._exchanges
            else ()
        )
        return next((prompt.split("\n")[0] for prompt in prompts if prompt), None)


def _main_response(record: SessionRecord) -> str | None:
    if isinstance(record, AssistantRecord) and not record.is_sidechain:
        return text_of_message(record.message).id
    return None


def _is_retry(record: SessionRecord) -> bool:
    return isinstance(record, SystemRecord) and record.subtype == "api_error"


def _session_of(origin: ForkedFrom | str) -> str | None:
    return origin.session_id if isinstance(origin, ForkedFrom) else None


def _turns_of(turns: Iterable[TurnLines]) -> list[Turn]:
    return [turn.as_turn() for turn in turns]


CONVERSATION = (AssistantRecord, UserRecord)
STEPS = (AssistantRecord, ToolUseRecord, ToolResultRecord)
ACTIVITY = frozenset(
    {*CONVERSATION, *STEPS, SystemRecord}
)  # of a person or an agent; other lines are bookkeeping
TAKERS: Mapping[type[SessionRecord], Callable[[_Reading, Any, AgentLines | None, int | None], None]] = {
    AssistantRecord: _Reading._assistant,
    UserRecord: _Reading._user,
    AttachmentRecord: _Reading._attachment,
    ToolUseRecord: _Reading._tool_use,
    ToolResultRecord: _Reading._tool_result,
}
