"""The files of Claude Code's sessions, in every layout that it has had or was documented to have.

`projects/<folder of the project>/<id>.jsonl`, and `projects/<id>.jsonl` and `sessions/<id>.jsonl` from old
descriptions. Sub-agents have files in `<session>/subagents/`; in older layouts they are in `subagents/` of the project
or beside the session, and name their session in the first line. Nothing here follows a link, or opens anything but a
regular file.
"""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.claude_code import AGENT
from agent_logger.agents.claude_code.naming import is_id, project_folders
from agent_logger.agents.droid.files import begins_session as is_droid
from agent_logger.agents.qwen_code.files import begins_session as is_qwen_code
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files.foreign import SEALED
from agent_logger.files.sources import (
    NO_MAIN_FILE,
    FileStamps,
    Source,
    StampCache,
    entries_in,
    first_line_stamp,
    stamped,
    stat_of,
)

Entry = os.DirEntry[str]
_ENDS = (".jsonl", f".jsonl{SEALED}")
_AGENT_FILE = re.compile(rf"agent-[^/]+\.jsonl(?:{re.escape(SEALED)})?")


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    entries_of = entries_in if sealed else _unpacked_entries
    for root in folders:
        for folder in _session_folders(str(root)):
            yield from _sessions_in(_Folder(folder, skip, entries_of), cache)


def open_session(source: Source) -> SourceFiles:
    from agent_logger.agents.claude_code.opener import claude_source

    path = Path(source.path)
    others = source.others
    return claude_source(path, others and [os.path.relpath(other, path.parent) for other in others])


def find(roots: Sequence[Path], session: str, repo_root: Path | None = None) -> list[Source]:
    """Find every file of that session, those of the repository first, then the newest first. Raises `ValueError` if
    `session` is not an id."""
    if not is_id(session):
        raise ValueError(f"{session!r} is not a session id")
    sources = AGENT.discover(roots, StampCache())
    hits = {source.path: source for source in sources if source.name == session and not source.main_missing}
    own = project_folders(repo_root) if repo_root else ()
    return sorted(
        hits.values(),
        key=lambda source: (Path(source.path).parent.name not in own, -source.modified, source.path),
    )


# ---------------------------------------------------------------- how a file begins


class _Line(msgspec.Struct, gc=False):
    type: str


_line = msgspec.json.Decoder(_Line).decode


def begins_session(first: bytes) -> bool:
    """Whether a main file begins with these bytes. An empty file does too: some versions leave one per resume."""
    if is_qwen_code(first) or is_droid(first):
        return False
    lines = first.split(b"\n")
    return first == b"" or any(map(_has_type, lines)) or len(lines) == 1


class _FirstLine(msgspec.Struct, gc=False):
    """What a line of a session has, in the client's shape or in that of the specification."""

    type: str
    session: str | None = msgspec.field(name="sessionId", default=None)
    leaf: str | None = msgspec.field(name="leafUuid", default=None)  # in a summary, which names no session
    is_of_agent: bool = msgspec.field(name="isSidechain", default=False)


_first_line = msgspec.json.Decoder(_FirstLine).decode
# Top-level fields with plain values, up to `sessionId`.
_CUT = re.compile(rb'\{(?:"[A-Za-z]+":(?:"[^"\\]*"|null|true|false|\d+),)*?"sessionId":"[^"]*"')


def recognises(first: bytes) -> bool:
    """Whether the first line has a type, and the first that names a session is no sub-agent's."""
    lines = first.split(b"\n")
    if cut := _CUT.match(lines[0]) if len(lines) == 1 else None:  # the first line is longer than what was read
        return b'"isSidechain":true' not in cut[0]
    if not _has_type(lines[0]) or is_qwen_code(first) or is_droid(first):
        return False
    named = next(filter(None, map(_named, lines)), None)
    return named is not None and not named.is_of_agent


def _named(line: bytes) -> _FirstLine | None:
    try:
        decoded = _first_line(line)
    except (ValueError, RecursionError):  # another line, or a part of one
        return None
    return decoded if decoded.type and (decoded.session or decoded.leaf) else None


def _has_type(line: bytes) -> bool:
    try:
        return bool(_line(line).type)
    except (ValueError, RecursionError):
        return False


# ---------------------------------------------------------------- looking around


def _unpacked_entries(folder: str) -> list[Entry]:
    """List a folder without packed files: in the agent's own folder they are not the agent's."""
    return [entry for entry in entries_in(folder) if not entry.name.endswith(SEALED)]


def _session_folders(root: str) -> Iterator[str]:
    yield f"{root}/sessions"
    yield f"{root}/projects"
    for project in entries_in(f"{root}/projects"):
        if project.is_dir(follow_symlinks=False):
            yield project.path


