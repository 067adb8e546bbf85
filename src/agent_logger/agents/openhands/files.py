"""The files of OpenHands: a folder for each conversation, with its state (`base_state.json`), a file for each event
(`events/event-NNNNN-<id>.json`), and folders of the same form for its sub-agents (`subagents/<id>`).

Conversations have thousands of events, which never change: their folder tells whether one was added.
"""

import os
import re
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.openhands.documents import entries_of, state_entries_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import (
    FileStamps,
    Source,
    StampCache,
    entries_below,
    entries_in,
    stat_of,
    stat_of_copy,
)
from agent_logger.protocols.jsonl import Damage, JsonEntry

CONVERSATIONS, SUBAGENTS = "conversations", "subagents"
STATE, EVENTS = "base_state.json", "events"
MOST_STATE_BYTES = 256 << 20
MOST_EVENT_BYTES = 64 << 20
MOST_AGENTS = 10_000  # sub-agents of one conversation
DEEPEST = 8  # levels of sub-agents
_CONVERSATION = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EVENT = re.compile(r"event-(?P<number>\d{5,9})-[0-9a-zA-Z-]+\.json")


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find conversations: each folder with such a name that has a state or events."""
    for root in folders:
        for parent in (root / CONVERSATIONS, root):
            for entry in sorted(entries_in(str(parent)), key=lambda item: item.name):
                is_folder = _CONVERSATION.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
                if is_folder and entry.name not in skip:
                    yield from _conversation_in(agent, entry.path, entry.name, cache)


def _conversation_in(agent: Agent, folder: str, name: str, cache: StampCache) -> Iterator[Source]:
    stamps = FileStamps()
    paths = [path for path in (_add_folder(part, stamps, cache) for part in _folders(folder)) if path]
    if paths and paths[0].startswith((f"{folder}/{STATE}", f"{folder}/{EVENTS}/")):
        main, *others = paths
        yield Source(main, agent.name, main, name, stamps.modified, stamps.size, stamps.stamp, tuple(others))


def _add_folder(folder: str, stamps: FileStamps, cache: StampCache) -> str | None:
    """Add the stamps of the files of one conversation, without those of its sub-agents. Return its main file."""
    state = stat_of_copy(f"{folder}/{STATE}")
    if state:
        stamps.add_stat(state, os.path.basename(folder))
    newest = None
    if (events := stat_of(f"{folder}/{EVENTS}")) and S_ISDIR(events.st_mode):
        stamp = f"{events.st_ino}:{events.st_mtime_ns}"
        listed = msgspec.convert(cache.cached(f"{folder}/{EVENTS}", stamp, partial(_listed, folder)), _Listed | None)
        newest = f"{folder}/{EVENTS}/{listed.newest}" if listed else None
        stamps.stamp += f"{stamp};"
        stamps.size += listed.size if listed else 0
        if newest and (stat := stat_of_copy(newest)):  # it may not be complete yet
            stamps.size -= stat.st_size
            stamps.add_stat(stat, "")
    return f"{folder}/{STATE}" if state else newest


class _Listed(msgspec.Struct):
    newest: str
    size: int


def _listed(folder: str) -> dict[str, str | int] | None:
    """Return the name of the newest event, and the size of all."""
    names, size = [], 0
    for entry in entries_in(f"{folder}/{EVENTS}"):
        if _EVENT.fullmatch(name := entry.name.removesuffix(foreign.SEALED)) and (stat := stat_of(entry.path)):
            names.append(name)
            size += stat.st_size
    return {"newest": max(names), "size": size} if names else None


def _folders(folder: str) -> list[str]:
    """Return the folder of a conversation, then those of its sub-agents, at any depth."""
    folders, level = [folder], [folder]
    for _ in range(DEEPEST):
        below = sorted(
            entry.path
            for parent in level
            for entry in entries_below(f"{parent}/{SUBAGENTS}")
            if entry.is_dir(follow_symlinks=False)
        )
        level = below[: MOST_AGENTS - len(folders)]
        folders += level
        if not level:
            break
    return folders


# ---------------------------------------------------------------- opening


def open_session(source: Source) -> SourceFiles:
    """Open a conversation. The name of a file begins with the folder of its conversation, because that is the id:
    `../<id>/base_state.json`, `../<id>/events`, `../<id>/subagents/<id>/events`."""
    path = Path(source.path)
    if path.name != STATE and path.parent.name != EVENTS:  # a copy somewhere else
        return SourceFiles(File(path.name, _State(path)))
    folder = path.parent if path.name == STATE else path.parent.parent
    main, *files = (file for part in _folders(str(folder)) for file in _files_in(Path(part), folder))
    return SourceFiles(main, files)


def _files_in(folder: Path, conversation: Path) -> Iterator[File]:
    name = PurePosixPath("..", conversation.name, folder.relative_to(conversation))
    yield File(str(name / STATE), _State(folder / STATE))
    yield File(str(name / EVENTS), _Events(folder / EVENTS))


class _State:
    """The state of a conversation, read again each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        if foreign.existing(self._path) is None:
            yield Damage(1, 0, 0, f"{self._path.name} is missing")
        elif (data := foreign.content(self._path, MOST_STATE_BYTES)) is None:
            raise SourceError(f"{self._path}: larger than {MOST_STATE_BYTES >> 20} MB")
        else:
            yield from state_entries_of(data)


class _Events:
    """The events of a conversation in their order, read again each time. An entry has the number of its event."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        names = {entry.name.removesuffix(foreign.SEALED) for entry in entries_below(str(self._folder))}
        events = sorted((int(match["number"]), name) for name in names if (match := _EVENT.fullmatch(name)))
        expected = 0
        with _opened_folder(self._folder) as folder:
            for number, name in events:
                if number > expected:
                    yield Damage(expected, 0, 0, _missing(expected, number - 1))
                expected = number + 1
                data = _event(self._folder, name, folder)
                if data is None:
                    yield Damage(number, 0, 0, f"{name} is larger than {MOST_EVENT_BYTES >> 20} MB")
                else:
                    yield from entries_of(data, number)


@contextmanager
def _opened_folder(folder: Path) -> Iterator[int | None]:
    """Open a folder, so that the many files in it are opened faster; None if that fails."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _event(path: Path, name: str, folder: int | None) -> bytes | None:
    """Return the bytes of an event; None if there are too many."""
    try:
        with foreign.opened(path / name if folder is None else name, folder) as fd:
            return b"".join(foreign.pieces(fd)) if os.fstat(fd).st_size <= MOST_EVENT_BYTES else None
    except (SourceError, OSError):  # it is packed, or cannot be read
        return foreign.content(path / name, MOST_EVENT_BYTES)


def _missing(first: int, last: int) -> str:
    return f"event {first} is missing" if first == last else f"events {first} to {last} are missing"


# ---------------------------------------------------------------- how a file begins


def begins_session(first: bytes) -> bool:
    return first.lstrip().startswith(b"{")


def recognises(first: bytes) -> bool:
    """Whether the bytes begin the state of a conversation."""
    return begins_session(first) and first.lstrip()[:400].startswith(b'{"id":"') and b'"agent":{"llm":{' in first[:400]
