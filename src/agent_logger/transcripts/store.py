"""Store sessions for agents: one transcript each, appended to the moment a message exists, and never rewritten.

<root>/projects/<project>/<session>.jsonl             the transcript, a log of ours (see `transcripts.log`)
<root>/projects/<project>/<session>/tool-results/     what was too long for a line
<root>/projects/<project>/sessions-index.json         derived; may be deleted at any time
<root>/projects/<project>/memory/MEMORY.md            the agent's notes for the next time
<root>/history.jsonl                                  what people typed, in all sessions
"""

import logging
import os
import threading
import unicodedata
from contextlib import suppress
from itertools import chain
from pathlib import Path

from agent_logger import __version__
from agent_logger.agents.claude_code.naming import folder_name
from agent_logger.clock import CLOCK, Clock
from agent_logger.errors import SourceError, StoreError
from agent_logger.files.git import branch_of
from agent_logger.files.parts import PartFile
from agent_logger.home.layout import session_name
from agent_logger.journal.journal import PART_BYTES
from agent_logger.logs.reader import read_header, read_messages, read_transcript
from agent_logger.logs.remove import removal_of_session
from agent_logger.logs.transcript import side_files
from agent_logger.logs.transcript.lines import Message
from agent_logger.model.records import Gap, SessionHeader
from agent_logger.platform import on_fork
from agent_logger.transcripts import input_history, memory
from agent_logger.transcripts import messages as transcript
from agent_logger.transcripts.index import sessions_in
from agent_logger.transcripts.log import TranscriptLog, folders_in, is_there, latest_in
from agent_logger.transcripts.messages import StoredSession, TranscriptContext
from agent_logger.transcripts.summary import summary_of

Messages = list[Message]  # here, for `list` is a method below
Sessions = list[StoredSession]

_log = logging.getLogger("agent_logger.transcripts")


