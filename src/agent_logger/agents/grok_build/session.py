"""Grok Build's sessions: `sessions/<project>/<session>/updates.jsonl`, with documents beside it.

- All updates of one response name the moment when it began. Its tokens are nowhere: there is a total for each prompt,
  which this reader reports as such, and a response has no usage and no id of its own.
- A response that was repeated after a cut has the text of both attempts in one piece; what the model is sent again
  tells where the second begins.
- A sub-agent is a session of its own, and a thread of the one that started it.
- A fork begins with copies of its source's updates, known by the session in the ids of their events. They are left out.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenExchange, OpenTurn
from agent_logger.agents.grok_build.documents import (
    META,
    AgentMeta,
    answers_in,
    stored_turns,
    summary_of,
)
from agent_logger.agents.grok_build.totals import PromptTotal, uncounted
from agent_logger.agents.grok_build.updates import (
    ENDED,
    TurnUsage,
    Update,
    UpdateLine,
    result_of,
    text_in,
    tool_use_of,
    turn_usage_of,
    updates_of,
)
from agent_logger.agents.objects import object_in
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.ids import UUID
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import (
    AGENT_PREFIX,
    MAIN,
    Block,
    ClientTotal,
    Compaction,
    Session,
    SubAgent,
    Turn,
)
from agent_logger.providers.json_values import fields_of, text_of
from agent_logger.providers.lenient import fitting

AGENT_NAME = "grok-build"
FAMILY = "unknown"  # of response ids: there are none
ENDS = {"end_turn": "result", "error": "failed"}  # any other end is a cut
WOKEN = "subagent"  # the origin of an exchange that a sub-agent's end began


@dataclass(slots=True)
class _Response(OpenTurn):
    error: str | None = None

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error)


@dataclass(slots=True)
class _Prompt(OpenExchange):
    """An exchange, by the id of its prompt."""

    asked_at: datetime | None = None
    name: str | None = None
    index: object = None  # the number of the user's message, which may come in several pieces
    total: TurnUsage | None = None
    total_at: datetime | None = None


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    tree = _Tree(source, spoken=True)
    main, conversation = tree.main, tree.main.conversation
    totals = tree.totals()
    for agent in tree.agents:
        for exchange in agent.conversation.exchanges:
            conversation.place(exchange.turns)
    summary = summary_of(source, main.id)
    session = Session(
        id=main.id,
        agent=AGENT_NAME,
        title=summary.title or summary.generated_title or conversation.title(),
        project=_project(source, main),
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        parent=summary.source,
        agents=tree.sub_agents(),
        compactions=[compaction for file in (main, *tree.agents) for compaction in file.compactions],
        totals=totals,
    )
    return with_remainders(session)


def parent_of(source: SourceFiles) -> str | None:
    return summary_of(source, _session_in(source.main)).source


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield the responses that no total includes: those of prompts that were killed or are being answered, and those
    that were cut off."""
    yield from billed_of(source)[0]


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    tree = _Tree(source, spoken=False)
    session, project = tree.main.id, _project(source, tree.main)
    turns = (turn for file in (tree.main, *tree.agents) for turn in file.conversation.turns())
    responses = [
        turn.as_response(family=FAMILY, session=session, project=project, agent=AGENT_NAME)
        for turn in turns
        if turn.is_counted
    ]
    totals = [
        ReportedTotal(session=session, project=project, agent=AGENT_NAME, family=FAMILY, total=total)
        for total in tree.totals()
    ]
    return responses, totals


def _session_in(file: File) -> str:
    """Return the session whose file this is: the name of its folder; of a file that is elsewhere, its own name."""
    *_, folder, name = ("", *file.name.replace(os.sep, "/").split("/"))
    return folder or name.rsplit(".", 1)[0]


def _project(source: SourceFiles, main: "_UpdatesFile") -> str | None:
    summary = summary_of(source, main.id)
    return summary.info.cwd if summary.info else None


# ---------------------------------------------------------------- a session and its sub-agents


