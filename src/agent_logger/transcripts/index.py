"""`sessions-index.json`: what a list shows about the transcripts of a folder, so that they need not be read again.

The transcripts decide, not the index. An entry is used only while the files of its transcript are the ones that it was
made from. An index that is missing, damaged or of a newer version is rebuilt in memory, and written to disk unless the
existing one is of a newer version. The fields are those of Claude Code's own index, and two of ours: `stamp`, and a
`digest` of all entries.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files.parts import PartFile
from agent_logger.transcripts.log import Stamp, logs_in
from agent_logger.transcripts.messages import StoredSession

FILE = "sessions-index.json"
VERSION = 1

log = logging.getLogger("agent_logger.transcripts")
Describe = Callable[[PartFile], StoredSession | None]  # none: it is empty


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
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
        return StoredSession(id=self.session_id, **{name: getattr(self, name) for name in _SAME})


class _Index(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    entries: msgspec.Raw
    digest: str = ""


_SAME = [field.name for field in fields(StoredSession) if field.name != "id"]  # in an entry, under the same name
_index = msgspec.json.Decoder(_Index)
_entries = msgspec.json.Decoder(list[IndexEntry])


def sessions_in(folder: Path, describe: Describe) -> list[StoredSession]:
    """The sessions of a folder as they are now. Reads the transcripts that have changed, and then writes the index."""
    before, is_newer = _read(folder)
    logs = logs_in(folder).items()
    entries = [entry for log, parts in logs if (entry := _entry(log, parts, before.get(log.path.name), describe))]
    if {entry.full_path: entry for entry in entries} != {
        entry.full_path: entry for entry in before.values()
    } and not is_newer:
        _write(folder, entries)
    return [entry.session() for entry in entries]


def _entry(log: PartFile, parts: list[PartFile], before: IndexEntry | None, describe: Describe) -> IndexEntry | None:
    try:
        stamp = Stamp.of(parts)  # before it is read, so that later changes are noticed next time
        if before and (before.stamp, before.full_path) == (stamp.text, str(log.path)):
            return before
        session = describe(log)
    except (OSError, SourceError):  # just sealed or removed, or not a log
        return None
    if session is None:
        return None
    return IndexEntry(
        session_id=session.id,
        full_path=str(log.path),
        file_mtime=stamp.modified_ms,
        stamp=stamp.text,
        **{name: getattr(session, name) for name in _SAME},
    )


def _read(folder: Path) -> tuple[dict[str, IndexEntry], bool]:
    """The entries by file name, and whether a newer version wrote them."""
    try:
        index = _index.decode((folder / FILE).read_bytes())
        if index.version > VERSION:
            return {}, True
        if index.version != VERSION or index.digest != _digest(bytes(index.entries)):
            return {}, False
        return {Path(entry.full_path).name: entry for entry in _entries.decode(index.entries)}, False
    except (OSError, ValueError, RecursionError):
        return {}, False


def _write(folder: Path, entries: Iterable[IndexEntry]) -> None:
    data = msgspec.json.encode(sorted(entries, key=lambda entry: entry.full_path))
    index = _Index(version=VERSION, entries=msgspec.Raw(data), digest=_digest(data))
    try:
        platform.replace_file(folder / FILE, msgspec.json.encode(index))
    except OSError as error:  # the next list then reads the changes again
        log.debug("%s: %s", folder / FILE, error)


def _digest(entries: bytes) -> str:
    return hashlib.sha256(entries).hexdigest()[:16]
