"""What the lines of a transcript say: a message as it is stored, and what a list shows about the session.

A message is stored as given, in Claude Code's format. Fields that it lacks are added beside it: its own id and the one
before it, the time, the session, and where the agent worked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript import session as claude_code
from agent_logger.agents.claude_code.transcript.exchanges import prompt_of
from agent_logger.agents.claude_code.transcript.lines import reader_of
from agent_logger.agents.claude_code.transcript.records import UserRecord
from agent_logger.agents.claude_code.transcript.turns import as_message, blocks_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.git import branch_of
from agent_logger.logs.transcript.lines import Message
from agent_logger.messages.sdk_objects import json_of
from agent_logger.model.session import Session
from agent_logger.protocols.json_text import decode, encode
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.json_values import with_whole_characters

FILES_NAMED = 5  # in a summary
PROMPT_CHARACTERS = 200  # of the first prompt that a list or a summary shows
_OF_THE_MODEL = ("model", "usage", "stop_reason", "stopReason")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}  # the best first


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """What `SessionStorage.list` says about a session."""

    id: str
    project_path: str | None
    git_branch: str | None
    first_prompt: str | None
    summary: str | None  # the client's title, or what was written when the session was closed
    message_count: int
    created: str  # ISO 8601, UTC
    modified: str


@dataclass(slots=True)
class TranscriptContext:
    """The state of a session: what a message says about it holds for the messages after it, too."""

    session: str
    cwd: str
    version: str
    permission_mode: str = "default"
    user_type: str = "external"
    last: str | None = None  # the id of the message before

    def __post_init__(self) -> None:
        self.session.encode()  # `ValueError` for half a character: no line could say it

    def see(self, line: Message) -> None:
        self.cwd = _text(line, "cwd", self.cwd)
        self.version = _text(line, "version", self.version)
        self.permission_mode = _text(line, "permissionMode", self.permission_mode)
        self.user_type = _text(line, "userType", self.user_type)
        self.last = _text(line, "uuid", self.last or "") or None


def _text(line: Message, name: str, otherwise: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) and value else otherwise


def message_of(given: object) -> Message:
    """A mapping, or a message object of an SDK, as JSON. Raises `ValueError` if it is neither, or has no type."""
    data = json_of(dict(given) if isinstance(given, Mapping) else given)
    message = decode(data) if data else None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("a message must be a JSON object with a `type`, or a message object of an SDK")
    return message


def completed(message: Message, context: TranscriptContext, *, uuid: str, now: str) -> Message:
    """The line of a message: its own fields win over the added ones. Raises `ValueError` if it names another
    session."""
    for name in ("sessionId", "session_id"):
        if message.get(name) not in (None, context.session):
            raise ValueError(
                f"a message of session {message[name]!r} cannot be appended to session {context.session!r}"
            )
    cwd = message.get("cwd")
    git_branch = branch_of(Path(cwd if isinstance(cwd, str) else context.cwd))
    beside: Message = {
        "type": message["type"],
        "uuid": uuid,
        "parentUuid": context.last,
        "timestamp": now,
        "sessionId": context.session,
        "cwd": context.cwd,
        **({"gitBranch": git_branch} if git_branch else {}),
        "version": context.version,
        "permissionMode": context.permission_mode,
        "userType": context.user_type,
    }
    fields = {
        name: value
        for name, value in message.items()
        if value is not None or name not in beside or name == "parentUuid"
    }
    return _with_the_models({**beside, **fields})


def _with_the_models(line: Message) -> Message:
    """The line with model, usage and stop reason of a response in its `message`, also if they came beside it."""
    inner = line.get("message")
    if line["type"] != "assistant" or not isinstance(inner, dict):
        return line
    model_fields = {name: line[name] for name in _OF_THE_MODEL if line.get(name) is not None}
    return {
        **line,
        "message": {
            **model_fields,
            **{name: value for name, value in inner.items() if value is not None or name not in model_fields},
        },
    }


def model_of(message: Message) -> str | None:
    inner = message.get("message")
    model = message.get("model") or (inner.get("model") if isinstance(inner, dict) else None)
    return model if isinstance(model, str) else None


def prompt_in(line: Message) -> str | None:
    """What a person typed; `None` if the line is not a person's, or is a sub-agent's."""
    if line.get("type") != "user" or line.get("isSidechain"):
        return None
    record: UserRecord = reader_of("user").fitting(with_whole_characters(line))
    return prompt_of(record, blocks_of(as_message(record.message).content, None))


# ---------------------------------------------------------------- the session they make


def session_of(name: str, messages: Iterable[Message], session_id: str) -> Session:
    """The session that the messages make. `name` is that of its file."""
    entries = [JsonEntry(number, 0, None, encode(message)) for number, message in enumerate(messages, 1)]
    return replace(claude_code.session_of(SourceFiles(File(name, entries))), id=session_id)


def described(
    session: Session, messages: Sequence[Message], *, created: str | None = None, project: str | None = None
) -> StoredSession:
    times = [message["timestamp"] for message in messages if isinstance(message.get("timestamp"), str)]
    branches = [message["gitBranch"] for message in messages if isinstance(message.get("gitBranch"), str)]
    return StoredSession(
        id=session.id,
        project_path=project or session.project,
        git_branch=branches[-1] if branches else None,
        first_prompt=_first_prompt(session),
        summary=title_of(messages),
        message_count=sum(not is_own_summary(message) for message in messages),
        created=created or min(times, default=""),
        modified=max(times, default=created or ""),
    )


def title_of(messages: Iterable[Message]) -> str | None:
    titles: dict[str, str] = {}
    for message in messages:
        kind = message.get("type")
        title = message.get(_TITLES[kind]) if kind in _TITLES else None
        if isinstance(kind, str) and isinstance(title, str) and title:
            titles[kind] = title
    return next((titles[kind] for kind in _TITLES if kind in titles), None)


def _first_prompt(session: Session) -> str | None:
    prompts = (" ".join(exchange.user_input.split()) for exchange in session.exchanges if exchange.user_input)
    prompt = next(filter(None, prompts), None)
    if prompt is None or len(prompt) <= PROMPT_CHARACTERS:
        return prompt
    return f"{prompt[: PROMPT_CHARACTERS - 1].rstrip()}…"


# ---------------------------------------------------------------- summaries


def summary_line(text: str, by: str, context: TranscriptContext, now: str) -> Message:
    return {
        "type": "summary",
        "summary": text,
        "by": by,
        "leafUuid": context.last,
        "timestamp": now,
        "sessionId": context.session,
    }


def is_own_summary(message: Message) -> bool:
    """Whether the message is a summary that we wrote when the session was closed: unlike others' messages, it has no
    id."""
    return message.get("type") == "summary" and "by" in message and "uuid" not in message


def default_summary(session: Session) -> str | None:
    """A summary of the first prompt and the files that tools were given."""
    prompt, files = _first_prompt(session), session.files
    more = f" and {len(files) - FILES_NAMED} more" if len(files) > FILES_NAMED else ""
    touched = f"files: {', '.join(files[:FILES_NAMED])}{more}" if files else None
    return " · ".join(filter(None, [prompt, touched])) or None


def text_of(session: Session) -> str:
    """The conversation as text for a summary: what was said, and which tools were used."""
    texts: list[str] = []
    for exchange in session.exchanges:
        texts += [f"User: {exchange.user_input}"] if exchange.user_input else []
        for turn in exchange.turns:
            texts += [f"Agent: {block.text}" for block in turn.blocks if block.kind == "text"]
            texts += [f"Tool: {block.name}" for block in turn.blocks if block.kind == "tool_use"]
    return "\n\n".join(texts)
