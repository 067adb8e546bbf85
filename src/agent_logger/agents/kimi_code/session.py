"""Kimi Code's sessions: `sessions/<project>/<session>/agents/<agent>/wire.jsonl`, the log of an agent's events.

- A step is a request to the model: it begins, is answered in parts, and ends with the vendor's id of the response. Its
  tokens are in a `usage.record` before that; a step that was killed has them, and no id.
- A sub-agent has a file of its own, a thread of the session that started it.
- A fork begins with copies of its source's lines, with their ids and times. They are kept; the ledger recognises them.
- Nothing is removed from a file: exchanges that the user took back are marked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.kimi_code.lines import (
    MAIN_AGENT,
    STATE,
    KimiEvent,
    KimiLine,
    PromptOrigin,
    block_of,
    input_of,
    lines_of,
    result_of,
    usage_of,
)
from agent_logger.agents.objects import object_in
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, SIDE, Block, Compaction, Exchange, Session, SubAgent, Turn
from agent_logger.providers.blocks import base
from agent_logger.providers.lenient import fitting

AGENT_NAME = "kimi-code"
# The vendor of the response ids, by the API; all others are like OpenAI's.
FAMILIES = {
    "anthropic": "anthropic",
    "google": "gemini",
    "google-genai": "gemini",
    "gemini": "gemini",
    "vertexai": "gemini",
}
OPENAI = "openai"
ENDS = {"completed": "result", "failed": "failed"}  # any other end is a cut
LOOP = "loop"  # the kind of the requests of steps
MOST_STATE_BYTES = 4 << 20
# Causes of an input that stand for a person: text, a command, a shell line.
PEOPLE = frozenset({"user", "shell_command", "skill_activation", "plugin_command"})
INJECTION = "injection"  # a reminder to the model, which begins nothing
BY_COMMAND = "user-slash"


@dataclass(slots=True)
class _Step(OpenTurn):
    family: str = OPENAI
    error: str | None = None

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error)


class _AgentState(msgspec.Struct, gc=False):
    parent: str | None = msgspec.field(name="parentAgentId", default=None)
    labels: dict[str, str] | None = None


class _State(msgspec.Struct, gc=False):
    """`state.json`, which is rewritten all the time."""

    id: str | None = None
    cwd: str | None = None
    title: str | None = None
    forked_from: str | None = msgspec.field(name="forkedFrom", default=None)
    agents: dict[str, _AgentState] | None = None


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    state, name = _state_of(source), _name_of(source.main)
    files = [_AgentFile(file, MAIN if file is source.main else _thread_of(file)) for file in _wires(source)]
    main, *others = files
    conversation = main.conversation
    for other in others:
        for exchange in other.conversation.exchanges:
            conversation.place(exchange.turns)
        main.compactions += other.compactions
        main.agents |= other.agents
    return Session(
        id=state.id or name,
        agent=AGENT_NAME,
        title=state.title or conversation.title(),
        project=state.cwd,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=main.exchanges(),
        side_turns=[turn.as_turn() for file in files for turn in file.aside],
        parent=state.forked_from,
        agents=_sub_agents(main.agents, others, state),
        compactions=main.compactions,
    )


def parent_of(source: SourceFiles) -> str | None:
    return _state_of(source).forked_from


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    state, name = _state_of(source), _name_of(source.main)
    for file in _wires(source):
        lines = _AgentFile(file, MAIN if file is source.main else _thread_of(file), spoken=False)
        for turn in lines.billed():
            yield turn.as_response(family=turn.family, session=state.id or name, project=state.cwd, agent=AGENT_NAME)


# ---------------------------------------------------------------- the files of a session


def _wires(source: SourceFiles) -> list[File]:
    return [source.main, *(file for file in source.others if not file.name.endswith(STATE))]


def _state_of(source: SourceFiles) -> _State:
    described = next((file for file in source.others if file.name.endswith(STATE)), None)
    if described is None or described.chunks is None:
        return _State()
    return fitting(_State, object_in(b"".join(described.chunks())[:MOST_STATE_BYTES]))


def _name_of(main: File) -> str:
    """Return the session's id, which is the name of its folder; of a file that is elsewhere, its own name."""
    first, *more = main.name.replace("\\", "/").split("/")
    return first if more else first.rsplit(".", 1)[0]