class _Tree:
    """The files of a session and of its sub-agents, read."""

    def __init__(self, source: SourceFiles, *, spoken: bool) -> None:
        self._source = source
        self.main = _UpdatesFile(source, source.main, MAIN, spoken=spoken)
        updates = [file for file in source.others if not file.name.endswith(META)]
        self.agents = [
            _UpdatesFile(source, file, f"{AGENT_PREFIX}{_session_in(file)}", spoken=spoken) for file in updates
        ]
        self._metas = [_meta_of(file) for file in source.others if file.name.endswith(META)]

    def totals(self) -> list[ClientTotal]:
        """Return what each prompt took, and what sub-agents took that no prompt's total includes."""
        children: dict[str, list[_UpdatesFile]] = {}
        parents = {meta.child: meta.parent for meta in self._metas}
        for agent in self.agents:
            parent = parents.get(agent.id)
            children.setdefault(parent if parent and parent != agent.id else self.main.id, []).append(agent)
        left = self._left(self.main, children, set())
        conversation = self.main.conversation
        totals = [_total(prompt, number) for number, prompt in enumerate(conversation.exchanges, 1)]
        return [total for total in totals if total] + [
            ClientTotal(
                witness="transcript",
                is_whole=False,
                models=other.usage.models,
                started=other.started,
                ended=other.ended,
                exchange=_exchange_at(conversation, other.started),
            )
            for other in left
        ]

    def _left(
        self, file: "_UpdatesFile", children: dict[str, list["_UpdatesFile"]], visited: set[str]
    ) -> list[PromptTotal]:
        """Return the totals of the sub-agents of a file, at any depth, that its own totals do not include."""
        if file.id in visited:  # sub-agents that name each other as their starters
            return []
        visited.add(file.id)
        below: list[PromptTotal] = []
        for child in children.get(file.id, ()):
            below += [*child.prompt_totals(), *self._left(child, children, visited)]
        return uncounted(file.prompt_totals(), below)

    def sub_agents(self) -> list[SubAgent]:
        metas = {meta.child: meta for meta in self._metas}
        starters = {name: call for file in (self.main, *self.agents) for name, call in file.started.items()}
        agents = []
        for file in self.agents:
            meta = metas.get(file.id, AgentMeta())
            is_main = meta.parent in (None, self.main.id, file.id)
            agents.append(
                SubAgent(
                    thread=file.thread,
                    parent_thread=MAIN if is_main else f"{AGENT_PREFIX}{meta.parent}",
                    tool_use_id=starters.get(file.id) or self._caller(meta),
                    kind=meta.kind,
                    description=meta.description,
                )
            )
        return agents

    def _caller(self, meta: AgentMeta) -> str | None:
        """Return the tool call that has a sub-agent's prompt."""
        calls = (
            block
            for file in (self.main, *self.agents)
            for turn in file.conversation.turns()
            for block in turn.blocks
            if block.kind == "tool_use"
        )
        same = (
            call.id for call in calls if meta.prompt and text_of(fields_of(call.input).get("prompt")) == meta.prompt
        )
        return next(same, None)


def _meta_of(file: File) -> AgentMeta:
    return fitting(AgentMeta, object_in(b"".join(file.chunks()))) if file.chunks else AgentMeta()


def _total(prompt: OpenExchange, number: int) -> ClientTotal | None:
    if not isinstance(prompt, _Prompt) or prompt.total is None:
        return None
    return ClientTotal(
        witness="transcript",
        is_whole=False,  # titles are in no total
        models=prompt.total.models,
        started=prompt.asked_at,
        ended=prompt.total_at,
        exchange=number,
    )


def _exchange_at(conversation: Conversation, at: datetime | None) -> int | None:
    starts = [exchange.asked_at for exchange in conversation.exchanges if isinstance(exchange, _Prompt)]
    before = [number for number, start in enumerate(starts, 1) if at and start and start <= at]
    return before[-1] if before else (1 if starts else None)


# ---------------------------------------------------------------- one file


