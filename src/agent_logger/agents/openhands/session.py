"""OpenHands' conversations: `base_state.json`, and a document for each event.

- An event of the model's names its response; the calls of one response are an event each. The tokens of a response are
  in the state of the conversation, by the same id, and again in the state of the one that started it: counted once.
- A sub-agent is a conversation in a folder of its parent's. Nothing names the tool call that started it: it is paired
  with one by the prompt.
- Events that are lost leave their responses: the state still counts them, in their order.
- Nothing is removed from the events: a condensation names those that the model is not sent any more.
- An answer that was cut, and a request that failed, leave nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.openhands.events import (
    OPENAI,
    ConversationState,
    CountedResponse,
    OpenHandsEvent,
    input_of,
    model_of,
    other_agents_result,
    result_of,
    spoken_in,
    vendor_id,
)
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, SIDE, Block, Compaction, Session, SubAgent
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import fitting

AGENT_NAME = "openhands"
EVENTS = "events"
OWN_PART = "agent"  # the part of the state that counts the responses of the conversation itself
TASK, FINISH = "task", "finish"  # tools
# The end of the last exchange, by the status of the conversation.
ENDS = {"finished": "result", "error": "failed", "stuck": "failed", "paused": "cut"}
# The beginning of a message that OpenHands writes in the user's name.
NUDGE = "Your last response did not include a function call or a message."


@dataclass(slots=True)
class _Response(OpenTurn):
    key: str | None = None  # the id that OpenHands has for it
    family: str = OPENAI

    def take(self, counted: CountedResponse) -> None:
        self.model, self.family = counted.model, counted.family
        self.count(counted.usage, counted.message_id)


class _TaskCall(NamedTuple):
    """A call of the tool that starts a sub-agent."""

    id: str | None
    prompt: str | None
    kind: str | None
    description: str | None


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the documents."""
    tree = _Tree(source, spoken=True)
    main, conversation = tree.main, tree.main.conversation
    main.settle_ends()
    for agent in tree.agents:
        for turn in agent.conversation.turns():
            conversation.place([turn])
    return Session(
        id=main.name,
        agent=AGENT_NAME,
        title=conversation.title(),
        project=main.state.folder,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        side_turns=[turn.as_turn() for turn in tree.aside],
        agents=tree.sub_agents(),
        compactions=[compaction for part in (main, *tree.agents) for compaction in part.compactions],
    )


def parent_of(source: SourceFiles) -> str | None:
    return None


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    tree = _Tree(source, spoken=False)
    for turn in tree.responses():
        if turn.is_counted or turn.message_id:
            yield turn.as_response(
                family=turn.family, session=tree.main.name, project=tree.main.state.folder, agent=AGENT_NAME
            )


# ---------------------------------------------------------------- a conversation and its sub-agents