def _thread_of(file: File) -> str:
    *_, folder, _ = ("", *file.name.replace("\\", "/").split("/"))
    return f"{AGENT_PREFIX}{folder or file.name}"


def _sub_agents(started: dict[str, SubAgent], files: list["_AgentFile"], state: _State) -> list[SubAgent]:
    """Return the sub-agents, as the lines of their starters describe them; otherwise as the session's state does."""
    states = state.agents or {}
    for file in files:
        name = file.thread.removeprefix(AGENT_PREFIX)
        about = states.get(name, _AgentState())
        described = SubAgent(
            thread=file.thread,
            parent_thread=_thread_called(about.parent),
            kind=(about.labels or {}).get("profileName"),
        )
        started.setdefault(file.thread, described)
    return list(started.values())


def _thread_called(agent: str | None) -> str:
    return MAIN if agent in (None, "", MAIN_AGENT) else f"{AGENT_PREFIX}{agent}"


# ---------------------------------------------------------------- one file


class _AgentFile:
    """The lines of one agent, read in order. `spoken`: with what was said, and not only what was billed."""

    def __init__(self, file: File, thread: str, *, spoken: bool = True) -> None:
        self.thread = thread
        self.conversation = Conversation()
        self.aside: list[_Step] = []  # requests outside of steps: summaries
        self.agents: dict[str, SubAgent] = {}  # by thread
        self.compactions: list[Compaction] = []
        self._all: list[_Step] = []  # all requests, in the order of the file
        self._steps: dict[str, _Step] = {}  # by their ids
        self._step: _Step | None = None  # the latest
        self._model: str | None = None  # of the latest request
        self._family = OPENAI
        self._inputs: set[str] = set()  # ids of the inputs so far: each is there twice
        self._left: set[int] = set()  # places of exchanges that were taken back
        self._trigger: str | None = None
        for line in lines_of(file, spoken=spoken):
            self._take(line)
        for step in self._all:
            # An answer without usage was billed, too, and so was one that was cut, as far as it got.
            has_words = any(block.kind != "tool_result" for block in step.blocks)
            if step.usage is None and (bool(step.message_id) if step.complete else has_words):
                step.unread_usage = True

    def billed(self) -> Iterator[_Step]:
        return (step for step in self._all if step.is_counted)

    def exchanges(self) -> list[Exchange]:
        exchanges = self.conversation.as_exchanges()
        return [replace(exchange, left=exchange.number - 1 in self._left) for exchange in exchanges]

    def _take(self, line: KimiLine) -> None:
        at = line.at
        match line.type:
            case "context.append_loop_event" if line.event:
                self._take_event(line.event, at)
            case "llm.request":
                self._request(line)
            case "usage.record":
                self._count(line, at)
            case "turn.prompt" | "turn.steer":
                self._ask(line.prompt_id or line.message_id, line.input, line.origin, at)
            case "context.append_message" if line.message and not isinstance(line.message, str):
                message = line.message
                if message.role == "user" and message.id:
                    self._ask(message.id, message.content, message.origin, at)
            case "turn.ended":
                self.conversation.end(ENDS.get(line.reason or "", "cut"), at)
            case "turn.step.retrying":
                self._fail(line.error)
            case "turn.step.interrupted":
                self._fail(line.message if isinstance(line.message, str) else None)
            case "full_compaction.begin":
                self._trigger = line.source
            case "context.apply_compaction":
                self._compact(line, at)
            case "context.undo":
                self._undo(line.count)
            case "subagent.spawned" if line.agent:
                self._start(line)
        self.conversation.see(at)

    # ------------------------------------------------------------ inputs

    def _ask(self, name: str | None, content: object, origin: PromptOrigin | None, at: datetime | None) -> None:
        origin = origin or PromptOrigin()
        if origin.kind == INJECTION or (name is not None and name in self._inputs):
            return
        if name is not None:
            self._inputs.add(name)
        text = input_of(content)
        if not text:
            return
        self.conversation.ask(typed([text]) or text, at)
        is_person = origin.kind in PEOPLE and origin.trigger in (None, BY_COMMAND)
        self.conversation.exchanges[-1].origin = None if is_person else origin.name or origin.kind

    def _undo(self, count: object) -> None:
        """Mark the last exchanges as taken back."""
        if type(count) is not int or count < 1:
            return
        staying = [at for at in range(len(self.conversation.exchanges)) if at not in self._left]
        self._left.update(staying[-count:])

    # ------------------------------------------------------------ steps

    def _take_event(self, event: KimiEvent, at: datetime | None) -> None:
        if event.type == "step.begin":
            self._begin(event.uuid, at)
            return
        if event.type == "tool.result":
            self.conversation.result(result_of(event), at)
            return
        step = self._steps.get(event.step or event.uuid or "") or self._step
        if step is None:
            step = self._begin(event.step or event.uuid, at)
        match event.type:
            case "content.part":
                self.conversation.put(step, block_of(event.part), at)
            case "tool.call":
                self.conversation.put(step, base.use(event.call, event.name, event.args), at)
            case "step.end":
                self._end(step, event)
        step.see(at)

    def _begin(self, name: str | None, at: datetime | None) -> _Step:
        step = _Step(thread=self.thread, model=self._model, family=self._family, complete=False)
        step.see(at)
        self._all.append(step)
        self._step = step
        if name:
            self._steps[name] = step
        self.conversation.add(step)
        return step

    def _request(self, line: KimiLine) -> None:
        self._model = line.model or self._model
        self._family = FAMILIES.get(line.provider or "", OPENAI)
        if line.kind in (LOOP, None) and self._step and self._step.usage is None:
            self._step.model, self._step.family = self._model, self._family

    def _count(self, line: KimiLine, at: datetime | None) -> None:
        """Set the tokens of the latest step; those of the session are of a request outside of steps."""
        if line.scope == "session":
            step = _Step(thread=SIDE, model=self._model, family=self._family)
            step.see(at)
            self._all.append(step)
            self.aside.append(step)
        else:
            step = self._step if self._step and not self._step.is_counted else self._begin(None, at)
            step.complete = True
        step.count(usage_of(line.usage), step.message_id)

    def _end(self, step: _Step, event: KimiEvent) -> None:
        step.stop_reason = event.reason
        step.message_id = event.message_id or step.message_id
        step.complete = event.reason != "error"
        if step.usage is None and event.usage is not None:
            step.count(usage_of(event.usage), step.message_id)

    def _fail(self, error: str | None) -> None:
        if self._step and not self._step.complete:
            self._step.error = error

    # ------------------------------------------------------------ the rest

    def _compact(self, line: KimiLine, at: datetime | None) -> None:
        self.compactions.append(
            Compaction(
                at=at,
                thread=self.thread,
                trigger=self._trigger,
                tokens_before=_number(line.tokens_before),
                tokens_after=_number(line.tokens_after),
            )
        )
        if self.aside and line.summary and not self.aside[-1].blocks:
            self.aside[-1].blocks.append(Block(kind="text", text=line.summary, at=at))

    def _start(self, line: KimiLine) -> None:
        thread = f"{AGENT_PREFIX}{line.agent}"
        self.agents[thread] = SubAgent(
            thread=thread,
            parent_thread=_thread_called(line.parent),
            tool_use_id=line.tool_call,
            kind=line.agent_kind,
            description=line.description,
        )


def _number(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
