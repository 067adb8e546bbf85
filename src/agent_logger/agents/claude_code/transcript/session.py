"""Reads the files of a Claude Code session into a `Session`.

The client writes a line per block of a response, per prompt and per result of a tool, the moment it exists; a resumed
session continues in the same file, a forked one in a new file that begins with a copy. Sub-agents have their own files.
The order is that of the lines, with none before its parent; a line that occurs twice, as after retries, is read once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_logger.agents.claude_code.transcript.billed_calls import BilledCalls
from agent_logger.agents.claude_code.transcript.cost_state import BilledAnswer
from agent_logger.agents.claude_code.transcript.exchanges import (
    ExchangeLines,
    command_of,
    origin_of,
    placed,
    prompt_of,
    queued,
)
from agent_logger.agents.claude_code.transcript.facts import Facts, Titles
from agent_logger.agents.claude_code.transcript.lines import records_of
from agent_logger.agents.claude_code.transcript.records import (
    AssistantRecord,
    AttachmentRecord,
    ClaudeMessage,
    CostRecord,
    RequestRecord,
    SessionRecord,
    SystemRecord,
    ToolResultRecord,
    ToolUseRecord,
    ToolUseResult,
    UserRecord,
)
from agent_logger.agents.claude_code.transcript.subagents import AgentLines, Joins, agent_of, meta_of
from agent_logger.agents.claude_code.transcript.tree import Tree, behind_parents
from agent_logger.agents.claude_code.transcript.turn_index import TurnIndex
from agent_logger.agents.claude_code.transcript.turns import (
    TurnLines,
    as_message,
    blocks_of,
    time_of,
    with_side_file,
)
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import is_interruption
from agent_logger.model.ids import UUID
from agent_logger.model.remainders import with_remainders
from agent_logger.model.session import MAIN, SIDE, Block, Session, Turn

AGENT_NAME = "claude-code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A session, and what its files say beside it."""

    session: Session
    summaries: Mapping[str, str]  # summaries by a line of the session that they summarise, which may be another
    titled: bool  # a person or the client gave the title; else it is the first prompt
    loose: frozenset[str]  # ids of parent lines that are not in the file


def session_of(source: SourceFiles, summaries: Mapping[str, str] | None = None) -> Session:
    """Read a session. Nothing is raised, whatever is in the files. `summaries`: those from other sessions' files."""
    return _Reading(source).session(summaries or {})


def transcript_of(source: SourceFiles) -> Transcript:
    return _Reading(source).transcript()


def session_id_of(name: str, named: str | None) -> str:
    """Return the session's id: the name of its file. Lines may still have the id of the session they were copied
    from."""
    stem = name.rpartition("/")[2].removesuffix(".jsonl")
    return stem if UUID.fullmatch(stem) else named or stem


