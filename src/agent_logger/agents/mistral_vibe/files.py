"""The files of Mistral Vibe.

Version 3 has a folder for each session, and one for each sub-agent beside it: `unified/<id>/`, with `CURRENT`, which
names the newest generation, `generations/<number>/` with the state of the session, `chunks/` with its history, and
`journal/` with the records since then. Version 2 has `session_<time>_<id>/messages.jsonl`, with `meta.json` beside it,
and the same for sub-agents in `agents/<kind>_<time>_<id>/`.
"""

import os
import re
from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.mistral_vibe.documents import (
    CHUNKS,
    CURRENT,
    GENERATIONS,
    JOURNAL,
    MANIFEST,
    MESSAGES,
    META,
    RUNTIME_STATE,
    STORE_FORMAT,
    current_generation,
    entries_of,
    names_in,
    owner_of,
)
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_below, entries_in, stat_of, stat_of_copy
from agent_logger.protocols.jsonl import Damage, JsonEntry

AGENTS = "agents"
MOST_DOCUMENT_BYTES = 256 << 20
MOST_META_BYTES = 16 << 20
MOST_AGENTS = 10_000  # sub-agents of one session
DEEPEST = 8  # levels of sub-agents
_GENERATION = re.compile(r"\d{1,20}")
_SEGMENT = re.compile(r"\d{1,20}\.jsonl")


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    paths = list(map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()))
    threads = {path: _thread(path, cache) for path in paths if os.path.basename(path) == CURRENT}
    for path, agents in families(threads).items():
        if threads[path].id not in skip:
            yield from _stored_session(agent, path, threads[path].id, agents, cache)
    for path in paths:
        if path not in threads and (name := _id_beside(path, cache)) not in skip:
            yield from _logged_session(agent, path, name)


# ---------------------------------------------------------------- version 3


def _thread(path: str, cache: StampCache) -> AgentThread:
    """Return the session of a folder, and the one that started it. A sub-agent has no `meta.json`; which session
    started it never changes."""
    folder = os.path.dirname(path)
    name = os.path.basename(folder)
    if stat_of_copy(f"{folder}/{META}"):
        return AgentThread(name, None)
    return AgentThread(name, cache.cached(f"{folder}/{GENERATIONS}", name, partial(_owner, folder)))


def _owner(folder: str) -> str | None:
    generation = _generation(Path(folder))
    state = _content(Path(folder, GENERATIONS, generation, RUNTIME_STATE)) if generation else None
    return owner_of(state or b"")


def _stored_session(agent: Agent, path: str, name: str, agents: list[str], cache: StampCache) -> Iterator[Source]:
    stamps = FileStamps()
    others: list[str] = []
    for current in (path, *agents):
        _add_folder(os.path.dirname(current), stamps, cache)
    for current in agents:
        others += _all_files(os.path.dirname(current))
    if stamps.stamp:
        yield Source(path, agent.name, path, name, stamps.modified, stamps.size, stamps.stamp, tuple(others))


def _add_folder(folder: str, stamps: FileStamps, cache: StampCache) -> None:
    """Add the stamps of what changes; chunks and generations never do, and `CURRENT` tells of new ones."""
    if current := stat_of_copy(f"{folder}/{CURRENT}"):
        stamps.add_stat(current, os.path.basename(folder))
        stamp = f"{current.st_ino}:{current.st_mtime_ns}"
        stamps.size += int(cache.cached(f"{folder}/{CHUNKS}", stamp, partial(_size_of_history, folder)))
    if meta := stat_of_copy(f"{folder}/{META}"):
        stamps.add_stat(meta, "")
    for entry in sorted(entries_below(f"{folder}/{JOURNAL}"), key=lambda item: item.name):
        stamps.add(entry, "")


def _size_of_history(folder: str) -> int:
    stats = [stat_of(path) for part in (CHUNKS, GENERATIONS) for path in _all_files(f"{folder}/{part}", plain=False)]
    return sum(stat.st_size for stat in stats if stat)


def _all_files(folder: str, *, plain: bool = True) -> list[str]:
    """Return the files in a folder. `plain`: by the names that they had before they were packed."""
    paths: list[str] = []
    for inside, folders, names in os.walk(folder):  # follows no link
        folders.sort()
        paths += [os.path.join(inside, name.removesuffix(foreign.SEALED) if plain else name) for name in sorted(names)]
    return paths


def _generation(folder: Path) -> str | None:
    """Return the newest generation of a session: the one that `CURRENT` names, or else the last that is there."""
    named = current_generation(_content(folder / CURRENT) or b"")
    if named and _GENERATION.fullmatch(named):
        return named
    names = (entry.name for entry in entries_below(str(folder / GENERATIONS)))
    return max(filter(_GENERATION.fullmatch, names), default=None)


# ---------------------------------------------------------------- version 2


class _Meta(msgspec.Struct):
    session_id: str = ""


def _id_beside(path: str, cache: StampCache) -> str:
    """Return the session's id, of which the folder's name has a part."""
    folder = os.path.dirname(path)
    name = os.path.basename(folder)
    return str(cache.cached(f"{folder}/{META}", name, partial(_id_in, Path(folder, META))) or name)


