"""Droid's sessions: `sessions/<project>/<session>.jsonl`, with the settings of the session beside it.

- The settings count the tokens of the session's own calls in all, summaries included; no line does. This reader reports
  that as a total, and a response has no usage.
- Results of tools, reminders, and the ends of tasks in the background are messages of the user, too.
- A sub-agent is a session of its own, and a thread of the one that started it.
- A fork begins with copies of its source's lines, up to the message that its first line names. They are left out, and
  its total counts only what came after them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.droid.lines import (
    BACKUP,
    CONTEXT,
    SETTINGS,
    DroidLine,
    DroidMessage,
    SpokenMessage,
    blocks_of,
    lines_of,
    settings_in,
)
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
    ModelTotal,
    Session,
    SubAgent,
)
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of

AGENT_NAME = "droid"
FAMILY = "unknown"  # of response ids: Droid uses the models of any vendor
FINISHED = frozenset({"completed", "spec_handoff"})
CUT = frozenset({"cancelled", "process_exit"})  # any other end is a failure
NO_TITLE = "New Session"
BOTH, USER_ONLY = "both", "user_only"  # who sees a message
LINES = ".jsonl"


@dataclass(slots=True)
class _Turn(OpenTurn):
    line: str | None = None  # the id of its line


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    tree = _Tree(source, spoken=True)
    main, conversation = tree.main, tree.main.conversation
    for agent in tree.agents:
        conversation.place(agent.conversation.turns())
    start = main.start
    title = start.own_title or start.title
    session = Session(
        id=main.id,
        agent=AGENT_NAME,
        title=(title if title != NO_TITLE else None) or conversation.title() or title,
        project=start.cwd,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        parent=start.parent,
        agents=tree.sub_agents(),
        compactions=[compaction for file in (main, *tree.agents) for compaction in file.conversation.compactions],
        totals=tree.totals(),
    )
    return with_remainders(session)


def parent_of(source: SourceFiles) -> str | None:
    return next((line.parent for line in lines_of(source.main, spoken=False) if line.type == "session_start"), None)


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield the responses that no total includes."""
    yield from billed_of(source)[0]


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    tree = _Tree(source, spoken=False)
    session, project = tree.main.id, tree.main.start.cwd
    responses = [
        turn.as_response(family=FAMILY, session=session, project=project, agent=AGENT_NAME)
        for file in (tree.main, *tree.agents)
        for turn in file.conversation.turns()
        if turn.is_counted
    ]
    totals = [
        ReportedTotal(session=session, project=project, agent=AGENT_NAME, family=FAMILY, total=total)
        for total in tree.totals()
    ]
    return responses, totals


# ---------------------------------------------------------------- a session and its sub-agents


class _Tree:
    """The lines of a session and of its sub-agents, read."""

    def __init__(self, source: SourceFiles, *, spoken: bool) -> None:
        self._source = source
        self.main = _SessionFile(source, source.main, MAIN, spoken=spoken)
        self.agents = [
            _SessionFile(source, file, f"{AGENT_PREFIX}{_session_in(file)}", spoken=spoken) for file in source.others
        ]

    def totals(self) -> list[ClientTotal]:
        files = (self.main, *self.agents)
        return [total for file in files if (total := file.total)] + [
            total for file in files for total in self._of_lost_agents(file)
        ]

    def _of_lost_agents(self, file: "_SessionFile") -> Iterator[ClientTotal]:
        """Yield what sub-agents took whose files are gone: the session that started them repeats it."""
        for child, counts in file.settings.children.items():
            usage = usage_of(counts)
            if usage and any(usage.counts) and not self._is_there(child):
                models = (ModelTotal(model=None, usage=usage),)
                times = file.conversation
                yield ClientTotal(
                    witness="transcript", models=models, message_ids=(child,), started=times.started, ended=times.ended
                )

    def _is_there(self, session: str) -> bool:
        """Whether a session has files of its own, with this one or elsewhere."""
        is_read = any(file.id == session for file in (self.main, *self.agents))
        is_id = UUID.fullmatch(session) is not None  # anything else is no name of a file
        return is_read or (is_id and self._source.text(f"{session}{SETTINGS}") is not None)

    def sub_agents(self) -> list[SubAgent]:
        calls = {
            block.id: fields_of(block.input)
            for file in (self.main, *self.agents)
            for turn in file.conversation.turns()
            for block in turn.blocks
            if block.kind == "tool_use" and block.id
        }
        return [self._sub_agent(file, calls) for file in self.agents]

    def _sub_agent(self, file: "_SessionFile", calls: dict[str, Json]) -> SubAgent:
        caller = file.start.started_by or text_of(file.settings.calling.get("callingSessionId"))
        call = file.start.tool_call or text_of(file.settings.calling.get("callingToolUseId"))
        given = calls.get(call or "", {})
        kind, _, description = (file.start.title or "").partition(": ")  # `Worker: Find files`
        return SubAgent(
            thread=file.thread,
            parent_thread=MAIN if caller in (None, self.main.id, file.id) else f"{AGENT_PREFIX}{caller}",
            tool_use_id=call,
            kind=text_of(given.get("subagent_type")) or kind.lower() or None,
            description=text_of(given.get("description")) or description or None,
        )


