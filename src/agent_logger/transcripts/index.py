"""`sessions-index.json`: what a list tells of the transcripts of a folder, so that they need not be read again.

The folder is what counts. An entry is believed only as long as the files of its transcript are those it was made from;
an index that is missing, damaged or newer than this is made anew in memory, and written unless it is a newer one's. The
fields are those that Claude Code gave its own, and two of ours: `stamp`, and a `digest` of all entries.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files.parts import PartFile
from agent_logger.transcripts.log import Stamp, logs_in
from agent_logger.transcripts.messages import StoredSession

FILE = "sessions-index.json"
VERSION = 1

log = logging.getLogger("agent_logger.store")
Describe = Callable[[PartFile], StoredSession | None]  # none: there is nothing in it


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: str
    full_path: str
    file_mtime: int  # milliseconds
    first_prompt: str | None
    summary: str | None
    message_count: int
    created: str
    modified: str
    git_branch: str | None
    project_path: str | None
    stamp: str

    def session(self) -> StoredSession:
        return StoredSession(
            id=self.session_id,
            project_path=self.project_path,
            git_branch=self.git_branch,
            first_prompt=self.first_prompt,
            summary=self.summary,
            message_count=self.message_count,
            created=self.created,
            modified=self.modified,
        )


class _Index(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    entries: msgspec.Raw
    digest: str = ""


_index = msgspec.json.Decoder(_Index)
_entries = msgspec.json.Decoder(list[Entry])


def sessions_in(folder: Path, describe: Describe) -> list[StoredSession]:
    """As they are now. Reads the transcripts that have changed, and then writes the index."""
    known, is_newer = _read(folder)
    logs = logs_in(folder).items()
    found = [it for log, parts in logs if (it := _entry(log, parts, known.get(log.path.name), describe))]
    if {it.full_path: it for it in found} != {it.full_path: it for it in known.values()} and not is_newer:
        _write(folder, found)
    return [it.session() for it in found]


def _entry(log: PartFile, parts: list[PartFile], known: Entry | None, describe: Describe) -> Entry | None:
    try:
        stamp = Stamp.of(parts)  # before it is read: what comes meanwhile is seen next time
        if known and (known.stamp, known.full_path) == (stamp.text, str(log.path)):
            return known
        session = describe(log)
    except (OSError, SourceError):  # sealed or removed just now, or no log at all
        return None
    if session is None:
        return None
    return Entry(
        session_id=session.id,
        full_path=str(log.path),
        file_mtime=stamp.modified_ms,
        first_prompt=session.first_prompt,
        summary=session.summary,
        message_count=session.message_count,
        created=session.created,
        modified=session.modified,
        git_branch=session.git_branch,
        project_path=session.project_path,
        stamp=stamp.text,
    )


def _read(folder: Path) -> tuple[dict[str, Entry], bool]:
    """The entries by the name of their file, and whether a newer program wrote them."""
    try:
        index = _index.decode((folder / FILE).read_bytes())
        if index.version > VERSION:
            return {}, True
        if index.version != VERSION or index.digest != _digest(bytes(index.entries)):
            return {}, False
        return {Path(it.full_path).name: it for it in _entries.decode(index.entries)}, False
    except (OSError, msgspec.MsgspecError, RecursionError):
        return {}, False


def _write(folder: Path, entries: Iterable[Entry]) -> None:
    data = msgspec.json.encode(sorted(entries, key=lambda it: it.full_path))
    index = _Index(version=VERSION, entries=msgspec.Raw(data), digest=_digest(data))
    try:
        platform.replace_file(folder / FILE, msgspec.json.encode(index))
    except OSError as error:  # then the next list reads what has changed once more
        log.debug("%s: %s", folder / FILE, error)


def _digest(entries: bytes) -> str:
    return hashlib.sha256(entries).hexdigest()[:16]