def _id_in(path: Path) -> str | None:
    try:
        return msgspec.json.decode(foreign.text(path, MOST_META_BYTES) or "", type=_Meta).session_id or None
    except (ValueError, RecursionError):
        return None


def _logged_session(agent: Agent, path: str, name: str) -> Iterator[Source]:
    stamps = FileStamps()
    folder = os.path.dirname(path)
    others = _agents_below(folder)
    for file in (path, f"{folder}/{META}", *others):
        if stat := stat_of_copy(file):
            stamps.add_stat(stat, os.path.basename(os.path.dirname(file)))
    if stamps.stamp:
        yield Source(path, agent.name, path, name, stamps.modified, stamps.size, stamps.stamp, tuple(others))


def _agents_below(folder: str) -> list[str]:
    """Return the files of a session's sub-agents, at any depth: of each its messages, then what describes it."""
    paths, level = [], [folder]
    for _ in range(DEEPEST):
        parents = (entry for parent in level for entry in entries_below(f"{parent}/{AGENTS}"))
        level = sorted(entry.path for entry in parents if entry.is_dir(follow_symlinks=False))[:MOST_AGENTS]
        paths += [f"{path}/{name}" for path in level for name in (MESSAGES, META) if stat_of_copy(f"{path}/{name}")]
    return paths


# ---------------------------------------------------------------- opening


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files begin with the folder of the session, which is its id in version 3:
    `../<id>/CURRENT`, `../<id>/journal/<number>.jsonl`, `../<folder>/messages.jsonl`."""
    path = Path(source.path)
    folder = path.parent
    if path.name == CURRENT:
        others = source.others if source.others is not None else _files_of_agents(folder)
        agents = [Path(other).parent for other in others if os.path.basename(other) == CURRENT]
        main, *files = (file for part in (folder, *agents) for file in _stored_files(folder, part))
        return SourceFiles(main, files)
    if path.name != MESSAGES:  # a copy somewhere else
        return SourceFiles(source_file(folder, path.name))
    others = source.others if source.others is not None else _agents_below(str(folder))
    paths = (path, *(Path(other) for other in others if os.path.basename(other) == MESSAGES))
    names = [str(PurePosixPath("..", file.relative_to(folder.parent))) for file in paths]
    main, *files = (source_file(folder, name) for name in names)
    return SourceFiles(main, files, partial(_text, folder))


def _files_of_agents(folder: Path) -> list[str]:
    """Return the main files of a session's sub-agents: sessions of their own, in folders beside it."""
    paths = sorted(entry.path for entry in entries_in(str(folder.parent)) if entry.is_dir(follow_symlinks=False))
    files = [f"{path}/{CURRENT}" for path in paths if stat_of_copy(f"{path}/{CURRENT}")]
    cache = StampCache()
    return [file for file in files if _thread(file, cache).started_by == folder.name][:MOST_AGENTS]


def _stored_files(main: Path, folder: Path) -> Iterator[File]:
    name = PurePosixPath("..", folder.name)
    yield File(str(name / CURRENT), _State(folder))
    segments = {entry.name.removesuffix(foreign.SEALED) for entry in entries_below(str(folder / JOURNAL))}
    for segment in sorted(filter(_SEGMENT.fullmatch, segments), key=lambda item: (len(item), item)):
        yield source_file(main, str(name / JOURNAL / segment))


class _State:
    """The documents of a session in its newest generation, read again each time. A list in a document is one entry for
    each of its elements."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        if foreign.existing(self._folder / META):
            yield from self._document(META, 1)
        yield from self._document(CURRENT, 2)
        if (generation := _generation(self._folder)) is None:
            return
        yield from self._document(f"{GENERATIONS}/{generation}/{RUNTIME_STATE}", 3)
        number, manifest = 4, list(self._document(f"{GENERATIONS}/{generation}/{MANIFEST}", 4))
        yield from manifest
        for name in names_in(manifest, generation):
            number += 1
            yield from self._document(name, number)

    def _document(self, name: str, number: int) -> Iterator[JsonEntry | Damage]:
        if foreign.existing(self._folder / name) is None:
            yield Damage(number, 0, 0, f"{name} is missing")
        elif (data := _content(self._folder / name)) is None:
            yield Damage(number, 0, 0, f"{name} is larger than {MOST_DOCUMENT_BYTES >> 20} MB")
        else:
            yield from entries_of(data, number)


def _content(path: Path) -> bytes | None:
    return foreign.content(path, MOST_DOCUMENT_BYTES)


def _text(folder: Path, name: str) -> str | None:
    """Read what describes a session of version 2, or one of its sub-agents. Names come from the reader alone."""
    if PurePosixPath(name).name != META:
        return None
    return foreign.text(folder / name, MOST_META_BYTES)


# ---------------------------------------------------------------- how a file begins


def begins_session(first: bytes) -> bool:
    return first.startswith((b'{"generation":', b'{"role": '))


def recognises(first: bytes) -> bool:
    line = first.split(b"\n", 1)[0]
    is_log = line.startswith(b'{"role": ') and b'"injected": ' in line and b'"message_id": ' in line
    return STORE_FORMAT in line or is_log
