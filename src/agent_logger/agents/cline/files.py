"""The files of Cline: a folder for each session, with a document that describes it (`<id>.json`), one with its messages
(`<id>.messages.json`), and one for the messages of each sub-agent.

The name of a sub-agent's session is `<parent>__<name>`. Cline's databases only repeat what these files say.
"""

import os
from collections.abc import Container, Iterator, Sequence
from itertools import chain
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.cline import document
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_in
from agent_logger.protocols.jsonl import Damage, JsonEntry

SESSIONS = "sessions"
MESSAGES = ".messages.json"
OF_AGENT = "__"  # between the parent's id and the name of a sub-agent
MOST_DOCUMENT_BYTES = 256 << 20
MOST_FILES = 10_000  # documents of one session


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions: each folder that has one of the two documents."""
    for root in folders:
        entries = [entry for entry in entries_in(str(root / SESSIONS)) if entry.is_dir(follow_symlinks=False)]
        names = {entry.name for entry in entries}
        for entry in sorted(entries, key=lambda item: item.name):
            parent, is_agent, _ = entry.name.partition(OF_AGENT)
            if entry.name not in skip and not (is_agent and parent in names):
                yield from _session_in(agent, entry.path, entry.name)


def _session_in(agent: Agent, folder: str, name: str) -> Iterator[Source]:
    files, paths = FileStamps(), list[str]()
    for entry in sorted(entries_in(folder), key=lambda item: item.name):
        plain = entry.name.removesuffix(foreign.SEALED)
        if plain.endswith(".json") and files.add(entry, plain):
            paths.append(f"{folder}/{plain}")
    main = next((path for end in (MESSAGES, ".json") if (path := f"{folder}/{name}{end}") in paths), None)
    if main:
        others = tuple(path for path in paths if path != main)
        yield Source(main, agent.name, main, name, files.modified, files.size, files.stamp, others)


def open_session(source: Source) -> SourceFiles:
    """Open a session: its messages, then the document that describes it, then the messages of its sub-agents."""
    path = Path(source.path)
    name = path.name.removesuffix(".json").removesuffix(".messages")
    names = {item.name.removesuffix(foreign.SEALED) for item in entries_in(str(path.parent))}
    about = f"{name}.json"
    main = name + MESSAGES if name + MESSAGES in names or about not in names else about
    agents = sorted(other for other in names if other.endswith(MESSAGES) and other != main)
    others = [*([about] if about in names and about != main else []), *agents[:MOST_FILES]]
    return SourceFiles(_file(path.parent, main), [_file(path.parent, other) for other in others])


def _file(folder: Path, name: str) -> File:
    return document_file(folder, name, document.CLINE)


def document_file(folder: Path, name: str, form: document.MessageForm) -> File:
    """Return a document of messages for a reader."""
    return File(name, _Entries(folder / name, form))


class _Entries:
    """The entries of a document, read again each time they are iterated over."""

    def __init__(self, path: Path, form: document.MessageForm) -> None:
        self._path, self._form = path, form

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        size = os.stat(foreign.existing(self._path) or self._path).st_size
        if size > MOST_DOCUMENT_BYTES:
            raise SourceError(f"{self._path}: larger than {MOST_DOCUMENT_BYTES >> 20} MB")
        yield from document.entries_of(b"".join(chain(foreign.chunks(self._path))), self._form)


def begins_session(first: bytes) -> bool:
    return first.startswith(b"{")


def recognises(first: bytes) -> bool:
    """Whether the bytes begin the messages of a session that a person began, or the document that describes one."""
    if not begins_session(first):
        return False
    head = first[:4096]
    is_main = (
        b'"sessionId"' in head and b'"origin"' in head and b'"messages"' in first and b"parentThreadId" not in head
    )
    return is_main or all(name in first for name in (b'"session_id"', b'"messages_path"', b'"enable_spawn"'))
