"""The files of Continue: a document for each session, and a list of all sessions beside them, which alone says when a
session was created."""

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

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
    """Find sessions. The name of a file is the session's id. A session changes when its time in the list does, which
    may be written later."""
    times: dict[str, Mapping[str, int]] = {}
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        stat, name = stat_of_copy(path), os.path.basename(path).removesuffix(".json")
        if stat and os.path.basename(path) != LIST and name not in skip:
            files = FileStamps()
            files.add_stat(stat, "")
            folder = os.path.dirname(path)
            if folder not in times:
                times[folder] = _times_in(folder, cache)
            created = times[folder].get(name, "")
            yield Source(path, agent.name, path, name, files.modified, files.size, f"{files.stamp}{created};")


def open_session(source: Source) -> SourceFiles:
    """Open a session, with what is known of it beside its own document."""
    path = Path(source.path)
    created = _times_in(str(path.parent), StampCache()).get(path.name.removesuffix(".json"))
    times: Json = {"created": created, "modified": source.modified * 1000}
    return SourceFiles(document_file(path.parent, path.name, HISTORY), [File(LIST, [JsonEntry(1, 0, times, b"")])])


def _times_in(folder: str, cache: StampCache) -> Mapping[str, int]:
    """Return when the sessions in a folder's list were created, in milliseconds since 1970. The list is read once while
    it stays as it is."""
    listed = os.path.join(folder, LIST)
    stat = stat_of_copy(listed)
    if stat is None:
        return {}
    stamp = f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"
    return cast("Mapping[str, int]", cache.cached(listed, stamp, partial(_times, Path(listed), stamp)))


@lru_cache(maxsize=2)
def _times(listed: Path, stamp: str) -> Mapping[str, int]:
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
