"""pi's sessions: `sessions/--<folder of the project>--/<time>_<id>.jsonl`, a tree of lines in one file.

- The user may go back to any line and continue from there. All branches stay in the file, and the last line is the end
  of the one that was used last. Other branches are read too, and marked as left: they were said, and billed.
- A fork is a new file with copies of its source's lines, with their ids and times. They are kept, because the source
  may be gone; the ledger recognises them by the vendor's ids of the responses, or by their times.
- In 0.87 summaries of a compaction or of a branch have their usage in the file, as do calls that keep the cache warm,
  and what models used that a tool called. They are side turns. In 0.74 the file does not show these calls.
- A compaction that splits a turn makes two calls, whose sum the file has: it is a total, so that the calls that the
  proxy saw are not counted beside it.

Agents made from pi (`omp`, `prime-agent`) write the same lines. Their sub-agents have files of their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PureWindowsPath
from typing import Any

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.tree import Tree
from agent_logger.agents.conversation import Conversation, OpenExchange, OpenTurn
from agent_logger.agents.pi.lines import (
    PiLine,
    PiMessage,
    blocks_of,
    cost_of,
    id_in_name,
    lines_of,
    result_of,
    usage_of,
)
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.ids import UUID
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import (
    AGENT_PREFIX,
    MAIN,
    SIDE,
    Block,
    ClientTotal,
    Compaction,
    Exchange,
    ModelTotal,
    Session,
    SubAgent,
    Turn,
)
from agent_logger.providers.blocks.base import joined_text, parts_of

AGENT_NAME = "pi"
# The vendor of the response ids, by the API that was used. All others are like OpenAI's, or have no ids.
FAMILIES = {
    "anthropic-messages": "anthropic",
    "google-generative-ai": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
    "mistral-conversations": "mistral",
    "bedrock-converse-stream": "bedrock",
}
OPENAI = "openai"
UNKNOWN = "unknown"  # the family of responses without an id
# The end of an exchange, by the reason of its last response. A response with one of these reasons is incomplete.
ENDS = {"error": "failed", "aborted": "cut", "pending": None, "deferred": None}
TOOL_USE = {"toolUse": "tool_use"}  # the word of the APIs
SPLIT_TURN = "\n\n---\n\n**Turn Context (split turn):**\n\n"  # between the texts of two calls
_SKILL = re.compile(r'<skill name="([^"]+)" location="[^"]*">.*?(?:</skill>|\Z)', re.DOTALL)


@dataclass(slots=True)
class _PiTurn(OpenTurn):
    family: str = OPENAI
    cost: float | None = None  # dollars, as pi calculates them
    error: str | None = None

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error)

    def bill(self, usage: Any, response_id: str | None) -> None:
        """Set the usage and cost of a response that produced anything, understood or not."""
        self.count(usage_of(usage), response_id)
        self.cost = cost_of(usage)


def session_of(source: SourceFiles, agent: str = AGENT_NAME) -> Session:
    """Read a session of pi, or of an agent made from it. Nothing is raised, whatever is in the files."""
    file = _SessionFile(source.main)
    conversation = file.conversation
    agents = []
    for other in map(_SessionFile, source.others):
        turns = [turn for turn in other.turns if turn.thread == MAIN]
        for turn in turns:
            turn.thread = AGENT_PREFIX + other.id
        file.turns += other.turns
        conversation.place(list(turns))
        agents.append(SubAgent(thread=AGENT_PREFIX + other.id, description=other.name or other.stem))
    return Session(
        id=file.id,
        agent=agent,
        title=file.name or conversation.title(),
        project=file.project,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=file.exchanges(),
        side_turns=[turn.as_turn() for turn in file.turns if turn.thread == SIDE],
        parent=file.parent,
        agents=agents,
        compactions=conversation.compactions,
        totals=file.totals,
    )


def parent_of(source: SourceFiles) -> str | None:
    """Return the session that this one was forked from, as the header says."""
    header = next((line for line in lines_of(source.main) if line.type != "title"), None)
    return _parent(header) if header and header.type == "session" else None


def first_prompt(file: File) -> str | None:
    """Return the first input in a file."""
    messages = (line.message for line in lines_of(file) if line.message and line.message.role == "user")
    return next((joined_text(message.content) for message in messages), None)


def _parent(header: PiLine) -> str | None:
    """Return the parent, which is named by the path of its file."""
    path = header.parent_session
    if not path or header.depth:
        return None
    stem = PureWindowsPath(path).stem
    return id_in_name(path) or (stem if UUID.fullmatch(stem) else None)


def responses_of(source: SourceFiles, agent: str = AGENT_NAME) -> Iterator[ModelResponse]:
    return _responses(_SessionFile(source.main, spoken=False), source, agent)


def billed_of(source: SourceFiles, agent: str = AGENT_NAME) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    """Return the responses, and the totals of summaries that took two calls."""
    file = _SessionFile(source.main, spoken=False)
    totals = [
        ReportedTotal(session=file.id, project=file.project, agent=agent, family=UNKNOWN, total=total)
        for total in file.totals
    ]
    return list(_responses(file, source, agent)), totals


def _responses(main: "_SessionFile", source: SourceFiles, agent: str) -> Iterator[ModelResponse]:
    for file in (main, *(_SessionFile(other, spoken=False) for other in source.others)):
        for turn in file.turns:
            if turn.is_counted:
                is_of_agent = file is not main and turn.thread == MAIN
                yield turn.as_response(
                    family=turn.family,
                    session=main.id,
                    project=main.project,
                    agent=agent,
                    thread=AGENT_PREFIX + file.id if is_of_agent else turn.thread,
                    cost_usd=turn.cost,
                )


class _SessionFile:
    """A session file, read line by line; without `spoken`, only what was billed is right."""

    def __init__(self, file: File, *, spoken: bool = True) -> None:
        self.stem = file.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        self.conversation = Conversation()
        self._spoken = spoken
        self.totals: list[ClientTotal] = []
        self.turns: list[_PiTurn] = []  # all responses, in the order of the file
        self.id = id_in_name(file.name) or self.stem
        self.project: str | None = None
        self.parent: str | None = None
        self.name: str | None = None  # the user's name for the session
        self._has_header = False
        self._tree = Tree()
        self._model: str | None = None  # the one in use
        self._injected: OpenExchange | None = None  # the last message of an extension, which may begin an exchange
        for line in lines_of(file, spoken=spoken):
            if line.id not in self._tree.parents:  # otherwise the file has the line twice
                self._take(line)

    def exchanges(self) -> list[Exchange]:
        left = self._tree.left()
        return [replace(exchange, left=exchange.number in left) for exchange in self.conversation.as_exchanges()]

    def _take(self, line: PiLine) -> None:
        if line.type in ("session", "title"):
            self._take_header(line)
            return
        before, at = self._number, line.at
        match line.type:
            case "message" if line.message:
                self._take_message(line.message, line, at)
            case "custom_message":
                self._inject(line.custom_type, line.content, at)
            case "model_change":
                self._model = line.model_id or self._model
            case "session_info":
                self.name = (line.name or "").strip() or None
            case "compaction":
                self._compact(line)
            case "branch_summary" | "usage":
                self._add_side_turn(line.usage, line.model or self._model, line.summary, at)
        self.conversation.see(at)
        if line.id is not None:
            self._place(line.id, line.parent, begins=self._number > before)

    def _take_header(self, line: PiLine) -> None:
        self.name = line.title or self.name
        if self._has_header or line.type == "title":
            return
        self._has_header = True
        self.id = line.id or self.id
        self.project, self.parent = line.cwd, _parent(line)
        self.conversation.see(line.at)

    # ------------------------------------------------------------ branches

    @property
    def _number(self) -> int:
        return len(self.conversation.exchanges)

    def _place(self, name: str, parent: str | None, *, begins: bool) -> None:
        """Place a line in the exchange that it begins, else in that of the line it follows."""
        followed = 0 if parent is None else self._tree.exchange_of.get(parent, self._number)
        self._tree.add(name, parent, self._number if begins else followed)
        if begins:
            self._tree.begins(self._number, name)

    def _exchange_of(self, line: PiLine) -> OpenExchange:
        """Return the exchange that a response belongs to: that of the line it follows, which is the latest, unless two
        processes write into one file. The exchange is new if there was no input before, or if an extension's text began
        it."""
        number = self._tree.exchange_of.get(line.parent, self._number)
        followed = self.conversation.exchanges[number - 1] if number else None
        injected, self._injected = self._injected, None
        if followed and not (injected and _has_yielded(followed)):
            return followed
        self.conversation.exchanges.append(injected or OpenExchange(started=line.at, ended=line.at))
        return self.conversation.exchanges[-1]

    # ------------------------------------------------------------ what happened

    def _take_message(self, message: PiMessage, line: PiLine, at: datetime | None) -> None:
        match message.role:
            case "user":
                self._injected = None
                self.conversation.ask(_typed(message.content), message.began or at)
            case "assistant":
                self._answer(message, line, at)
            case "toolResult":
                self.conversation.result(result_of(message), message.began or at)
                self._add_side_turn(message.usage, None, None, at)
            case "custom" | "hookMessage" if message.is_hidden is not True:
                self._inject(message.custom_type, message.content, at)

    def _answer(self, message: PiMessage, line: PiLine, at: datetime | None) -> None:
        exchange = self._exchange_of(line)
        reason, blocks, began = message.stop_reason or "", list(blocks_of(message.content)), message.began
        turn = _PiTurn(
            message_id=message.response_id,
            model=message.response_model or message.model or self._model,
            stop_reason=TOOL_USE.get(reason, message.stop_reason),
            complete=reason not in ENDS,
            family=FAMILIES.get(message.api or "", OPENAI),
            error=message.error if reason == "error" else None,
        )
        self._model = message.model or self._model
        if turn.complete or message.response_id or blocks or usage_of(message.usage):
            turn.bill(message.usage, message.response_id)
        turn.see(began or at)
        turn.see(at)
        self.turns.append(turn)
        if exchange is self.conversation.exchanges[-1]:
            self.conversation.add(turn)
        else:
            exchange.turns.append(turn)
        self.conversation.see(began)
        exchange.end_reason = ENDS.get(reason)
        for block in blocks:
            if self._spoken or block.kind == "tool_use":
                self.conversation.put(turn, block, at)

    def _inject(self, origin: str | None, content: Any, at: datetime | None) -> None:
        self._injected = OpenExchange(joined_text(content) or None, origin or "extension", started=at, ended=at)

    def _compact(self, line: PiLine) -> None:
        before = line.tokens_before
        tokens = before if type(before) is int and before >= 0 else None
        self.conversation.compactions.append(Compaction(at=line.at, thread=MAIN, tokens_before=tokens))
        if SPLIT_TURN in (line.summary or "") and (usage := usage_of(line.usage)):
            models = (ModelTotal(model=self._model, usage=usage),)
            started = self.conversation.ended or line.at
            self.totals.append(ClientTotal(witness="transcript", models=models, started=started, ended=line.at))
            return
        self._add_side_turn(line.usage, self._model, line.summary, line.at)

    def _add_side_turn(self, usage: Any, model: str | None, summary: str | None, at: datetime | None) -> None:
        if usage is None:
            return
        turn = _PiTurn(thread=SIDE, model=model, family=UNKNOWN)
        turn.bill(usage, None)
        turn.see(at)
        if summary:
            turn.blocks.append(Block(kind="text", text=summary, at=at))
        self.turns.append(turn)


def _has_yielded(exchange: OpenExchange) -> bool:
    """Whether the agent had finished."""
    return bool(exchange.turns) and exchange.turns[-1].stop_reason not in TOOL_USE.values()


def _typed(content: Any) -> str:
    """Return what the user typed. A skill is called by its name; pi puts its text there."""
    text = joined_text(content).strip()
    if skill := _SKILL.match(text):
        return f"/skill:{skill[1]} {text[skill.end() :].strip()}".strip()
    has_other = any(part.get("type") != "text" for part in parts_of(content))
    return typed([text]) or text or ("[image]" if has_other else "")
