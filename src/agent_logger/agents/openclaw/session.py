"""OpenClaw's sessions: pi's lines, from the events of its database, or from the files of older versions.

- An event of a tool that another tool called is a message of its own, which the model does not see.
- A command that fails has its exit code in the details of its result, which does not count as an error there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any

from msgspec.structs import replace

from agent_logger.agents.openclaw.database import WINDOWS
from agent_logger.agents.pi import session as pi
from agent_logger.agents.source_files import Entries, File, SourceFiles
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import AGENT_PREFIX, MAIN, Session, SubAgent
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.json_values import Json, fields_of, text_of

AGENT_NAME = "openclaw"


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the rows."""
    session = pi.session_of(_as_lines(source), agent=AGENT_NAME)
    if source.main.chunks:
        return session
    window = _window(source.main)
    return replace(
        session,
        id=source.main.name,
        title=text_of(window.get("title")) or session.title,
        parent=text_of(window.get("source_session")) or session.parent,
        agents=_sub_agents(source, session),
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    yield from billed_of(source)[0]


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    responses, totals = pi.billed_of(_as_lines(source), agent=AGENT_NAME)
    if source.main.chunks:
        return responses, totals
    name = source.main.name
    return [replace(response, session=name) for response in responses], [
        replace(total, session=name) for total in totals
    ]


def parent_of(source: SourceFiles) -> str | None:
    if source.main.chunks:
        return pi.parent_of(source)
    return text_of(_window(source.main).get("source_session")) or pi.parent_of(_as_lines(source))


def _sub_agents(source: SourceFiles, session: Session) -> list[SubAgent]:
    """Return the sub-agents. The result of the call that started one has its key, and the call itself its task."""
    windows = {f"{AGENT_PREFIX}{file.name}": _window(file) for file in source.others}
    threads = {text_of(window.get("key")): thread for thread, window in windows.items()}
    prompts = {f"{AGENT_PREFIX}{file.name}": pi.first_prompt(_lines_of(file)) for file in source.others}
    return [
        SubAgent(
            thread=thread,
            parent_thread=threads.get(text_of(window.get("starter_key")), MAIN),
            tool_use_id=_starting_call(session, text_of(window.get("key")), prompts[thread]),
            description=text_of(window.get("title")) or prompts[thread],
        )
        for thread, window in windows.items()
    ]


def _starting_call(session: Session, key: str | None, prompt: str | None) -> str | None:
    with_key = (call.id for call in session.tool_calls if key and call.result and key in call.result)
    with_task = (call.id for call in session.tool_calls if (task := _task_in(call.input)) and task in (prompt or ""))
    return next(with_key, None) or next(with_task, None)


def _task_in(given: Any) -> str | None:
    """Return the task of a sub-agent in the arguments of a call, which may call another tool."""
    fields = fields_of(given)
    return text_of(fields.get("task")) or text_of(fields_of(fields.get("args")).get("task"))


def _window(file: File) -> Json:
    """Return what the database says of the session."""
    rows = (entry.value for entry in file.entries if isinstance(entry, JsonEntry))
    return next((row for row in rows if type(row) is dict and row.get("table") == WINDOWS), {})


def _as_lines(source: SourceFiles) -> SourceFiles:
    if source.main.chunks:
        return source
    return replaced(source, main=_lines_of(source.main), others=[_lines_of(other) for other in source.others])


def _lines_of(file: File) -> File:
    return File(file.name, _Events(file.entries))


@dataclass(frozen=True, slots=True)
class _Events:
    """The events among the rows of a session, as lines."""

    rows: Entries

    def __iter__(self) -> Iterator[JsonEntry]:
        for entry in self.rows:
            event = entry.value.get("event") if isinstance(entry, JsonEntry) and type(entry.value) is dict else None
            if isinstance(event, bytes):
                yield JsonEntry(entry.line, entry.offset, None, event)
