"""The files of Continue: a document for each session, and a list of all sessions beside them, which alone says when a
session was created."""

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.cline.document import MessageForm
from agent_logger.agents.cline.files import document_file
from agent_logger.agents.continue_cli.session import LIST
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of_copy
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import REFUSED, fitting

MOST_LIST_BYTES = 64 << 20
HISTORY = MessageForm(
    re.compile(r'\{\s*"message"\s*:\s*\{'), lambda item: "role" in fields_of(item.get("message")), "history"
)
_BEGINNING = re.compile(rb'\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"title"\s*:\s*"')
_PROJECT = re.compile(rb'"\s*,\s*"workspaceDirectory"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"history"\s*:\s*\[')
_TIME = re.compile(r"[0-9]{1,15}")  # milliseconds since 1970


class _Row(msgspec.Struct, gc=False):
    """A session in the list."""

    session: str | None = msgspec.field(name="sessionId", default=None)
    created: str | int | None = msgspec.field(name="dateCreated", default=None)


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The name of a file is the session's id."""
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        stat, name = stat_of_copy(path), os.path.basename(path).removesuffix(".json")
        if stat and os.path.basename(path) != LIST and name not in skip:
            files = FileStamps()
            files.add_stat(stat, "")
            yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp)


def open_session(source: Source) -> SourceFiles:
    """Open a session, with what is known of it beside its own document."""
    path = Path(source.path)
    times: Json = {"created": _created(path), "modified": source.modified * 1000}
    return SourceFiles(document_file(path.parent, path.name, HISTORY), [File(LIST, [JsonEntry(1, 0, times, b"")])])


def _created(path: Path) -> int | None:
    """Return when the session was created, in milliseconds since 1970."""
    listed = path.with_name(LIST)
    stat = stat_of_copy(str(listed))
    if stat is None:
        return None
    return _times(listed, f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}").get(path.name.removesuffix(".json"))


@lru_cache(maxsize=2)
def _times(listed: Path, stamp: str) -> Mapping[str, int]:
    """Return the times in a list of sessions, read once while it stays as it is."""
    try:
        rows = msgspec.json.decode(foreign.text(listed, MOST_LIST_BYTES) or "[]", type=list[Json])
    except (*REFUSED, OSError, SourceError):
        return {}
    times = ((row.session, str(row.created)) for row in (fitting(_Row, row) for row in rows))
    return {session: int(created) for session, created in times if session and _TIME.fullmatch(created)}


def begins_session(first: bytes) -> bool:
    return recognises(first)


def recognises(first: bytes) -> bool:
    return bool(_BEGINNING.match(first) and _PROJECT.search(first))