class Transcripts:
    """The transcripts below `root`. New sessions belong to the project `cwd`. Any thread may use it."""

    def __init__(
        self,
        root: Path,
        cwd: Path,
        *,
        agent: str | None = None,
        version: str | None = None,
        summary_command: str = "",
        clock: Clock = CLOCK,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self.root, self.cwd = root, real(cwd)
        self.folder = root / "projects" / folder_name(self.cwd)
        self._agent, self._version, self._summary_command = agent, version, summary_command
        self._clock, self._part_bytes = clock, part_bytes
        self._open: dict[str, _Session] = {}
        self._lost = 0  # in sessions that are closed
        # Sessions that were not found: since when, and how many times.
        self._missed: dict[str, tuple[str, float, int]] = {}
        self._lock = threading.RLock()
        on_fork(self)

    @property
    def lost(self) -> int:
        """How many messages could not be written."""
        return self._lost + sum(session.log.journal.lost for session in list(self._open.values()))

    def after_fork(self) -> None:
        """Make the lock usable in a forked child. The system calls this."""
        self._lock = threading.RLock()

    # ------------------------------------------------------------ the four

    def append(self, session_id: str, message: object) -> bool:
        """Store a message; an unknown session begins with it.

        `True` once it is safe if this process ends; `False` if the disk failed: it is lost, and counted. Raises
        `ValueError` if it is not a message, or is another session's, and `StoreError` if a session with this id cannot
        be stored here.
        """
        given = transcript.message_of(message)
        with self._lock:
            try:
                session = self._opened(session_id, given)
            except OSError as error:
                return self._miss(session_id, error)
            line = transcript.completed(given, session.context, uuid=self._clock.uuid7(), now=self._clock.now())
            session.log.begin()  # its folder, before files are written beside it
            self._report_missing(session)
            light = side_files.move_long_values(line, session.folder, session.log.journal.needs)
            if not session.log.append(light):
                return False
            session.context.see(line)
            session.changed = True
            input_history.remember(self.root, line, self._clock)
            return True

    def load(self, session_id: str) -> Messages | None:
        """All messages of a session, whole; `None` if there is no such session."""
        part = self._find(session_id)
        if part is None:
            return None
        return [message for message in read_messages(part) if not transcript.is_own_summary(message)]

    def list(self, project: str | os.PathLike[str] | None = None) -> Sessions:
        """The sessions of a project, or of all projects, the one last written to first."""
        real_project = real(Path(project)) if project is not None else None
        folders = folders_in(self.root / "projects")
        with self._lock:
            sessions = [
                session
                for folder in folders
                if real_project is None or folder.name == folder_name(real_project)
                for session in sessions_in(folder, _described)
                if real_project is None or not _is_of_another(session, real_project)
            ]
        return sorted(sessions, key=lambda session: (session.modified, session.id), reverse=True)

    def delete(self, session_id: str) -> None:
        """Remove a session and all of our files beside it. Raises `OSError`; a session that does not exist is no
        error."""
        with self._lock:
            if session := self._open.pop(session_id, None):
                self._leave(session)
            if part := self._find(session_id):
                removal_of_session(part).carry_out()
                sessions_in(part.folder, _described)

    # ------------------------------------------------------------ the end of a session

    def close(self, session_id: str | None = None) -> None:
        """Write the summary of the session, or of all open sessions if none is named. What is appended later continues
        the session."""
        with self._lock:
            for name in [session_id] if session_id is not None else [*self._open]:
                if session := self._open.pop(name, None):
                    self._sum_up(session)
                    self._leave(session)
                    with suppress(OSError):
                        sessions_in(session.log.log.folder, _described)

    def _sum_up(self, session: "_Session") -> None:
        if not session.changed:
            return
        try:
            messages = read_messages(session.log.log)
        except (OSError, SourceError) as error:
            _log.warning("%s: cannot write the summary: %s", session.log.log.path, error)
            return
        before = next((message for message in messages[::-1] if transcript.is_own_summary(message)), {})
        others = [message for message in messages if not transcript.is_own_summary(message)]
        conversation = transcript.session_of(session.log.log.name, others, session.context.session)
        text, by = summary_of(others, conversation, self._summary_command)
        if text and text != before.get("summary"):
            session.log.append(transcript.summary_line(text, by, session.context, self._clock.now()))

    def _leave(self, session: "_Session") -> None:
        session.log.journal.close()
        self._lost += session.log.journal.lost

    # ------------------------------------------------------------ memory

    def read_memory(self, project: str | os.PathLike[str] | None = None) -> str:
        """The text that was written last for the project; empty if there is none. Raises `StoreError` and `OSError`."""
        return memory.read(self._folder_of(project))

    def write_memory(self, text: str, project: str | os.PathLike[str] | None = None) -> None:
        """Replace the project's text, as a whole or not at all. Raises `StoreError` and `OSError`."""
        memory.write(self._folder_of(project), text)

    def _folder_of(self, project: str | os.PathLike[str] | None) -> Path:
        if project is None:
            return self.folder
        return self.root / "projects" / folder_name(real(Path(project)))

    # ------------------------------------------------------------ one session

    def _opened(self, session_id: str, message: Message) -> "_Session":
        if session := self._open.get(session_id):
            return session
        log = self._find(session_id) or PartFile(self.folder, session_name(session_id))
        if log.folder.is_symlink():
            raise StoreError(f"{log.folder}: a symbolic link, which is not followed")
        context = TranscriptContext(session_id, self.cwd, self._version or __version__)
        self._see_past(log, context)
        opened = TranscriptLog(log, self._header(session_id, message), clock=self._clock, part_bytes=self._part_bytes)
        self._open[session_id] = _Session(opened, context)
        return self._open[session_id]

    def _miss(self, session_id: str, error: OSError) -> bool:
        """Count a message as lost, because it is not even known where its session is. The log will say so."""
        _log.warning("%s: a message could not be written: %s", self.root, error)
        since, began, count = self._missed.get(session_id, (self._clock.now(), self._clock.monotonic(), 0))
        self._missed[session_id] = since, began, count + 1
        self._lost += 1
        return False

    def _report_missing(self, session: "_Session") -> None:
        since, began, count = self._missed.pop(session.context.session, ("", 0.0, 0))
        if count:
            gap = Gap(
                ts=self._clock.now(),
                lost=count,
                since=since,
                seconds=round(self._clock.monotonic() - began, 3),
                reason="the folder could not be read",
            )
            session.log.journal.append(gap)

    def _see_past(self, log: PartFile, context: TranscriptContext) -> None:
        """Read the state of the session. A log that cannot be read now may still be writable, and writing matters
        more."""
        try:
            header = read_header(log)
            for message in latest_in(log):
                context.see(message)
        except (OSError, SourceError) as error:
            _log.warning("%s: %s", log.path, error)
            return
        if header and header.id != context.session:  # a case-insensitive file system
            raise StoreError(f"{log.path}: holds the session {header.id!r}")

    def _header(self, session_id: str, first: Message) -> SessionHeader:
        return SessionHeader(
            id=session_id,
            created=self._clock.now(),
            cwd=self.cwd,
            project_path=self.cwd,
            git_branch=branch_of(Path(self.cwd)),
            agent=self._agent,
            model=transcript.model_of(first),
            version=self._version,
        )

    def _find(self, session_id: str) -> PartFile | None:
        name = session_name(session_id)
        for folder in chain([self.folder], folders_in(self.root / "projects")):
            log = PartFile(folder, name)
            if not folder.is_symlink() and is_there(log):
                return log
        return None


class _Session:
    """A session that is being appended to."""

    def __init__(self, opened: TranscriptLog, context: TranscriptContext) -> None:
        self.log, self.context = opened, context
        self.folder = opened.log.folder / opened.log.name  # of the files beside it
        self.changed = False


def real(path: Path) -> str:
    """The path from which the client makes the name of a project."""
    return unicodedata.normalize("NFC", os.path.realpath(path))


def _described(log: PartFile) -> StoredSession | None:
    header, messages = read_transcript(log)
    if header is None and not messages:
        return None
    ids = (message.get("sessionId") for message in messages)
    session_id = header.id if header else next((name for name in ids if isinstance(name, str)), log.name)
    return transcript.described(
        transcript.session_of(log.name, messages, session_id),
        messages,
        created=header.created if header else None,
        project=header.project_path if header else None,
    )


def _is_of_another(session: StoredSession, project: str) -> bool:
    """Whether the session is of another project with the same folder: a_b and a-b share one."""
    path = session.project_path
    return path is not None and path != project and folder_name(path) == folder_name(project)