def _session_in(file: File) -> str:
    return file.name.rsplit("/", 1)[-1].removesuffix(LINES)


# ---------------------------------------------------------------- one file


class _SessionFile:
    """The lines of one session, read in order, and its settings."""

    def __init__(self, source: SourceFiles, file: File, thread: str, *, spoken: bool) -> None:
        self.id, self.thread = _session_in(file), thread
        self.conversation = Conversation()
        name = file.name.removesuffix(LINES)
        self.settings = settings_in(source.text(name + SETTINGS))
        self._is_outdated = self.settings.counted is None
        if self._is_outdated:
            backup = settings_in(source.text(name + BACKUP))
            self.settings = backup if backup.counted else self.settings
        lines = list(_once(lines_of(file, spoken=spoken)))
        self.start = next((line for line in lines if line.type == "session_start"), DroidLine())
        for line in _without_copies(lines, self.start.forked_at):
            self._take(line)
        self._settle()

    @property
    def turns(self) -> list[_Turn]:
        return [turn for turn in self.conversation.turns() if isinstance(turn, _Turn) and turn.thread == self.thread]

    @property
    def total(self) -> ClientTotal | None:
        """What the session's own calls took. A total of several models belongs to none of them."""
        usage, turns = self.settings.counted, self.turns
        if usage is None:
            return None
        models = {turn.model for turn in turns} or {self.settings.model}
        return ClientTotal(
            witness="transcript",
            models=(ModelTotal(model=models.pop() if len(models) == 1 else None, usage=usage),),
            started=min((turn.started for turn in turns if turn.started), default=self.conversation.started),
            ended=max((turn.ended for turn in turns if turn.ended), default=self.conversation.ended),
            # Lines stand for responses without an id: no proxy saw these, as far as is known.
            message_ids=tuple(name for turn in turns if (name := turn.message_id or turn.line)),
        )

    def _take(self, line: DroidLine) -> None:
        match line.type:
            case "message" if line.message:
                self._message(line, line.message)
            case "compaction_state":
                self.conversation.compactions.append(
                    Compaction(at=line.at, thread=self.thread, tokens_after=_number(line.summary_tokens))
                )
            case "agent_turn_outcome":
                reason = line.reason or ""
                self.conversation.end("result" if reason in FINISHED else "cut" if reason in CUT else "failed", None)

    def _message(self, line: DroidLine, message: DroidMessage) -> None:
        blocks = blocks_of(message) if isinstance(message, SpokenMessage) else []
        if message.role == "assistant" and message.visibility != USER_ONLY:
            self._answer(line, message, blocks)
        elif message.role == "user":
            for block in blocks:
                if block.kind == "tool_result":
                    self.conversation.result(block, line.at)
            self._ask(line, message, blocks)

    def _answer(self, line: DroidLine, message: DroidMessage, blocks: list[Block]) -> None:
        model = message.model or self.settings.model
        turn = _Turn(thread=self.thread, model=model, message_id=message.response_id, line=line.id)
        turn.see(line.at)
        self.conversation.see(line.at)
        self.conversation.add(turn)
        for block in blocks:
            self.conversation.put(turn, block, line.at)

    def _ask(self, line: DroidLine, message: DroidMessage, blocks: list[Block]) -> None:
        is_shown = message.visibility in (None, BOTH) and message.hook is None
        if not is_shown or (line.id or "").startswith(CONTEXT) or not isinstance(message, SpokenMessage):
            return
        text = typed(block.text or "" for block in blocks if block.kind == "text")
        if text or any(block.kind == "image" for block in blocks):
            self.conversation.ask(text or "[image]", line.at)

    def _settle(self) -> None:
        """Mark responses whose tokens are in no total: all of them, or those since older settings were written."""
        if self._is_outdated:
            turns = self.turns if self.settings.counted is None else self.turns[-1:]
            for turn in turns:
                turn.unread_usage = True


def _once(lines: Iterable[DroidLine]) -> Iterator[DroidLine]:
    """Yield the lines without messages that are there again."""
    message_ids: set[str] = set()
    for line in lines:
        if line.type != "message" or line.id is None or line.id not in message_ids:
            message_ids.add(line.id or "")
            yield line


def _without_copies(lines: list[DroidLine], forked_at: str | None) -> list[DroidLine]:
    """Return the lines of a fork after those that it copied from its source. If damage has made both ends of the copies
    unknown, all lines stay; the total does not count copies anyway."""
    if forked_at is None:
        return lines
    messages = [(at, line) for at, line in enumerate(lines) if line.type == "message"]
    after = next((number for number, (_, line) in enumerate(messages, 1) if line.id == forked_at), None)
    if after is None:
        after = next((number for number, (_, line) in enumerate(messages) if line.parent_id == forked_at), 0)
    return lines[messages[after][0] :] if after < len(messages) else []


def _number(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
