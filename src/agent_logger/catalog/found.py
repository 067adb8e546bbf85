"""What there is to be read: every session of every agent, and every log of ours, found and not opened.

A stamp says what the files of a session looked like: as long as it is the same, nothing of it is opened again. Ids that
stand only inside a file, as whose sub-agent it is of, are read once and remembered.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agent_logger.catalog.database import hashed, restored, storable
from agent_logger.errors import SourceError
from agent_logger.formats.ids import UUID
from agent_logger.store import foreign
from agent_logger.store.claude_files import is_id
from agent_logger.store.facts import known_folders
from agent_logger.store.hook_files import day_folders, tag_in
from agent_logger.store.layout import HISTORY_FILE, agent_files, agent_folders, claude_roots, place_of
from agent_logger.store.parts import part_of

if TYPE_CHECKING:
    from agent_logger.store.archive import Folder

NO_SESSIONS = ("unattributed", "refused")
FIRST_BYTES = 1 << 16  # of a file, to see whose it is
SETTLED_SECONDS = 2.0  # clocks of file systems are coarse: a folder that changed just now may change unseen

_AGENT = re.compile(r"agent-[^/]+\.jsonl")
_CLAUDE, _CODEX, _GEMINI, _OPENCODE = "claude-code", "codex", "gemini-cli", "opencode"
HAVE_HISTORIES = (_CLAUDE, _CODEX)


class Found(NamedTuple):
    """A session as one witness has it. What it is called: the name of its log, or the client's id."""

    key: str  # its path; of one in a database, with # and its id behind it
    agent: str | None  # whose file it is; none for a log of ours
    path: str
    name: str
    modified: float
    size: int
    stamp: str
    others: tuple[str, ...] | None = None  # paths of its sub-agents' files; none: the reader looks for them

    @property
    def prompts_only(self) -> bool:
        """The path is that of the agent's history, for the session's own file is gone."""
        return self.agent in HAVE_HISTORIES and self.key != self.path

    @property
    def is_of_hooks(self) -> bool:
        """The path is no file, but stands for those of one session and one day."""
        return self.agent is None and self.key != self.path


class Remembered:
    """What need not be looked at again: what files told, by path and stamp, as JSON; and folders that look as they did
    when all in them was taken in, whose sessions are passed over."""

    def __init__(
        self, known: dict[str, tuple[str, str]] | None = None, looks: dict[str, str] | None = None
    ) -> None:
        self._known = known or {}
        self._looks = looks or {}
        self.new: dict[str, tuple[str, str]] = {}
        self.looks: dict[str, str] = {}  # of folders, as they are now
        self._passed_over: list[tuple[str | None, Iterable[str]]] = []
        self.unsealed_since = float(
            "inf"
        )  # when a part that is not sealed was last written to, at the earliest

    def is_as_it_was(
        self, folder: str, stamps: Iterable[str], agent: str | None, names: Iterable[str]
    ) -> bool:
        """Whether its sessions, with these names and stamps, can be passed over."""
        self.looks[folder] = str(hashed("/".join([*names, *stamps])))
        if self._looks.get(folder) != self.looks[folder]:
            return False
        self._passed_over.append((agent, names))
        return True

    @property
    def passed_over(self) -> set[tuple[str | None, str]]:
        """Agents and names of sessions."""
        return {(agent, name) for agent, names in self._passed_over for name in names}

    @property
    def unchanged(self) -> list[str]:
        return [folder for folder, look in self.looks.items() if self._looks.get(folder) == look]

    def told(self, path: str, stamp: str, read: Callable[[], Any]) -> Any:
        known = self._known.get(path)
        if known and known[0] == stamp:
            return msgspec.json.decode(known[1])
        told = read()
        self._known[path] = self.new[path] = (stamp, msgspec.json.encode(told).decode())
        return told


def found(home: Path, remembered: Remembered) -> Iterator[Found]:
    for folder in folders_of_logs(home):
        yield from _logs(str(folder), _entries(str(folder)), remembered)
    yield from _hooked_sessions(home, remembered)
    of_agents = list(agent_sessions(remembered))
    whole = [it for it in of_agents if not it.prompts_only]
    archived = list(_archived_sessions(home, [(it.agent, it.name) for it in whole], remembered))
    yield from whole
    yield from archived
    if typed := [it for it in of_agents if it.prompts_only]:
        known = remembered.passed_over.union((it.agent, it.name) for it in archived)
        yield from (it for it in typed if (it.agent, it.name) not in known)