class _Reading:
    def __init__(self, source: SourceFiles) -> None:
        self._source = source
        self._tree = Tree()
        self._types: dict[str | None, type[SessionRecord]] = {}  # types of lines, by their ids
        self._facts = Facts()
        self._titles = Titles()
        self._forked_from: str | None = None
        self._exchanges: list[ExchangeLines] = []
        self._command: str | None = None  # a command that may turn out to be a prompt
        self._agents: dict[str, AgentLines] = {}
        self._agent: AgentLines | None = None  # the sub-agent whose file is being read
        self._turns = TurnIndex()
        self._started_by: dict[str, str] = {}  # ids of the calls that started sub-agents, by sub-agent
        self._now: datetime | None = None  # the time of the line that is being read
        self._calls = BilledCalls()
        self._read(source.main)
        self._main = len(self._turns.all)  # turns of the session's own file
        for file in source.others:
            if file.name.endswith(".jsonl"):
                self._read(file)

    def _read(self, file: File) -> None:
        named = agent_of(file.name)
        self._agent = self._agent_lines(named) if named else None
        if self._agent:
            self._agent.meta = meta_of(file.name, self._source.text)
            self._calls.begin_agent()
        for record in behind_parents(self._records(file)):
            self._record(record)
        if self._agent:
            self._calls.end_agent()

    def _records(self, file: File) -> Iterator[SessionRecord]:
        """Yield the records in the order of the file."""
        for record in records_of(file):
            if isinstance(record, SessionRecord):
                self._note_call(record)
                yield record

    def _note_call(self, record: SessionRecord) -> None:
        match record:
            case AssistantRecord():
                model = as_message(record.message).model
                self._calls.answer(model, is_error=bool(record.is_api_error_message))
            case UserRecord():
                self._calls.prompt()
            case RequestRecord():
                self._calls.request(time_of(record.timestamp), record.params, len(self._exchanges) or None)
            case SystemRecord(subtype="api_error"):
                self._calls.error(record.error)
            case CostRecord() if not self._agent and record.model_usage is not None:
                self._calls.end()

    def _record(self, record: SessionRecord) -> None:
        kind, uuid = type(record), record.uuid
        if self._types.get(uuid) is kind:  # a damaged line with the id of a good one is no copy
            self._copy(record)
            return
        now = self._now = time_of(record.timestamp)
        self._facts.see(record, now, is_bookkeeping=kind not in ACTIVITY)
        agent = self._agent_of(record) if self._agent or record.is_sidechain else None
        if isinstance(record, CostRecord) and not agent and record.model_usage is not None:
            self._calls.count(record.model_usage, len(self._turns.all))
        if kind not in CONVERSATION:
            self._facts.take(record, now, agent.thread if agent else MAIN)
            self._titles.take(record)
        if record.forked_from is not None and self._forked_from is None:
            self._forked_from = None if isinstance(record.forked_from, str) else record.forked_from.session_id
        begun = len(self._exchanges)
        exchange = None if agent else self._tree.exchange_of.get(record.parent_uuid, begun)
        if take := TAKERS.get(kind):
            take(self, record, agent, exchange)
            if agent is None and len(self._exchanges) > begun:
                exchange = len(self._exchanges)
                if uuid:
                    self._tree.begins(exchange, uuid)
        if kind in STEPS or (isinstance(record, SystemRecord) and record.subtype == "api_error"):
            self._see(exchange)
        if uuid:
            self._types[uuid] = kind
            self._tree.add(uuid, record.parent_uuid, exchange)

    def _copy(self, record: SessionRecord) -> None:
        """Read a line that was read before. A copy of a response's line may know more, and the ledger uses it too."""
        if isinstance(record, AssistantRecord):
            message, self._now = as_message(record.message), time_of(record.timestamp)
            if turn := self._turns.unique_turn(message.id):
                self._add_to(turn, record, message)
                self._turns.open[turn.thread] = turn
        elif isinstance(record, UserRecord):
            self._turns.prompt()

    def _agent_of(self, record: SessionRecord) -> AgentLines | None:
        """Return the sub-agent that a line belongs to. Older clients write its lines into the session's file, without a
        name."""
        if self._agent:
            return self._agent
        if record.agent_id or record.uuid is None:
            return self._agent_lines(record.agent_id or "")
        parent = record.parent_uuid
        return self._agent_lines(self._tree.root(parent) if parent and parent in self._tree.parents else record.uuid)

    def _agent_lines(self, name: str) -> AgentLines:
        if name not in self._agents:
            self._agents[name] = AgentLines(name)
        return self._agents[name]

    # ------------------------------------------------------------ lines

    def _user(self, record: UserRecord, agent: AgentLines | None, exchange: int | None) -> None:
        self._turns.prompt()
        blocks = blocks_of(as_message(record.message).content, self._now)
        others = 0
        for block in blocks:
            if block.kind == "tool_result":
                self._see(exchange)
                self._result(with_side_file(block, record, self._source.text), agent, exchange)
                outcome = record.tool_use_result
                if isinstance(outcome, ToolUseResult) and outcome.agent_id and block.id:
                    self._started_by.setdefault(outcome.agent_id, block.id)
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
        message = as_message(record.message)
        turn = self._turn(message.id, record.request_id, agent, exchange)
        if turn.thread != (agent.thread if agent else MAIN):
            return  # a sub-agent's file may begin with its parent's input
        self._add_to(turn, record, message)
        self._turns.latest[turn.thread] = self._turns.open[turn.thread] = turn

    def _add_to(self, turn: TurnLines, record: AssistantRecord, message: ClaudeMessage) -> None:
        for block in turn.take(record, message, self._now):
            if block.kind == "tool_use" and (call := self._turns.add_tool_call(turn, block)) is not block:
                turn.blocks[next(at for at, other in enumerate(turn.blocks) if other is block)] = call

    def _tool_use(self, record: ToolUseRecord, agent: AgentLines | None, exchange: int | None) -> None:
        turn = self._latest_turn(agent, exchange)
        block = Block(kind="tool_use", id=record.tool_use_id, name=record.name, input=record.input, at=self._now)
        turn.blocks.append(self._turns.add_tool_call(turn, block))
        turn.see(self._now)

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
        thread = agent.thread if agent else MAIN
        if earlier := self._turns.find(message_id, request_id, thread):
            return earlier
        turn = self._turns.begin(message_id, thread)
        if agent:
            agent.turns.append(turn)
        else:
            self._exchange(exchange).turns.append(turn)
        return turn

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
        turn = self._turns.latest.get(agent.thread if agent else MAIN)
        if turn is None:
            turn = self._turn(None, None, agent, exchange)
            self._turns.latest[turn.thread] = turn
        return turn

    def _result(self, result: Block, agent: AgentLines | None, exchange: int | None) -> None:
        """Add a result to the turn that called the tool; if that is not known, to the latest."""
        result, turn = self._turns.result(result, agent.thread if agent else MAIN)
        (turn or self._latest_turn(agent, exchange)).results.append(result)

    # ------------------------------------------------------------ the session

    def transcript(self) -> Transcript:
        return Transcript(
            session=self.session({}),
            summaries=self._titles.summaries,
            titled=self._titles.title(self._tree, {}) is not None,
            loose=self._tree.loose(),
        )

    def session(self, summaries: Mapping[str, str]) -> Session:
        agents = list(self._agents.values())
        joins = Joins(agents, self._started_by, self._turns.by_tool_call)
        ordinary = [agent for agent in agents if agent.thread != SIDE]
        turns = placed(self._exchanges, ordinary, joins)
        aside = agents if not self._exchanges else [agent for agent in agents if agent.thread == SIDE]
        count, left = len(self._exchanges), self._tree.left()
        answers = [BilledAnswer(turn.message_id, turn.thread, turn.model, turn.started) for turn in self._turns.all]
        session = Session(
            id=session_id_of(self._source.main.name, self._facts.session_id),
            agent=AGENT_NAME,
            title=self._titles.title(self._tree, summaries) or self._first_prompt() or self._first_task(),
            project=self._facts.cwd,
            started=self._facts.began,
            ended=self._facts.ended,
            exchanges=[
                exchange.as_exchange(number, _turns_of(turns[number - 1]), last=number == count, left=number in left)
                for number, exchange in enumerate(self._exchanges, 1)
            ],
            side_turns=_turns_of(turn for agent in aside for turn in agent.turns),
            parent=self._forked_from,
            agents=joins.sub_agents(),
            main_missing=self._source.main_missing,
            reported_cost_usd=self._facts.reported_cost_usd,
            compactions=self._facts.compactions,
            totals=self._calls.totals(answers, self._main),
        )
        return with_remainders(session) if session.totals else session

    def _first_prompt(self) -> str | None:
        inputs = [exchange for exchange in self._exchanges if exchange.user_input and exchange.user_input.strip()]
        first = next((exchange for exchange in inputs if not exchange.is_command), inputs[0] if inputs else None)
        return first.user_input.strip().split("\n")[0] if first and first.user_input else None

    def _first_task(self) -> str | None:
        """Return the first task of a session of which only sub-agents are left."""
        prompts = [] if self._exchanges else [(agent.prompt or "").strip() for agent in self._agents.values()]
        return next((prompt.split("\n")[0] for prompt in prompts if prompt), None)


def _turns_of(turns: Iterable[TurnLines]) -> list[Turn]:
    return [turn.as_turn() for turn in turns]


CONVERSATION = (AssistantRecord, UserRecord)
STEPS = (AssistantRecord, ToolUseRecord, ToolResultRecord)
# Lines of a person or an agent; other lines are bookkeeping.
ACTIVITY = frozenset({*CONVERSATION, *STEPS, SystemRecord})
TAKERS: Mapping[type[SessionRecord], Callable[[_Reading, Any, AgentLines | None, int | None], None]] = {
    AssistantRecord: _Reading._assistant,
    UserRecord: _Reading._user,
    AttachmentRecord: _Reading._attachment,
    ToolUseRecord: _Reading._tool_use,
    ToolResultRecord: _Reading._tool_result,
}
