"""Storage of sessions for other people's agents: messages are stored as they are, and come back word for word.

storage = FileStorage()
storage.append(session_id, {"type": "user", "message": {"role": "user", "content": "Hello"}})
"""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from agent_logger import __version__, config
from agent_logger.clock import CLOCK
from agent_logger.errors import AgentLoggerError
from agent_logger.files.git import branch_of
from agent_logger.home.facts import register_log_folder
from agent_logger.logs.transcript.lines import Message
from agent_logger.protocols.json_text import decode, encode
from agent_logger.transcripts import messages as transcript
from agent_logger.transcripts.messages import StoredSession, TranscriptContext
from agent_logger.transcripts.store import Messages, Sessions, Transcripts, real

__all__ = ["FileStorage", "InMemoryStorage", "Message", "SessionStorage", "StoredSession"]

PathLike = str | os.PathLike[str]


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
        command = ""
        with suppress(AgentLoggerError):  # a command reports what is wrong with the settings
            command = config.load().summary_command
        super().__init__(
            folder, Path(cwd or Path.cwd()), agent=agent, version=version, summary_command=command
        )
        if folder != home:
            register_log_folder(home, folder / "projects")  # so that commands find it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.close()


class InMemoryStorage:
    """Store sessions without files, for tests and for sessions that need not last."""

    def __init__(self, cwd: PathLike | None = None) -> None:
        self.cwd = real(Path(cwd or Path.cwd()))
        self._sessions: dict[str, _StoredLines] = {}

    def append(self, session_id: str, message: object) -> bool:
        given, now = transcript.message_of(message), CLOCK.now()
        stored = self._sessions.get(session_id) or _StoredLines(
            TranscriptContext(session_id, self.cwd, __version__), now
        )
        cwd = given.get("cwd")
        branch = branch_of(Path(cwd if isinstance(cwd, str) else stored.context.cwd))
        line = transcript.completed(given, stored.context, uuid=CLOCK.uuid7(), now=now, git_branch=branch)
        stored.context.see(line)
        stored.lines.append(encode(line))
        self._sessions[session_id] = stored
        return True

    def load(self, session_id: str) -> Messages | None:
        stored = self._sessions.get(session_id)
        return [decode(line) for line in stored.lines] if stored else None

    def list(self, project: PathLike | None = None) -> Sessions:
        if project is not None and real(Path(project)) != self.cwd:
            return []
        sessions = [self._described(session_id, session) for session_id, session in self._sessions.items()]
        return sorted(sessions, key=lambda session: (session.modified, session.id), reverse=True)

    def delete(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def _described(self, session_id: str, stored: "_StoredLines") -> StoredSession:
        messages = [decode(line) for line in stored.lines]
        session = transcript.session_of(session_id, messages, session_id)
        return transcript.described(session, messages, created=stored.created, project=self.cwd)


class _StoredLines:
    def __init__(self, context: TranscriptContext, created: str) -> None:
        self.context, self.created = context, created
        self.lines: list[bytes] = []