class _Tree:
    """A conversation with those of its sub-agents, each response with its tokens."""

    def __init__(self, source: SourceFiles, *, spoken: bool) -> None:
        folders: dict[str, list[File]] = {}
        for file in (source.main, *source.others):
            folders.setdefault(_folder_of(file), []).append(file)
        (main, files), *others = folders.items()
        self.main = _Part(main, files, MAIN, spoken=spoken)
        self.agents = [_Part(name, files, AGENT_PREFIX + _last(name), spoken=spoken) for name, files in others]
        self.aside: list[_Response] = []  # responses outside of the conversation, such as summaries of it
        self._count()

    def responses(self) -> list[_Response]:
        parts = (self.main, *self.agents)
        turns = [turn for part in parts for turn in part.conversation.turns() if isinstance(turn, _Response)]
        return turns + self.aside

    def _count(self) -> None:
        """Give the responses their tokens. The state of a conversation repeats what its sub-agents used: theirs is read
        first."""
        parts = (*self.agents, self.main)
        named = {turn.key: turn for part in parts for turn in part.named}
        taken: set[str] = set()
        for part in parts:
            latest: _Response | None = None  # of the conversation itself
            for counted in part.state.responses():
                if counted.key in taken:
                    continue
                turn = named.get(counted.key) if counted.key else None
                if turn is None:
                    turn = self._add(part, counted, latest)
                turn.take(counted)
                taken.update([counted.key] if counted.key else ())
                latest = turn if turn.thread == part.thread else latest
        for part in parts:
            for turn in part.named:
                if turn.key not in taken:
                    turn.family, turn.model = model_of(part.state.model)
                    turn.message_id = vendor_id(turn.key, turn.family)
            self.aside += [turn for turn in part.named if turn.thread == SIDE]

    def _add(self, part: "_Part", counted: CountedResponse, latest: _Response | None) -> _Response:
        """Add a response that no event names: its event was lost, or it was for something else."""
        kind, is_of_agent, agent = counted.part.partition(":")
        if kind != OWN_PART and not is_of_agent:
            turn = _Response(thread=SIDE)
            self.aside.append(turn)
        elif is_of_agent:
            turn = _Response(thread=AGENT_PREFIX + agent)
            turn.see(part.task_ends.get(agent))
            part.conversation.place([turn])
        else:
            turn = _Response(thread=part.thread)
            turn.see(latest.ended if latest else part.conversation.started)
            part.insert(turn, latest)
        return turn

    def sub_agents(self) -> list[SubAgent]:
        calls = [call for part in (self.main, *self.agents) for call in part.calls]
        agents = []
        for part in sorted(self.agents, key=lambda item: (item.asked_at is None, item.asked_at)):
            call = next((call for call in calls if part.prompt and call.prompt == part.prompt), None)
            if call:
                calls.remove(call)
            agents.append(
                SubAgent(
                    thread=part.thread,
                    parent_thread=part.parent_thread,
                    tool_use_id=call.id if call else None,
                    kind=call.kind if call else None,
                    description=call.description if call else None,
                )
            )
        return agents


def _folder_of(file: File) -> str:
    """Return the folder of a conversation; of a state that is elsewhere, nothing."""
    return file.name.replace("\\", "/").rpartition("/")[0].removeprefix("../")


def _last(folder: str) -> str:
    return folder.rpartition("/")[2]


# ---------------------------------------------------------------- one conversation