def agent_sessions(remembered: Remembered) -> Iterator[Found]:
    """What other agents have on this machine."""
    there = set()
    for it in _files_of_agents(remembered):
        there.add((it.agent, it.name))
        yield it
    typed = list(_histories(remembered))
    there |= remembered.passed_over if typed else set()
    yield from (it for it in typed if (it.agent, it.name) not in there)


def _files_of_agents(remembered: Remembered) -> Iterator[Found]:
    for root in claude_roots():
        yield from _claude_sessions(str(root), remembered)
    yield from _codex_sessions(remembered)
    yield from _gemini_sessions()
    yield from _opencode_sessions(remembered)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # not there, not a folder, not ours to read
        return []


class _Files:
    """The files of one session, while they are found."""

    def __init__(self) -> None:
        self.size, self.modified, self.stamp = 0, 0.0, ""

    def add(self, entry: os.DirEntry[str], mark: str = "") -> bool:
        try:
            if not entry.is_file(follow_symlinks=False):
                return False
            it = entry.stat(follow_symlinks=False)
        except OSError:  # it has just been removed
            return False
        self.add_stat(it, mark)
        return True

    def add_stat(self, it: os.stat_result, name: str) -> None:
        self.size += it.st_size
        if it.st_mtime > self.modified:
            self.modified = it.st_mtime
        self.stamp += f"{name}{it.st_ino}:{it.st_size}:{it.st_mtime_ns};"


# ---------------------------------------------------------------- our own


def log_folders(home: Path) -> list[Path]:
    """Where we have ever written logs to, and they are still there."""
    kept = home / "projects"  # our transcripts, of which nobody needs to be told
    return [folder for folder in [*known_folders(home), kept] if folder.is_dir()]


def folders_of_logs(home: Path) -> Iterator[Path]:
    """Exchange logs are in such a folder itself, wire logs in one for each provider, transcripts for each project."""
    for folder in log_folders(home):
        yield folder
        yield from (
            Path(it.path)
            for it in _entries(str(folder))
            if it.is_dir(follow_symlinks=False) and it.name[0] != "." and not it.name.endswith(".bodies")
        )


def _logs(folder: str, entries: Iterable[os.DirEntry[str]], remembered: Remembered) -> Iterator[Found]:
    logs: dict[str, _Files] = {}
    for entry in sorted(entries, key=lambda it: it.name):
        part = part_of(Path(entry.name))
        if part and part.name not in NO_SESSIONS:
            files = logs.get(part.name) or _Files()
            is_sealed = entry.name.endswith(foreign.SEALED)
            if files.add(entry, SEALED_MARK if is_sealed else ""):
                logs[part.name] = files
                if not is_sealed:
                    remembered.unsealed_since = min(remembered.unsealed_since, files.modified)
    if remembered.is_as_it_was(folder, [it.stamp for it in logs.values()], None, logs):
        return
    for name, files in logs.items():
        path = f"{folder}/{name}.jsonl"
        yield Found(path, None, path, name, files.modified, files.size, files.stamp)


SEALED_MARK = "z"  # before the stamp of a sealed part


def is_only_sealed(stamp: str, before: str) -> bool:
    """Whether a log is what it was, but for parts that were sealed: these keep their time."""
    now, then = stamp.split(";"), before.split(";")
    return len(now) == len(then) and all(
        it == old or (it[:1] == SEALED_MARK != old[:1] and it.rpartition(":")[2] == old.rpartition(":")[2])
        for it, old in zip(now, then, strict=True)
    )


def own_log(path: Path) -> Found | None:
    """The log that a file of it names."""
    part = part_of(path.absolute())
    logs = _logs(str(part.folder), _entries(str(part.folder)), Remembered()) if part else ()
    return next((it for it in logs if part and it.name == part.name), None)


