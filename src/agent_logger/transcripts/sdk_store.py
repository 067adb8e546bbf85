"""The Claude Agent SDK's `SessionStore` on our storage: its sessions are stored here, and can be resumed from here
alone.

    options = ClaudeAgentOptions(session_store=AgentLoggerSessionStore(FileStorage()))

Entries are stored as the SDK gives them, nothing added, and come back equal. The SDK is not imported: what is needed of
it is taken from the calling program, which has loaded it.
"""

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.clock import CLOCK
from agent_logger.errors import StoreError
from agent_logger.files.parts import PartFile
from agent_logger.home.layout import is_hashed, project_folder, session_name
from agent_logger.logs.reader import read_header, read_lines
from agent_logger.logs.remove import removal_of_log, removal_of_session
from agent_logger.logs.transcript.lines import Message
from agent_logger.model.records import SessionHeader
from agent_logger.platform import on_fork
from agent_logger.transcripts.log import Stamp, TranscriptLog, logs_in
from agent_logger.transcripts.store import Transcripts

ELSEWHERE = "other"  # for logs below a session whose names are not safe as paths
MOST_OPEN = 256  # logs that are held open; the one not used for longest is closed

Key = Mapping[str, Any]  # project_key, session_id, and subpath for logs below a session


class AgentLoggerSessionStore:
    """A session store for the Claude Agent SDK, with all six methods of its protocol. Any thread and any event loop may
    use it."""

    def __init__(self, storage: Transcripts) -> None:
        self._projects = storage.root / "projects"
        self._open: dict[PartFile, TranscriptLog] = {}  # the one used last is the last
        # Each with the stamp of the text that it was made from.
        self._summaries: dict[PartFile, tuple[str, Any]] = {}
        self._lock = threading.RLock()
        on_fork(self)

    def after_fork(self) -> None:
        """Make the lock usable in a forked child. The system calls this."""
        self._lock = threading.RLock()

    async def append(self, key: Key, entries: Sequence[Mapping[str, Any]]) -> None:
        """Store entries. Raises `StoreError` if the disk fails: the SDK then tries again, and reports it if that fails,
        too."""
        if not entries:
            return
        with self._lock:
            log = self._opened(key)
            if not log.offer([dict(entry) for entry in entries]):
                raise StoreError(f"{log.log.path}: {log.journal.failing or 'busy'}")

    async def load(self, key: Key) -> list[Any] | None:
        """All entries, each once. An entry that the SDK sent twice, unsure whether we had it, has the same `uuid`."""
        log = self._log(key)
        entries = [] if self._is_linked(log) else read_lines(log)
        return list(_unique(entries)) or None

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the id and the time of the last change of each session of a project."""
        logs = logs_in(self._projects / project_folder(project_key)).items()
        return [{"session_id": _session_of(log), "mtime": Stamp.of(parts).modified_ms} for log, parts in logs]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """The summaries of a project's sessions, as the SDK itself makes them."""
        logs = logs_in(self._projects / project_folder(project_key)).items()
        return [self._summary(project_key, log, Stamp.of(parts)) for log, parts in logs]

    async def delete(self, key: Key) -> None:
        """Delete a session with everything below it. Raises `OSError`."""
        with self._lock:
            log = self._log(key)
            below = log.folder / log.name
            for part in [part for part in self._open if part == log or below in (part.folder, *part.folder.parents)]:
                self._open.pop(part).journal.close()
            if not self._is_linked(log):
                (removal_of_log if key.get("subpath") else removal_of_session)(log).carry_out()

    async def list_subkeys(self, key: Key) -> list[str]:
        """Return the names of the logs below a session, such as those of its sub-agents."""
        log = self._log({**key, "subpath": None})
        headers = (read_header(part) for part in self._below(log))
        return sorted(header.subpath for header in headers if header and header.subpath)

    # ------------------------------------------------------------ logs

    def _opened(self, key: Key) -> TranscriptLog:
        log = self._log(key)
        if self._is_linked(log):
            raise StoreError(f"{log.path}: a symbolic link in this path is not followed")
        opened = self._open.pop(log, None) or TranscriptLog(log, _header(key))
        self._open[log] = opened
        if len(self._open) > MOST_OPEN:
            self._open.pop(next(iter(self._open))).journal.close()
        return opened

    def _log(self, key: Key) -> PartFile:
        folder, name = self._projects / project_folder(key["project_key"]), session_name(key["session_id"])
        subpath = key.get("subpath")
        if not subpath:
            return PartFile(folder, name)
        *above, last = parts = subpath.split("/")
        if all(part == session_name(part) for part in parts):
            return PartFile(folder.joinpath(name, *above), last)
        return PartFile(folder / name / ELSEWHERE, session_name(f"/{subpath}"))

    def _is_linked(self, log: PartFile) -> bool:
        above = (log.path, log.sealed_path, log.folder, *log.folder.parents)
        return any(path.is_symlink() for path in above if self._projects in path.parents)

    def _below(self, log: PartFile) -> Iterator[PartFile]:
        folder = log.folder / log.name
        if self._is_linked(PartFile(folder, "")):
            return
        for path, _, _ in os.walk(folder):
            yield from logs_in(Path(path))

    def _summary(self, project_key: str, log: PartFile, stamp: Stamp) -> Any:
        """The summary of a log. Its stamp was taken before the log is read, so the summary is never older than the
        stamp says."""
        stamp_before, summary = self._summaries.get(log, ("", None))
        if stamp_before != stamp.text:
            key = {"project_key": project_key, "session_id": _session_of(log)}
            summary = _fold()(None, key, list(_unique(read_lines(log))))
            self._summaries[log] = stamp.text, summary
        return {**summary, "mtime": stamp.modified_ms}


def _fold() -> Any:
    """The SDK's own function for summaries. The SDK is loaded, since only it calls this store."""
    sdk = sys.modules.get("claude_agent_sdk")
    if fold := getattr(sdk, "fold_session_summary", None):
        return fold
    raise NotImplementedError("this version of the SDK has no session summaries")


def _header(key: Key) -> SessionHeader:
    key["session_id"].encode()  # `ValueError` for half a character: no line could say it
    return SessionHeader(
        id=key["session_id"],
        subpath=key.get("subpath") or None,
        created=CLOCK.now(),
        cwd=None,
        project_path=None,
        git_branch=None,
        agent=CLAUDE_CODE.name,
        model=None,
        version=None,
    )


def _session_of(log: PartFile) -> str:
    header = read_header(log) if is_hashed(log.name) else None
    return header.id if header else log.name


def _unique(entries: list[Message]) -> Iterator[Message]:
    uuids: set[str] = set()
    for entry in entries:
        uuid = entry.get("uuid")
        if isinstance(uuid, str):
            if uuid in uuids:
                continue
            uuids.add(uuid)
        yield entry
