"""Every session there is, found and not read yet: our own logs, the files of other agents, and the copies of what these
have deleted."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec

from agent_logger.catalog.join import join
from agent_logger.errors import SourceError
from agent_logger.formats.responses import ModelResponse
from agent_logger.formats.session_responses import responses_of_session
from agent_logger.formats.source import Source
from agent_logger.formats.table import format_of
from agent_logger.session import Session
from agent_logger.store.agent_sources import sources_of
from agent_logger.store.archived import gone, id_in
from agent_logger.store.claude_files import find, session_files
from agent_logger.store.find import client_id, session_id_of
from agent_logger.store.layout import agent_files, claude_roots, facts_path
from agent_logger.store.parts import PartFile, part_of, parts_in, parts_of
from agent_logger.store.read import lineage_of, read_session
from agent_logger.store.sources import claude_source

OTHER_AGENTS = ("codex", "gemini-cli", "opencode")
NO_SESSIONS = ("unattributed", "refused")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session is, and what it is called there: by the name of its log, or the client's id."""

    agent: str | None  # whose file it is; none for a log of ours, which says so itself
    path: Path
    name: str
    modified: float
    size: int
    read: Callable[[], Session]
    responses: Callable[[], Iterator[ModelResponse]]  # what was billed, without the rest where that is faster


class _Fact(msgspec.Struct):
    type: str = ""
    path: str = ""


_fact = msgspec.json.Decoder(_Fact)


def log_folders(home: Path) -> list[Path]:
    """Where we have ever written logs to, and they are still there."""
    facts = (_read_fact(line) for line in _fact_lines(home))
    folders = dict.fromkeys(fact.path for fact in facts if fact.type == "log_folder" and fact.path)
    kept = home / "projects"  # our transcripts, of which nobody needs to be told
    return [folder for folder in [*map(Path, folders), kept] if folder.is_dir()]


def _fact_lines(home: Path) -> list[bytes]:
    try:
        return facts_path(home).read_bytes().split(b"\n")
    except OSError:
        return []


def _read_fact(line: bytes) -> _Fact:
    try:
        return _fact.decode(line)
    except msgspec.MsgspecError:
        return _Fact()


def own_logs(folder: Path) -> Iterator[Place]:
    """The logs of a folder: exchange logs in itself, wire logs in a folder for each provider."""
    for inner in [folder, *(it for it in folder.iterdir() if it.is_dir() and it.name[0] != ".")]:
        logs: dict[str, list[PartFile]] = {}
        for part in parts_in(inner):
            if part.name not in NO_SESSIONS:
                logs.setdefault(part.name, []).append(part)
        for name, parts in logs.items():
            if place := _own(inner, name, parts):
                yield place


def _own(folder: Path, name: str, parts: list[PartFile]) -> Place | None:
    try:
        files = [part.existing_path().stat() for part in parts]
    except OSError:  # sealed or removed just now; the next look finds it
        return None
    path = PartFile(folder, name).path
    modified, size = max(it.st_mtime for it in files), sum(it.st_size for it in files)
    return Place(
        None,
        path,
        name,
        modified,
        size,
        lambda: read_session(path),
        lambda: responses_of_session(read_session(path, alone=True)),
    )


def agent_sessions() -> Iterator[Place]:
    """What other agents have on this machine."""
    for root in claude_roots():
        for file in session_files(root):
            yield _of_agent("claude-code", file.path, file.id, partial(claude_source, file.path))
    for agent in OTHER_AGENTS:
        paths = agent_files(agent)
        by_name = {path.name: path for path in paths}
        for source in sources_of(agent, paths):
            path = by_name.get(PurePosixPath(source.main.name).name) or paths[0]
            yield _of_agent(
                agent, path, id_in(source.main.name), partial(_same, source), source.main.modified
            )


def _of_agent(
    agent: str, path: Path, name: str, source: Callable[[], Source], modified: float | None = None
) -> Place:
    form = format_of(agent)
    assert form
    try:
        status = path.stat()
        changed, size = modified or status.st_mtime, status.st_size
    except OSError:  # it has just been removed
        changed, size = 0.0, 0
    return Place(
        agent,
        path,
        name,
        changed,
        size,
        lambda: form.session_of(source()),
        lambda: form.responses_of(source()),
    )