class _UpdatesFile:
    """The updates of one session, read in order."""

    def __init__(self, source: SourceFiles, file: File, thread: str, *, spoken: bool) -> None:
        self._source, self.thread = source, thread
        self.id = _session_in(file)
        self.conversation = Conversation()
        self.compactions: list[Compaction] = []
        self.started: dict[str, str] = {}  # tool calls by the sub-agent that they started
        self._responses: dict[tuple[str | None, int | None], _Response] = {}
        self._last: _Prompt | None = None
        self._named: dict[str, _Prompt] = {}
        self._failed: _Response | None = None  # an attempt whose text may stand before that of the next
        self._model: str | None = None
        self._answers: list[str] | None = None
        self._has_copies = False
        for line in updates_of(file, spoken=spoken):
            if self._is_own(line):
                self._take(line)
        self.conversation.exchanges = [prompt for prompt in self._prompts() if prompt.turns or not prompt.origin]
        self._take_stored_totals()
        self._settle()

    def _is_own(self, line: UpdateLine) -> bool:
        """Whether the session itself wrote the line first; a fork has copies of lines of its source."""
        event = line.about.event
        writer = event.rpartition("-")[0] if event else ""
        is_own = writer in (self.id, "") or not UUID.fullmatch(self.id)  # the id of a file that is elsewhere is unknown
        self._has_copies |= not is_own
        return is_own

    def prompt_totals(self) -> list[PromptTotal]:
        return [
            PromptTotal(
                prompt.total,
                len([turn for turn in prompt.turns if turn.complete])
                if prompt.total.own_calls is None
                else prompt.total.own_calls,
                prompt.asked_at,
                prompt.total_at,
            )
            for prompt in self._prompts()
            if prompt.total
        ]

    def _prompts(self) -> list[_Prompt]:
        return [prompt for prompt in self.conversation.exchanges if isinstance(prompt, _Prompt)]

    # ------------------------------------------------------------ updates

    def _take(self, line: UpdateLine) -> None:
        update, at = line.update, line.at
        match update.kind:
            case "user_message_chunk":
                self._ask(update, at)
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                self._say(line, "text" if kind == "agent_message_chunk" else "thinking")
            case "tool_call":
                self._put(line, tool_use_of(update))
            case "tool_call_update" if update.status in ENDED:
                self.conversation.result(result_of(update), at)
            case "retry_state":
                self._fail(update, at)
            case "turn_completed":
                self._end(update, at)
            case "auto_compact_completed":
                self.compactions.append(
                    Compaction(
                        at=at,
                        thread=self.thread,
                        tokens_before=_number(update.tokens_before),
                        tokens_after=_number(update.tokens_after),
                    )
                )
        self.conversation.see(at)

    def _ask(self, update: Update, at: datetime | None) -> None:
        about, text = update.about or {}, text_in(update.content)
        self._model = text_of(about.get("modelId")) or self._model
        index = about.get("promptIndex")
        last = self._last
        if last and not last.turns and last.name is None and index is not None and last.index == index:
            last.user_input = "\n".join(filter(None, (last.user_input, text)))
            return
        self._failed = None
        prompt = _Prompt(typed([text]) if text else "[image]", started=at, ended=at, asked_at=at, index=index)
        prompt.origin = None if prompt.user_input else WOKEN
        self.conversation.see(at)
        self._append(prompt)

    def _prompt(self, line: UpdateLine) -> _Prompt:
        """Return the exchange that a line of the agent belongs to: one that nobody typed begins with such a line."""
        name = line.about.prompt
        last = self._last
        if last is None or (name is not None and last.name is not None and last.name != name):
            last = _Prompt(None, WOKEN if last else None, started=line.at, ended=line.at, asked_at=line.at)
            self._append(last)
        last.name = name or last.name
        self._named[last.name or ""] = last
        return last

    def _append(self, prompt: _Prompt) -> None:
        self.conversation.exchanges.append(prompt)
        self._last = prompt

    def _response(self, line: UpdateLine) -> _Response:
        key = (line.about.prompt, _number(line.about.stream))
        response = self._responses.get(key) if key[1] is not None else None
        if response is None:
            self._prompt(line)
            response = self._responses[key] = _Response(thread=self.thread, model=self._model)
            response.see(line.at)
            self.conversation.add(response)
        return response

    def _put(self, line: UpdateLine, block: Block) -> None:
        self.conversation.put(self._response(line), block, line.at)

    def _say(self, line: UpdateLine, kind: str) -> None:
        text = text_in(line.update.content)
        if kind == "text" and self._failed and (whole := self._second_attempt(text)) is not None:
            if cut := text[: len(text) - len(whole)]:
                self.conversation.put(self._failed, Block(kind="text", text=cut), line.at)
            text = whole
        self._failed = None
        self._put(line, Block(kind="text", text=text) if kind == "text" else Block(kind="thinking", text=text))

    def _second_attempt(self, text: str) -> str | None:
        """Return the part of a text that was written in the last attempt; None if that is not known any more."""
        if self._answers is None:
            self._answers = answers_in(self._source, self.id)
        return max((answer for answer in self._answers if text.endswith(answer)), key=len, default=None)

    def _fail(self, update: Update, at: datetime | None) -> None:
        """Note an attempt that failed. `retry_state` with another type says that attempts go on, or have ended."""
        error = text_of(update.cause) or update.error
        if update.type not in ("retrying", "failed"):
            return
        response = _Response(thread=self.thread, model=self._model, complete=False, error=error)
        response.see(at)
        self.conversation.add(response)
        self._failed = response if update.type == "retrying" else None

    def _end(self, update: Update, at: datetime | None) -> None:
        prompt = self._named.get(update.prompt or "") or self._last
        if prompt is None:
            prompt = _Prompt(started=at, ended=at, asked_at=at)
            self._append(prompt)
        if prompt.name is None:
            prompt.name = update.prompt
        prompt.see(at)
        usage = turn_usage_of(update.usage or {})
        if usage and prompt.total is None:
            prompt.total, prompt.total_at = usage, at
        if usage or prompt.total is None:  # a prompt that has ended is reported again when the session is resumed
            prompt.end_reason = ENDS.get(update.reason or "", "cut")

    # ------------------------------------------------------------ what was billed

    def _take_stored_totals(self) -> None:
        """Take the totals whose lines are lost from where they are there again."""
        prompts = self._prompts()
        if not prompts or all(prompt.total for prompt in prompts):
            return
        stored = stored_turns(self._source, self.id)
        if self._has_copies:
            first = prompts[0].asked_at
            stored = [turn for turn in stored if turn.ended and first and turn.ended >= first]
        for prompt in prompts:
            same = next((turn for turn in stored if prompt.total and turn.usage.models == prompt.total.models), None)
            if same:
                stored.remove(same)
        for turn in stored:
            before = [prompt for prompt in prompts if turn.ended and prompt.asked_at and prompt.asked_at <= turn.ended]
            if before and before[-1].total is None:
                before[-1].total, before[-1].total_at = turn.usage, turn.ended

    def _settle(self) -> None:
        """Mark responses whose tokens are in no total as billed with an unknown usage."""
        for prompt in self._prompts():
            for turn in prompt.turns:
                has_words = any(block.kind != "tool_result" for block in turn.blocks)
                turn.unread_usage = has_words and (not turn.complete or prompt.total is None)


def _number(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
