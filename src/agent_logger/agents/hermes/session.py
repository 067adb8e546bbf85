"""Hermes' sessions, from the rows of its database: `sessions`, `messages`, `session_model_usage`.

- Messages have no tokens, no model, and no id of the vendor: there are totals for each session and model. Those of a
  session's own conversation are also in its row; calls for titles, summaries and the like are in the table alone.
- Sub-agents are sessions that a tool call started: their goal stands in it. A parent's totals do not include them.
- What was copied into a branch, or after a compaction, is left out.
- An answer that was cut stays, as far as it came; a message of Hermes itself then asks the model to go on.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenExchange, OpenTurn
from agent_logger.agents.hermes.copies import is_summary
from agent_logger.agents.hermes.database import USAGE
from agent_logger.agents.hermes.rows import HermesRow, blocks_of, content_of, result_of, time_of, usage_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import (
    AGENT_PREFIX,
    MAIN,
    ClientTotal,
    Compaction,
    Exchange,
    ModelTotal,
    Session,
    SubAgent,
    Usage,
)
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks.base import joined_text
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import fitting

AGENT_NAME = "hermes"
FAMILY = "unknown"  # of response ids: there are none
CUT = "[System: The previous response was cut off"
# Messages of Hermes itself, by how they begin. The latter are new inputs, and begin an exchange.
_REMARKS = ("[System: ", "[Your active task list was preserved")
_EVENTS = {"[ASYNC DELEGATION": "subagent", "[IMPORTANT: Background process": "process"}


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the rows."""
    main, others = _read(source)
    conversation = main.conversation
    exchanges = list(conversation.exchanges)
    for other in others:
        conversation.place(other.conversation.turns())
    session = Session(
        id=main.id,
        agent=AGENT_NAME,
        title=main.session.title or conversation.title(),
        project=main.session.cwd or main.session.git_repo_root,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=_marked(conversation.as_exchanges(), exchanges, main.left),
        parent=main.session.source_session,
        agents=[_sub_agent(other, (main, *others)) for other in others],
        compactions=[compaction for reading in (main, *others) for compaction in reading.conversation.compactions],
        totals=_totals((main, *others)),
    )
    return with_remainders(session)