def _same(source: Source) -> Source:
    return source


def archived_sessions(home: Path, present: list[Place]) -> Iterator[Place]:
    """What we have kept of agents, and they have no more."""
    for it in gone(home, ((place.agent, place.name) for place in present)):
        yield _of_agent(it.agent, it.copy.path, it.id, it.source, it.modified)


def places(home: Path) -> list[Place]:
    """All of them, the one last written to first."""
    found = [place for folder in log_folders(home) for place in own_logs(folder)]
    found += (of_agents := list(agent_sessions()))
    found += archived_sessions(home, of_agents)
    return sorted(found, key=lambda place: (-place.modified, str(place.path)))


def discover() -> list[Place]:
    """The sessions that agents have on this machine, the one last written to first."""
    return sorted(agent_sessions(), key=lambda place: (-place.modified, str(place.path)))


def find_session(session_id: str, repo_root: Path | None = None) -> Path | None:
    """The file of an agent's session, by the client's id: that of the project folder first, else the newest.

    None if there is none. `ValueError`: that is no id.
    """
    if found := files_of(session_id, repo_root):
        return found[0]
    return None


def files_of(session_id: str, repo_root: Path | None = None) -> list[Path]:
    """All that have this id, the best first. `ValueError`: that is no id."""
    of_claude = [file.path for file in find(claude_roots(), session_id, repo_root)]
    others = [place.path for place in discover() if place.agent != "claude-code" and place.name == session_id]
    return of_claude + others


def called(home: Path, wanted: str) -> list[Place]:
    """What is meant: a path; a name or a client's id; else all whose name or id begins so."""
    everything = places(home)
    if path := part_of(Path(wanted)):
        if known := [it for it in everything if it.path == path.path.absolute()]:
            return known
        if parts := parts_of(path.folder, path.name):
            return [place for place in [_own(path.folder, path.name, parts)] if place]
    if logs := [it for it in everything if it.agent is None and it.name == wanted]:
        return logs
    ids = {it.path: _session_id(it) for it in everything}
    if same := [it for it in everything if ids[it.path] == wanted]:
        return _best(same)
    begun = [
        it for it in everything if wanted and (it.name.startswith(wanted) or ids[it.path].startswith(wanted))
    ]
    return _best(begun) if len({ids[it.path] for it in begun}) == 1 else begun


def witnesses_of(home: Path, wanted: str) -> list[Place]:
    """Every place of the one session that is meant; none if there is none, or it may be several. What is meant by its
    path, and a branch by the name of its log, stands for itself."""
    found = called(home, wanted)
    ids = {_session_id(it) for it in found}
    if len(ids) != 1 or part_of(Path(wanted)) or (found[0].name == wanted and _is_branch(found[0])):
        return found[:1] if len(ids) == 1 else []
    return [it for it in places(home) if _session_id(it) in ids]


def joined(witnesses: Iterable[Place]) -> Session | None:
    """The session that these tell of together. One that cannot be read is left out; none if that is all."""
    told: list[Session] = []
    names = set()
    for place in witnesses:
        with suppress(SourceError, OSError):
            told.append(place.read())
            names.add(place.name)
    if not told:
        return None
    whole = join(told)
    # A branch is of the session that it branched off in, and names the log.
    return replace(whole, parent=None) if whole.parent in names else whole


def _is_branch(place: Place) -> bool:
    return place.agent is None and len(lineage_of(place.path.parent, place.name)) > 1


def _session_id(place: Place) -> str:
    if place.agent:
        return place.name
    log = PartFile(place.path.parent, place.name)
    return client_id(log) or session_id_of(log) or place.name


def _best(same: list[Place]) -> list[Place]:
    """Of the witnesses of one session the agent's own file, for it has all threads; else all there are."""
    return [it for it in same if it.agent][:1] or same