def _hooked_sessions(home: Path, remembered: Remembered) -> Iterator[Found]:
    """What hooks were told, by day and session. Files come and go, and never change: as long as the folder does not, no
    more is looked at."""
    for folder in day_folders(home):
        stat = _stat(folder)
        if stat is None:
            continue
        settled = time.time() - stat.st_mtime > SETTLED_SECONDS
        entries = [] if settled else _entries(folder)
        look = [f"{stat.st_ino}:{stat.st_mtime_ns}", *(it.name for it in entries)]
        if not remembered.is_as_it_was(folder, look, None, ()):
            yield from _hooks_in(folder, entries or _entries(folder))


def _hooks_in(folder: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[Found]:
    told: dict[str, _Files] = {}
    for entry in entries:
        if tag := tag_in(entry.name):
            told.setdefault(tag, _Files()).add(entry, entry.name)
    for tag, files in told.items():
        path = f"{folder}/{tag}"
        yield Found(f"{path}#hooks", None, path, tag, files.modified, files.size, str(hashed(files.stamp)))


# ---------------------------------------------------------------- Claude Code


def _claude_sessions(root: str, remembered: Remembered) -> Iterator[Found]:
    yield from _claude_folder(f"{root}/sessions", _entries(f"{root}/sessions"), remembered)
    projects = _entries(f"{root}/projects")
    yield from _claude_folder(f"{root}/projects", projects, remembered)
    for project in projects:
        if project.is_dir(follow_symlinks=False):
            yield from _claude_folder(project.path, _entries(project.path), remembered)


def _claude_folder(folder: str, entries: list[os.DirEntry[str]], remembered: Remembered) -> Iterator[Found]:
    mains: dict[str, os.DirEntry[str]] = {}
    folders: dict[str, str] = {}
    loose: list[os.DirEntry[str]] = []
    for entry in entries:
        name = entry.name
        if name.endswith(".jsonl"):
            if is_id(name[:-6]):
                mains[name[:-6]] = entry
            elif _AGENT.fullmatch(name):
                loose.append(entry)
        elif name in mains or entry.is_dir(follow_symlinks=False):
            folders[name] = entry.path
    if "subagents" in folders and mains:
        loose += [it for it in _entries(folders["subagents"]) if _AGENT.fullmatch(it.name)]
    owned = _owned(loose, remembered) if mains and loose else {}
    with_agents: dict[str, Found] = {}
    alone: dict[str, tuple[str, os.stat_result]] = {}
    for name, entry in mains.items():
        if name in folders or name in owned:
            if found := _with_agents(name, entry, folders.get(name), owned.get(name, ())):
                with_agents[name] = found
        elif stamped := _stamped(entry):
            alone[name] = stamped
    stamps = [*(it.stamp for it in with_agents.values()), *(stamp for stamp, _ in alone.values())]
    if remembered.is_as_it_was(folder, stamps, _CLAUDE, [*with_agents, *alone]):
        return
    yield from with_agents.values()
    for name, (stamp, it) in alone.items():
        path = f"{folder}/{name}.jsonl"
        yield Found(path, _CLAUDE, path, name, it.st_mtime, it.st_size, stamp, ())


def _stamped(entry: os.DirEntry[str]) -> tuple[str, os.stat_result] | None:
    """Of a file alone, as most sessions are: ten thousand of them are to be looked at in no time."""
    try:
        it = entry.stat(follow_symlinks=False)
    except OSError:  # it has just been removed
        return None
    return (f"{it.st_ino}:{it.st_size}:{it.st_mtime_ns};", it) if S_ISREG(it.st_mode) else None


def _with_agents(
    name: str, entry: os.DirEntry[str], folder: str | None, owned: Iterable[os.DirEntry[str]]
) -> Found | None:
    files, others = _Files(), []
    if not files.add(entry):
        return None
    for agent in (*(_agents_below(folder) if folder else ()), *owned):
        if files.add(agent):
            others.append(agent.path)
            files.stamp += agent.name
    return Found(
        entry.path, _CLAUDE, entry.path, name, files.modified, files.size, files.stamp, tuple(others)
    )


def _agents_below(folder: str) -> list[os.DirEntry[str]]:
    agents = f"{folder}/subagents"
    found = [it for it in _entries(agents) if _AGENT.fullmatch(it.name)]
    return [] if found and os.path.islink(agents) else sorted(found, key=lambda it: it.name)


def _owned(loose: list[os.DirEntry[str]], remembered: Remembered) -> dict[str | None, list[os.DirEntry[str]]]:
    """Agents that lie with those of other sessions, by the session that their first line names."""
    owned: dict[str | None, list[os.DirEntry[str]]] = {}
    for entry in sorted(loose, key=lambda it: it.path):
        if entry.is_file(follow_symlinks=False):
            owner = remembered.told(entry.path, str(entry.inode()), partial(_owner, entry.path))
            owned.setdefault(owner, []).append(entry)
    return owned


def _owner(path: str) -> str | None:
    from agent_logger.formats.claude_code.lines import (
        session_of_line,
    )  # readers are not needed to look around

    return session_of_line(next(foreign.chunks(Path(path)), b"")[:FIRST_BYTES].partition(b"\n")[0])


# ---------------------------------------------------------------- the others


def _codex_sessions(remembered: Remembered) -> Iterator[Found]:
    """Rollouts of sub-agents go with that of the thread that started them, however far down."""
    stats = {path: it for path in map(str, agent_files(_CODEX)) if (it := _stat(path))}
    ids: dict[str, tuple[str, str | None]] = {}
    for path, it in stats.items():
        told = remembered.told(path, str(it.st_ino), partial(_codex_ids, path))
        if told:
            ids[path] = (told[0], told[1])
    started: dict[str | None, list[str]] = {}
    for path, (_, by) in ids.items():
        started.setdefault(by, []).append(path)
    known = {name for name, by in ids.values() if by is None}
    below = {path for name in known for path in _below(name, started, ids)}
    for path, (name, by) in ids.items():
        if by is None or path not in below:  # or the thread that started it is gone
            agents = _below(name, started, ids) if by is None else []
            files = _Files()
            for file in (path, *agents):
                files.add_stat(stats[file], os.path.basename(file))
            main = UUID.search(os.path.basename(path))
            yield Found(
                path,
                _CODEX,
                path,
                main[0] if main else name,
                files.modified,
                files.size,
                files.stamp,
                tuple(agents),
            )


def _codex_ids(path: str) -> list[str | None] | None:
    from agent_logger.store.agent_sources import codex_meta

    meta = codex_meta(Path(path))
    return [meta.id, meta.spawned_by] if meta else None


def _below(
    name: str, started: dict[str | None, list[str]], ids: dict[str, tuple[str, str | None]]
) -> list[str]:
    found: dict[str, None] = {}
    names = [name]
    for it in names:  # grows meanwhile
        for path in started.get(it, ()):
            if path not in found:
                found[path] = None
                names.append(ids[path][0])
    return list(found)


def _gemini_sessions() -> Iterator[Found]:
    """Chats of sub-agents lie in a folder that is called as the session, and a chat's name ends as that begins."""
    folders: dict[str, list[tuple[str, list[os.DirEntry[str]]]]] = {}
    for path in map(str, agent_files(_GEMINI)):
        chats, name = os.path.split(path)
        if chats not in folders:
            below = [it for it in _entries(chats) if it.is_dir(follow_symlinks=False)]
            folders[chats] = [(it.name, sorted(_entries(it.path), key=lambda it: it.name)) for it in below]
        stat = _stat(path)
        if stat is None:
            continue
        files = _Files()
        files.add_stat(stat, "")
        for folder, entries in folders[chats]:
            if folder[:8] in name:
                for entry in entries:
                    files.add(entry)
        named = UUID.search(name)
        yield Found(
            path,
            _GEMINI,
            path,
            named[0] if named else name.rpartition(".")[0],
            files.modified,
            files.size,
            files.stamp,
        )


def _opencode_sessions(remembered: Remembered) -> Iterator[Found]:
    """All in one database: while that is as it was, it is not opened; else each session has a stamp inside."""
    for path in agent_files(_OPENCODE):
        files = _Files()
        for name in (str(path), f"{path}-wal"):
            if stat := _stat(name):
                files.add_stat(stat, "")
        for told in remembered.told(str(path), files.stamp, partial(_opencode_stamps, path)):
            name, modified, size, stamp = told
            yield Found(f"{path}#{name}", _OPENCODE, str(path), name, modified, size, stamp)


def _opencode_stamps(path: Path) -> list[tuple[str, float, int, str]]:
    from agent_logger.store import opencode

    try:
        return opencode.session_stamps(path)
    except (SourceError, OSError):
        return []


def _archived_sessions(
    home: Path, present: Iterable[tuple[str | None, str]], remembered: Remembered
) -> Iterator[Found]:
    """What we have kept of agents, and they have no more; each once."""
    if not (home / "archive").is_dir():
        return
    from agent_logger.store.archive import folders

    seen = remembered.passed_over.union(present)
    for folder in folders(home):
        for name, modified, *paths in _kept(folder, remembered, seen):
            copy, file, *others = map(restored, paths)
            if (folder.agent, name) not in seen:
                seen.add((folder.agent, name))
                files = _Files()
                for path in (copy, *others):
                    if stat := _stat(path) or _stat(path + foreign.SEALED):
                        files.add_stat(stat, "")
                key = f"{file}#{name}" if folder.agent == _OPENCODE else file
                yield Found(
                    key, folder.agent, file, name, modified, files.size, files.stamp, tuple(others) or None
                )


def _kept(folder: "Folder", remembered: Remembered, seen: set[tuple[str | None, str]]) -> Iterable[Any]:
    """Of each session its id and time, its copy as that lies there and under its plain name, and those of its
    sub-agents."""
    if folder.agent == _CLAUDE:
        return _kept_of_claude(str(folder.copies), remembered, seen)
    told: Iterable[Any] = remembered.told(
        str(folder.copies), _stamp_below(folder.copies), partial(_read_kept, folder)
    )
    return told


def _kept_of_claude(
    copies: str, remembered: Remembered, seen: set[tuple[str | None, str]]
) -> Iterator[tuple[str | float, ...]]:
    """But for those that the client still has: of them the names say all that must be known."""
    for project in sorted(_entries(f"{copies}/projects"), key=lambda it: it.name):
        gone = {
            session: (entry.path, *told)
            for session, entry in _copies_in(project).items()
            if (_CLAUDE, session) not in seen and (told := _stamped(entry))
        }
        if remembered.is_as_it_was(project.path, [stamp for _, stamp, _ in gone.values()], _CLAUDE, gone):
            seen.update((_CLAUDE, session) for session in gone)
            continue
        for session, (path, _, stat) in gone.items():
            yield session, stat.st_mtime, storable(path), storable(f"{project.path}/{session}.jsonl")


def _copies_in(project: os.DirEntry[str]) -> dict[str, os.DirEntry[str]]:
    """By session. Where one is there plain and sealed, somebody was killed while sealing: the plain one counts."""
    found: dict[str, os.DirEntry[str]] = {}
    for entry in _entries(project.path) if project.is_dir(follow_symlinks=False) else ():
        file = entry.name.removesuffix(foreign.SEALED)
        session = file.removesuffix(".jsonl")
        if session != file and is_id(session) and (session not in found or file == entry.name):
            found[session] = entry
    return found


def _read_kept(folder: "Folder") -> list[tuple[str | float, ...]]:
    from agent_logger.store.archived import archived_in

    return [
        (it.id, it.modified, *(storable(str(path)) for path in (it.copy.path, it.file, *it.others)))
        for it in archived_in(folder)
    ]


def _stamp_below(folder: Path) -> str:
    """Of all files in it, however far down."""
    files = _Files()
    for inside, inner, names in os.walk(folder):
        inner.sort()
        for name in sorted(names):
            if stat := _stat(f"{inside}/{name}"):
                files.add_stat(stat, name)
    return hashlib.sha256(os.fsencode(files.stamp)).hexdigest()


def _histories(remembered: Remembered) -> Iterator[Found]:
    """What was ever typed, also in sessions whose file is there."""
    for agent in HAVE_HISTORIES:
        for folder in agent_folders(place_of(agent)):
            path = f"{folder}/{HISTORY_FILE}"
            if stat := _stat(path):
                files = _Files()
                files.add_stat(stat, "")
                for told in remembered.told(path, files.stamp, partial(_typed, path)):
                    name, modified, size = told
                    yield Found(f"{path}#{name}", agent, path, name, modified, size, f"{modified}:{size}")


def _typed(path: str) -> list[tuple[str, float, int]]:
    from agent_logger.store import histories

    found = histories.prompts_in(Path(path))
    return [
        (
            name,
            max((it.at.timestamp() for it in told if it.at), default=0.0),
            sum(len(it.text) for it in told),
        )
        for name, told in found.items()
    ]


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