def parent_of(source: SourceFiles) -> str | None:
    return next((row.source_session for row, _ in _rows(source.main) if row.table == "sessions"), None)


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield nothing: no row has the tokens of a response."""
    yield from billed_of(source)[0]


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    main, others = _read(source)
    project = main.session.cwd or main.session.git_repo_root
    totals = [
        ReportedTotal(session=main.id, project=project, agent=AGENT_NAME, family=FAMILY, total=total)
        for total in _totals((main, *others))
    ]
    return [], totals


def _read(source: SourceFiles) -> "tuple[_SessionReading, list[_SessionReading]]":
    others = [_SessionReading(file, f"{AGENT_PREFIX}{file.name}") for file in source.others]
    return _SessionReading(source.main, MAIN), others


def _rows(file: File) -> Iterator[tuple[HermesRow, Json]]:
    for entry in file.entries:
        if isinstance(entry, JsonEntry) and type(entry.value) is dict:
            yield fitting(HermesRow, entry.value), entry.value


def _marked(exchanges: list[Exchange], opened: list[OpenExchange], left: list[OpenExchange]) -> list[Exchange]:
    """Mark the exchanges that the user took back."""
    numbers = {number for number, exchange in enumerate(opened, 1) if any(exchange is other for other in left)}
    return [replace(exchange, left=exchange.number in numbers) for exchange in exchanges]


def _sub_agent(agent: "_SessionReading", readings: "tuple[_SessionReading, ...]") -> SubAgent:
    goal = next((exchange.user_input for exchange in agent.conversation.exchanges), None)
    starter = next((reading for reading in readings if reading.id == agent.parent), readings[0])
    return SubAgent(
        thread=agent.thread,
        parent_thread=starter.thread,
        tool_use_id=next((call for call, goals in starter.goals() if goal in goals), None),
        description=goal,
    )


class _SessionReading:
    """The rows of one session, read one after the other."""

    def __init__(self, file: File, thread: str) -> None:
        self.thread = thread
        self.conversation = Conversation()
        self.session = HermesRow()
        self.parent: str | None = None
        self.left: list[OpenExchange] = []
        self._counted: Usage | None = None  # in the session's own row
        self.uses: list[tuple[HermesRow, Usage | None]] = []
        self._latest: OpenTurn | None = None
        for row, fields in _rows(file):
            self._take(row, fields)
        self.id = self.session.id if type(self.session.id) is str and self.session.id else file.name
        model = self._only_model()
        for turn in self.conversation.turns():
            turn.model = model

    def goals(self) -> Iterator[tuple[str | None, list[str | None]]]:
        """Yield the goals of the tool calls that start sub-agents."""
        for turn in self.conversation.turns():
            for block in turn.blocks:
                if block.kind == "tool_use":
                    given = fields_of(block.input)
                    tasks = given.get("tasks")
                    inner = [fields_of(task) for task in tasks] if type(tasks) is list else []
                    yield block.id, [goal for task in (given, *inner) if (goal := text_of(task.get("goal")))]

    # ------------------------------------------------------------ totals

    def used(self) -> Iterator[ModelTotal]:
        """Yield what the session used of each model: in its conversation, and apart from it."""
        yield from (ModelTotal(model=row.model, usage=usage) for row, usage in self.uses if _made_calls(row) or usage)
        own = [usage for row, usage in self.uses if not row.task]
        rest = _less(self._counted, own)
        if rest or (not own and _made_calls(self.session)):
            yield ModelTotal(model=self.session.model, usage=rest)

    def _only_model(self) -> str | None:
        """Return the model of every response; None if there were several."""
        models = {row.model for row, _ in self.uses if not row.task} or {self.session.model}
        return models.pop() if len(models) == 1 else None

    # ------------------------------------------------------------ rows

    def _take(self, row: HermesRow, fields: Json) -> None:
        match row.table:
            case "sessions":
                self.session = row
                self.parent = text_of(fields.get("parent_session_id"))
                self._counted = usage_of(fields)
                self.conversation.see(time_of(row.started_at))
            case _ if row.table == USAGE:
                self.uses.append((row, usage_of(fields)))
            case "messages" if not row.is_copy:
                self._message(row, fields)

    def _message(self, row: HermesRow, fields: Json) -> None:
        if is_summary(fields.get("content")):
            self.conversation.compactions.append(Compaction(at=row.at, thread=self.thread))
            return
        match row.role:
            case "user":
                self._input(row, joined_text(content_of(fields.get("content"))), row.at)
            case "assistant":
                self._answer(row, fields)
            case "tool":
                self.conversation.result(result_of(row, fields), row.at)

    def _input(self, row: HermesRow, text: str, at: datetime | None) -> None:
        if text.startswith(_REMARKS):
            if text.startswith(CUT) and self._latest:
                self._latest.complete = False
            return
        self._latest = None
        origin = next((kind for beginning, kind in _EVENTS.items() if text.startswith(beginning)), None)
        self.conversation.ask(typed([text]) or text or "[image]", at)
        if origin:
            self.conversation.exchanges[-1].origin = origin
        if row.active == 0 and not row.compacted:
            self.left.append(self.conversation.exchanges[-1])

    def _answer(self, row: HermesRow, fields: Json) -> None:
        turn = OpenTurn(thread=self.thread, stop_reason=row.finish_reason)
        turn.see(row.at)
        self.conversation.see(row.at)
        self.conversation.add(turn)
        self._latest = turn
        for block in blocks_of(row, fields):
            self.conversation.put(turn, block, row.at)


def _totals(readings: "Sequence[_SessionReading]") -> list[ClientTotal]:
    """Return what a session used with its sub-agents, as one total: only one row of the database says when."""
    main, models = readings[0], [model for reading in readings for model in reading.used()]
    usages: dict[str | None, Usage] = {}
    for model in models:
        if model.usage:
            usages[model.model] = usages.get(model.model, Usage()) + model.usage
    counted = [ModelTotal(model=name, usage=usage) for name, usage in usages.items()]
    ends = [reading.conversation.ended for reading in readings]
    ends += [time_of(row.last_seen) for reading in readings for row, _ in reading.uses]
    total = ClientTotal(
        witness="transcript",
        is_session=True,
        is_whole=any(reading.uses for reading in readings),  # older versions leave titles out
        models=(*counted, *(model for model in models if model.usage is None)),
        started=time_of(main.session.started_at) or main.conversation.started,
        ended=max((at for at in ends if at), default=None),
    )
    return [total] if models else []


def _made_calls(row: HermesRow) -> bool:
    return type(row.api_call_count) is int and row.api_call_count > 0


def _less(whole: Usage | None, parts: list[Usage | None]) -> Usage | None:
    """Return what is in a session's row, and in none of its uses of models: a gateway counts there alone."""
    if whole is None:
        return None
    itemised = sum((part for part in parts if part), Usage())
    counts = [max(0, one - two) for one, two in zip(whole.counts, itemised.counts, strict=True)]
    return Usage.from_counts(*counts) if any(counts) else None
