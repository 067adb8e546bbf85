"""What there is to read: sessions as single witnesses have them, found but not opened.

A stamp says what the files of a session looked like: as long as it is the same, none of them is opened again. Ids that
stand only inside a file, such as the session a sub-agent belongs to, are read once and remembered.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, NamedTuple

import msgspec

from agent_logger.files import foreign
from agent_logger.files.foreign import SEALED
from agent_logger.files.stored_text import hashed, storable

FIRST_BYTES = 1 << 16  # of a file, enough to see whose it is
_DATABASE = b"SQLite format 3\0"
# Begins the stamp of a session that only the agent's history of prompts mentions.
PROMPTS_ONLY = "prompts only;"
NO_MAIN_FILE = "no main file;"  # begins the stamp of a session of which only the files of sub-agents are left
DOCUMENT_MARK = "#document"  # ends the key of a document
UNATTRIBUTED = "unattributed"  # a log of calls that belong to no session; some of them are paid for


def first_bytes(path: Path) -> bytes:
    """Return the beginning of a file, enough to see whose it is: of a database more, which may name its tables
    anywhere."""
    first = next(foreign.chunks(path), b"")
    return first if first.startswith(_DATABASE) else first[:FIRST_BYTES]


class Source(NamedTuple):
    """A session as one witness has it. `name` is the name of its log, or the client's id."""

    key: str  # its path; of one in a database, with # and its id behind it
    agent: str | None  # whose file it is; none for a log of ours
    path: str
    name: str
    modified: float
    size: int
    stamp: str
    others: tuple[str, ...] | None = None  # paths of its sub-agents' files; none: the reader looks for them
    home: str = ""  # the key of the other home that it is in; empty: it is this installation's, or an agent's
    imported: str | None = None  # the import that it belongs to; none: it is of this machine

    @property
    def prompts_only(self) -> bool:
        """Whether the path is that of the agent's prompt history, because the session's own file is gone."""
        return self.stamp.startswith(PROMPTS_ONLY)

    @property
    def main_missing(self) -> bool:
        """Whether no file has that path, and only files of the session's sub-agents exist."""
        return self.stamp.startswith(NO_MAIN_FILE)

    @property
    def is_of_no_session(self) -> bool:
        return self.agent is None and self.name == UNATTRIBUTED

    @property
    def is_in_database(self) -> bool:
        """Whether the path is that of a database with many sessions."""
        return self.agent is not None and self.key != self.path and not self.prompts_only

    @property
    def is_of_hooks(self) -> bool:
        """Whether the path is no file, but stands for the hook files of one session and one day."""
        return self.agent is None and self.key != self.path and not self.is_document

    @property
    def is_document(self) -> bool:
        """Whether it is the document of a session whose contents are not shared."""
        return self.agent is None and self.key.endswith(DOCUMENT_MARK)

    @property
    def is_log(self) -> bool:
        """Whether it is a log of ours."""
        return self.agent is None and self.key == self.path


def source_at(agent: str, path: Path, name: str = "") -> Source:
    """A session by its main file alone: the reader looks for whatever else belongs to it. `name`: which session of a
    database; the newest if it is empty."""
    return Source(str(path), agent, str(path), name, 0.0, 0, "")


class StampCache:
    """What need not be looked at again: what files say, by path and stamp, as JSON; and folders that look as they did
    when everything in them was indexed, whose sessions are skipped."""

    def __init__(self, stored: dict[str, tuple[str, str]] | None = None, looks: dict[str, str] | None = None) -> None:
        self._stored = stored or {}
        self._looks = looks or {}
        self.new: dict[str, tuple[str, str]] = {}
        self.looks: dict[str, str] = {}  # of folders, as they are now
        self._passed_over: list[tuple[str | None, Iterable[str]]] = []
        # When a part that is not sealed was last written to, at the earliest.
        self.unsealed_since = float("inf")

    def is_as_it_was(self, folder: str, stamps: Iterable[str], agent: str | None, names: Iterable[str]) -> bool:
        """Whether the folder's sessions, with these names and stamps, can be skipped."""
        self.looks[folder] = str(hashed("/".join([*names, *stamps])))
        if self._looks.get(folder) != self.looks[folder]:
            return False
        self._passed_over.append((agent, names))
        return True

    def without_looks(self) -> "StampCache":
        """Return the same values, for folders that are to be looked at every time."""
        cache = StampCache(self._stored)
        cache.new = self.new
        return cache

    @property
    def passed_over(self) -> set[tuple[str | None, str]]:
        """The sessions that were skipped, each as agent and name."""
        return {(agent, name) for agent, names in self._passed_over for name in names}

    def forget_passed_over(self) -> None:
        """Forget which sessions were skipped, before those of another home are looked for."""
        self._passed_over.clear()

    @property
    def unchanged(self) -> list[str]:
        return [folder for folder, look in self.looks.items() if self._looks.get(folder) == look]

    def cached(self, path: str, stamp: str, read: Callable[[], Any]) -> Any:
        stored = self._stored.get(path)
        if stored and stored[0] == stamp:
            return msgspec.json.decode(stored[1])
        value = read()
        if value is not None:  # else it may be said later: a file is there before its first line is
            self._stored[path] = self.new[path] = (stamp, msgspec.json.encode(value).decode())
        return value


# ---------------------------------------------------------------- looking


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # not there, not a folder, not ours to read
        return []


def entries_below(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; none if it is a link, which below an agent's own folder may lead in a circle, or
    out of there."""
    status = stat_of(folder)
    return entries_in(folder) if status and S_ISDIR(status.st_mode) else []


def stat_of(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def stat_of_copy(path: str) -> os.stat_result | None:
    """The stat of a file that may be sealed; `None` if it is gone."""
    return stat_of(path) or stat_of(path + SEALED)


def first_line_stamp(stat: os.stat_result) -> str:
    """What identifies the first line of a file: the file may be cut, and another line written."""
    return f"{stat.st_ino}:{min(stat.st_size, FIRST_BYTES)}"


def stamped(entry: os.DirEntry[str]) -> tuple[str, os.stat_result] | None:
    """The stamp and the stat of a session that is a single file, as most are: ten thousand of them must be checked
    quickly."""
    try:
        stat = entry.stat(follow_symlinks=False)
    except OSError:  # it has just been removed
        return None
    return (f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns};", stat) if S_ISREG(stat.st_mode) else None


class FileStamps:
    """The size, time and stamp of one session's files, added up as they are found."""

    def __init__(self) -> None:
        self.size, self.modified, self.stamp = 0, 0.0, ""

    def add(self, entry: os.DirEntry[str], mark: str = "") -> bool:
        try:
            if not entry.is_file(follow_symlinks=False):
                return False
            stat = entry.stat(follow_symlinks=False)
        except OSError:  # it has just been removed
            return False
        self.add_stat(stat, mark)
        return True

    def add_stat(self, stat: os.stat_result, name: str) -> None:
        self.size += stat.st_size
        if stat.st_mtime > self.modified:
            self.modified = stat.st_mtime
        self.stamp += f"{storable(name)}{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns};"