class _Part:
    """The state and the events of one conversation. `spoken`: with what was said, and not only what was billed."""

    def __init__(self, folder: str, files: list[File], thread: str, *, spoken: bool) -> None:
        self.thread = thread
        self.conversation = Conversation()
        self.named: list[_Response] = []  # by an event
        self.compactions: list[Compaction] = []
        self.calls: list[_TaskCall] = []
        self.task_ends: dict[str, datetime | None] = {}  # by the id that the state counts a sub-agent under
        self.prompt: str | None = None
        self.asked_at: datetime | None = None
        self._folder, self._spoken = folder, spoken
        events = next((file for file in files if _last(file.name) == EVENTS), None)
        state = next((file for file in files if file is not events), None)
        self.state = fitting(ConversationState, next(_objects(state), {}))
        for value in _objects(events):
            self._take(fitting(OpenHandsEvent, value))

    @property
    def name(self) -> str:
        """The id of the conversation: the name of its folder."""
        return _last(self._folder) or (self.state.id or "").replace("-", "")

    @property
    def parent_thread(self) -> str:
        """The thread of the conversation that started this one: `<id>/subagents/<id>/subagents/<id>`."""
        names = self._folder.split("/")
        return AGENT_PREFIX + names[-3] if len(names) > 3 else MAIN

    def insert(self, turn: _Response, latest: _Response | None) -> None:
        """Add a response after another one, or as the first."""
        for exchange in reversed(self.conversation.exchanges):
            for at in range(len(exchange.turns), 0, -1):  # mostly, it is the last one
                if exchange.turns[at - 1] is latest:
                    exchange.turns.insert(at, turn)
                    return
        self.conversation.current()
        self.conversation.exchanges[0].turns.insert(0, turn)

    def settle_ends(self) -> None:
        """Say how exchanges ended whose last response called tools: one tool ends them, and the last exchange ended as
        the conversation did."""
        exchanges = self.conversation.exchanges
        for exchange in exchanges:
            if exchange.end_reason is None and FINISH in _called(exchange.turns):
                exchange.end_reason = "result"
        for last in exchanges[-1:]:
            if last.end_reason is None and (_called(last.turns) or not last.turns):
                last.end_reason = ENDS.get(self.state.execution_status or "")

    # ------------------------------------------------------------ events

    def _take(self, event: OpenHandsEvent) -> None:
        at = event.at
        match event.kind:
            case "MessageEvent" if event.source == "user":
                self._ask(event, at)
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                self._answer_call(event, at)
            case "Condensation":
                self._condense(event, at)
            case "ConversationErrorEvent":
                self.conversation.end("failed", at)
            case "PauseEvent" | "InterruptEvent":
                self.conversation.end("cut", at)
            case "ACPToolCallEvent":
                self._take_call_of_other_agent(event, at)
            case "ActionEvent" | "MessageEvent" if event.source != "environment":
                self._say(event, at)
        self.conversation.see(at)

    def _ask(self, event: OpenHandsEvent, at: datetime | None) -> None:
        text = input_of(event) or ""
        if self.prompt is None:
            self.prompt, self.asked_at = text, at
        if not text.startswith(NUDGE):
            self.conversation.ask(text, at)

    def _say(self, event: OpenHandsEvent, at: datetime | None) -> None:
        turns = self.conversation.current().turns
        turn = turns[-1] if turns else None
        if not isinstance(turn, _Response) or turn.key != event.response or turn.key is None:
            turn = _Response(thread=self.thread, key=event.response)
            if turn.key:
                self.named.append(turn)
            self.conversation.add(turn)
        turn.see(at)
        if self._spoken:
            for block in spoken_in(event):
                self.conversation.put(turn, block, at)
        if event.tool == TASK:
            self._note_call(event)

    def _note_call(self, event: OpenHandsEvent) -> None:
        given = fields_of(event.action)
        kind, description = text_of(given.get("subagent_type")), text_of(given.get("description"))
        self.calls.append(_TaskCall(event.call_id, text_of(given.get("prompt")), kind, description))

    def _answer_call(self, event: OpenHandsEvent, at: datetime | None) -> None:
        if self._spoken:
            self.conversation.result(result_of(event), at)
        if task := text_of(fields_of(event.observation).get("task_id")):
            self.task_ends[task] = at

    def _take_call_of_other_agent(self, event: OpenHandsEvent, at: datetime | None) -> None:
        """Take a tool call of an agent that OpenHands runs. It is written again when it has ended."""
        turns = self.conversation.current().turns
        turn = turns[-1] if turns else OpenTurn(thread=self.thread)
        if not turns:
            self.conversation.add(turn)
        used = {block.id for block in turn.blocks if block.kind == "tool_use"}
        if self._spoken and event.call_id not in used:
            self.conversation.put(turn, base.use(event.call_id, event.title, event.raw_input), at)
        if self._spoken and event.status in ("completed", "failed"):
            self.conversation.result(other_agents_result(event), at)

    def _condense(self, event: OpenHandsEvent, at: datetime | None) -> None:
        self.compactions.append(Compaction(at=at, thread=self.thread, trigger="auto"))
        if event.response:
            turn = _Response(thread=SIDE, key=event.response)
            turn.see(at)
            if self._spoken and event.summary:
                turn.blocks.append(Block(kind="text", text=event.summary, at=at))
            self.named.append(turn)


def _called(turns: list[OpenTurn]) -> list[str | None]:
    """Return the tools that the last response called."""
    return [block.name for block in turns[-1].blocks if block.kind == "tool_use"] if turns else []


def _objects(file: File | None) -> Iterator[Json]:
    """Yield the objects among the documents of a file."""
    for entry in file.entries if file else ():
        if isinstance(entry, JsonEntry) and type(entry.value) is dict:
            yield entry.value