class _Folder:
    """The contents of one folder that has sessions."""

    def __init__(self, path: str, skip: Container[str], entries_of: Callable[[str], list[Entry]]) -> None:
        self.path, self.skip, self._entries_of = path, skip, entries_of
        self.mains: dict[str, Entry] = {}  # main files by session
        self.folders: dict[str, str] = {}  # paths of folders by name
        self.loose: list[Entry] = []  # files of sub-agents, of any session
        for entry in entries_of(path):
            self._add(entry)
        if "subagents" in self.folders:
            self.loose += self._agents_in(self.folders["subagents"])

    def _add(self, entry: Entry) -> None:
        name = entry.name
        if name.endswith(_ENDS):
            if name.startswith("agent-") and _AGENT_FILE.fullmatch(name):
                self.loose.append(entry)
                return
            stem = name.removesuffix(SEALED)[:-6]
            if is_id(stem) and stem not in self.skip and (stem not in self.mains or name[-6:] == ".jsonl"):
                self.mains[stem] = entry
        elif name in self.mains or entry.is_dir(follow_symlinks=False):
            self.folders[name] = entry.path

    def _agents_in(self, folder: str) -> list[Entry]:
        return [entry for entry in self._entries_of(folder) if _AGENT_FILE.fullmatch(entry.name)]

    def agents_of(self, session: str) -> list[Entry]:
        """Return the files of sub-agents in the session's own folder."""
        if session not in self.folders:
            return []
        agents = f"{self.folders[session]}/subagents"
        entries = self._agents_in(agents)
        return [] if entries and os.path.islink(agents) else sorted(entries, key=lambda entry: entry.name)


def _sessions_in(folder: _Folder, cache: StampCache) -> Iterator[Source]:
    """Find the sessions of one folder. Most are a single file, and looking at ten thousand of them must be fast."""
    owned = _owned(folder.loose, cache) if folder.loose else {}
    with_agents: dict[str, Source] = {}
    alone: dict[str, tuple[str, os.stat_result]] = {}
    for name, entry in folder.mains.items():
        if name in folder.folders or name in owned:
            if source := _with_agents(folder, name, entry, owned.get(name, ())):
                with_agents[name] = source
        elif stamp_and_stat := stamped(entry):
            alone[name] = stamp_and_stat
    left = list(_without_main(folder, owned))
    stamps = [source.stamp for source in with_agents.values()]
    stamps += [stamp for stamp, _ in alone.values()]
    stamps += [f"{source.name}/{source.stamp}" for source in left]
    if cache.is_as_it_was(folder.path, stamps, AGENT.name, [*with_agents, *alone]):
        return
    yield from with_agents.values()
    yield from left
    for name, (stamp, stat) in alone.items():
        main = f"{folder.path}/{name}.jsonl"
        yield Source(main, AGENT.name, main, name, stat.st_mtime, stat.st_size, stamp, ())


def _without_main(folder: _Folder, owned: Mapping[str | None, list[Entry]]) -> Iterator[Source]:
    """Find sessions whose main file was deleted while the files of their sub-agents were not."""
    for name in dict.fromkeys((*folder.folders, *owned)):
        if not name or name in folder.mains or name in folder.skip or not is_id(name):
            continue
        files = FileStamps()
        agents = (*folder.agents_of(name), *owned.get(name, ()))
        others = [_plain(entry) for entry in agents if files.add(entry, entry.name)]
        if others:
            path, stamp = f"{folder.path}/{name}.jsonl", NO_MAIN_FILE + files.stamp
            yield Source(path, AGENT.name, path, name, files.modified, files.size, stamp, tuple(others))


def _with_agents(folder: _Folder, name: str, entry: Entry, owned: Iterable[Entry]) -> Source | None:
    files = FileStamps()
    if not files.add(entry):
        return None
    agents = (*folder.agents_of(name), *owned)
    others = dict.fromkeys(_plain(agent) for agent in agents if files.add(agent, agent.name))
    path = f"{folder.path}/{name}.jsonl"
    return Source(path, AGENT.name, path, name, files.modified, files.size, files.stamp, tuple(others))


def _plain(entry: Entry) -> str:
    return entry.path.removesuffix(SEALED)


def _owned(loose: list[Entry], cache: StampCache) -> dict[str | None, list[Entry]]:
    """Group the sub-agents that are stored with those of other sessions by the session that their first line names."""
    owned: dict[str | None, list[Entry]] = {}
    for entry in sorted(loose, key=lambda loose_entry: loose_entry.path):
        if entry.is_file(follow_symlinks=False) and (stat := stat_of(entry.path)):
            owner = cache.cached(entry.path, first_line_stamp(stat), partial(_owner, _plain(entry)))
            owned.setdefault(owner, []).append(entry)
    return owned


def _owner(path: str) -> str | None:
    from agent_logger.agents.claude_code.opener import session_in  # imported here: finding files needs no readers

    return session_in(Path(path))
