"""Every session there is, found and not read yet: our own logs, and the files of other agents."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent_logger.session import Session
from agent_logger.store.find import client_id
from agent_logger.store.layout import facts_path
from agent_logger.store.parts import PartFile, part_of, parts_in, parts_of
from agent_logger.store.read import read_session

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


class _Fact(msgspec.Struct):
    type: str = ""
    path: str = ""


_fact = msgspec.json.Decoder(_Fact)


def log_folders(home: Path) -> list[Path]:
    """Where we have ever written logs to, and they are still there."""
    try:
        lines = facts_path(home).read_bytes().split(b"\n")
    except OSError:
        return []
    facts = (_read_fact(line) for line in lines)
    folders = dict.fromkeys(fact.path for fact in facts if fact.type == "log_folder" and fact.path)
    return [Path(folder) for folder in folders if Path(folder).is_dir()]


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
    return Place(None, path, name, modified, size, lambda: read_session(path))


def places(home: Path) -> list[Place]:
    """All of them, the one last written to first."""
    found = [place for folder in log_folders(home) for place in own_logs(folder)]
    return sorted(found, key=lambda place: (-place.modified, str(place.path)))


def called(home: Path, wanted: str) -> list[Place]:
    """What is meant: a path; a name or a client's id; else all whose name or id begins so."""
    everything = places(home)
    if path := part_of(Path(wanted)):
        if known := [it for it in everything if it.path == path.path.absolute()]:
            return known
        if parts := parts_of(path.folder, path.name):
            return [place for place in [_own(path.folder, path.name, parts)] if place]
    if named := [it for it in everything if it.name == wanted]:
        return named
    ids = {it: client_id(PartFile(it.path.parent, it.name)) or "" for it in everything if it.agent is None}
    if known := [it for it, client in ids.items() if client == wanted != ""]:
        return known
    return [
        it
        for it in everything
        if wanted and (it.name.startswith(wanted) or ids.get(it, "").startswith(wanted))
    ]
