"""Storage of sessions for other people's agents: messages are stored as they are, and come back word for word.

storage = FileStorage()
storage.append(session_id, {"type": "user", "message": {"role": "user", "content": "Hello"}})
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from agent_logger import __version__, config
from agent_logger.clock import CLOCK
from agent_logger.errors import AgentLoggerError
from agent_logger.home.facts import register_log_folder
from agent_logger.home.layout import install_key
from agent_logger.home.machine import note_machine
from agent_logger.logs.transcript.lines import Message
from agent_logger.protocols.json_text import decode, encode
from agent_logger.transcripts import messages as transcript
from agent_logger.transcripts.messages import StoredSession, TranscriptContext
from agent_logger.transcripts.store import Messages, Sessions, Transcripts, real
from agent_logger.transcripts.summary import summary_of

__all__ = ["FileStorage", "InMemoryStorage", "Message", "SessionStorage", "StoredSession"]

PathLike = str | os.PathLike[str]


@runtime_checkable
class SessionStorage(Protocol):
    """The storage of an agent's sessions.

    `agent_logger.testing.run_storage_conformance` checks what must hold.
    """

    def append(self, session_id: str, message: object) -> bool:
        """Store a message at once. `True` if it is stored. Raises `ValueError` if it is not a message, or is another
        session's."""

    def load(self, session_id: str) -> Messages | None:
        """All messages of a session; `None` if there is no such session."""

    def list(self, project: PathLike | None = None) -> Sessions:
        """The sessions of a project, or of all projects, the one last written to first."""

    def delete(self, session_id: str) -> None:
        """Delete a session. A session that does not exist is no error."""


class FileStorage(Transcripts):
    """Store transcripts below `root`, by default our home; new sessions belong to the project `cwd`.

    `agent` and `version` name the program that uses this, in the header of a new session. Nothing is raised for a disk
    that fails: `append` returns `False`, and `lost` counts. `close` writes the summaries of the sessions.
    """

    def __init__(
        self,
        root: PathLike | None = None,
        cwd: PathLike | None = None,
        *,
        agent: str | None = None,
        version: str | None = None,
    ) -> None:
        home = config.home()
        folder = Path(root).expanduser().absolute() if root is not None else home
        place = Path(cwd or Path.cwd())
        super().__init__(folder, place, agent=agent, version=version, summary_command=_summary_command())
        with suppress(AgentLoggerError):  # then the logs do not prove who wrote them
            install_key(home)
        note_machine(home)
        if folder != home:
            register_log_folder(home, folder / "projects")  # so that commands find it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self.close()


class InMemoryStorage:
    """Store sessions without files, for tests and for sessions that need not last.

    Has the methods of `FileStorage`, which it can stand in for; there is no disk that could fail. Any thread may use
    it.
    """

    def __init__(self, cwd: PathLike | None = None, *, agent: str | None = None, version: str | None = None) -> None:
        self.cwd = real(Path(cwd or Path.cwd()))
        self.agent, self._version = agent, version
        self.lost = 0  # messages that could not be written: none
        self._sessions: dict[str, _StoredLines] = {}
        self._memory: dict[str, str] = {}  # by project
        self._lock = threading.RLock()

    def append(self, session_id: str, message: object) -> bool:
        """Store a message; an unknown session begins with it. Raises `ValueError` if it is not a message, or is another
        session's."""
        given, now = transcript.message_of(message), CLOCK.now()
        with self._lock:
            stored = self._sessions.get(session_id) or self._new(session_id, now)
            line = transcript.completed(given, stored.context, uuid=CLOCK.uuid7(), now=now)
            stored.context.see(line)
            stored.lines.append(encode(line))
            stored.changed = True
            self._sessions[session_id] = stored
        return True

    def load(self, session_id: str) -> Messages | None:
        """All messages of a session; `None` if there is no such session."""
        with self._lock:
            stored = self._sessions.get(session_id)
            return stored.messages() if stored else None

    def list(self, project: PathLike | None = None) -> Sessions:
        """The sessions of a project, or of all projects, the one last written to first."""
        if project is not None and real(Path(project)) != self.cwd:
            return []
        with self._lock:
            sessions = [self._described(session_id, session) for session_id, session in self._sessions.items()]
        return sorted(sessions, key=lambda session: (session.modified, session.id), reverse=True)

    def delete(self, session_id: str) -> None:
        """Delete a session. A session that does not exist is no error."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def close(self, session_id: str | None = None) -> None:
        """Write the summary of the session, or of all sessions if none is named. What is appended later continues the
        session."""
        with self._lock:
            for name in [session_id] if session_id is not None else [*self._sessions]:
                stored = self._sessions.get(name)
                if stored and stored.changed:
                    self._sum_up(name, stored)

    def read_memory(self, project: PathLike | None = None) -> str:
        """The text that was written last for the project; empty if there is none."""
        return self._memory.get(self._project(project), "")

    def write_memory(self, text: str, project: PathLike | None = None) -> None:
        """Replace the project's text."""
        self._memory[self._project(project)] = text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self.close()

    def _new(self, session_id: str, now: str) -> "_StoredLines":
        return _StoredLines(TranscriptContext(session_id, self.cwd, self._version or __version__), now)

    def _project(self, project: PathLike | None) -> str:
        return self.cwd if project is None else real(Path(project))

    def _sum_up(self, session_id: str, stored: "_StoredLines") -> None:
        messages = stored.messages()
        text, by = summary_of(messages, transcript.session_of(session_id, messages, session_id), _summary_command())
        if text:
            stored.lines.append(encode(transcript.summary_line(text, by, stored.context, CLOCK.now())))
        stored.changed = False

    def _described(self, session_id: str, stored: "_StoredLines") -> StoredSession:
        messages = [decode(line) for line in stored.lines]
        session = transcript.session_of(session_id, messages, session_id)
        return transcript.described(session, messages, created=stored.created, project=self.cwd)


class _StoredLines:
    def __init__(self, context: TranscriptContext, created: str) -> None:
        self.context, self.created = context, created
        self.lines: list[bytes] = []
        self.changed = False  # since the last summary

    def messages(self) -> Messages:
        lines = (decode(line) for line in self.lines)
        return [line for line in lines if not transcript.is_own_summary(line)]


def _summary_command() -> str:
    with suppress(AgentLoggerError):  # a command reports what is wrong with the settings
        return config.load().summary_command
    return ""
