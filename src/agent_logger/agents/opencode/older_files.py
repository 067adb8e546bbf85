"""opencode's sessions before 1.2, when it had no database: a file for each session, message and part of one.

    storage/session/<project>/<session>.json
    storage/message/<session>/<message>.json
    storage/part/<message>/<part>.json

Before 0.6 each project had a storage of its own, with `session/info`, `session/message` and `session/part/<session>`.
The files are returned as rows of the database, so one reader reads both. Newer versions copied the files into their
database, and left them in place.
"""

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import Any

from agent_logger.agents.locations import matching
from agent_logger.agents.objects import object_in
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files import foreign
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.json_values import Json, fields_of, text_of

MOST_BYTES = 64 << 20  # bytes of a file; longer files, like longer lines, are not read
NEAR_MS = 1_000  # an id contains the time, a little before or after the one in the message
_OLD = "info"

Row = dict[str, Any]


def started_by(path: Path) -> str | None:
    """Return the session that started the one in this file."""
    return text_of(_fields(path).get("parentID"))


def message_files(path: Path) -> list[Path]:
    """Return the message files of the session in this file."""
    session = escape(path.stem)
    storage = path.parents[2]
    below = ("session", "message", session) if path.parent.name == _OLD else ("message", session)
    return list(matching(storage, [*below, "*.json"]))


def source_of(path: Path, started: Iterable[Path] | None = None) -> SourceFiles:
    """Return a session with those that it started; if `started` is None, look for them. Files are read when they are
    iterated over."""
    others = _started_from(path) if started is None else started
    files = [File(file.stem, _Entries(file)) for file in (path, *others)]
    return SourceFiles(files[0], files[1:])


def _started_from(path: Path) -> list[Path]:
    by = {file: started_by(file) for file in matching(path.parent, ["*.json"])}
    paths = [path]
    for parent in paths:  # grows meanwhile
        paths += [file for file, name in by.items() if name == parent.stem and file not in paths]
    return paths[1:]


# ---------------------------------------------------------------- rows


class _Entries:
    """The rows of a session, read again each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[JsonEntry]:
        for number, row in enumerate(_rows(self._path), 1):
            yield JsonEntry(number, 0, row, row.get("data", b""))


def _rows(path: Path) -> Iterator[Row]:
    fields = _fields(path)
    messages = sorted(
        map(_message_row, message_files(path)),
        key=lambda message_file: (message_file["time_created"] or 0, message_file["id"]),
    )
    created = _created(fields)
    yield {
        "table": "session",
        "id": path.stem,
        "parent_id": text_of(fields.get("parentID")),
        "title": text_of(fields.get("title")),
        "directory": text_of(fields.get("directory")),
        "time_created": created,
        "forked_from": _parent_of_fork(path, created, [row["time_created"] for row in messages]),
    }
    yield from messages
    for message in messages:
        for part in _part_files(path, message["id"]):
            yield {"table": "part", "id": part.stem, "message_id": message["id"], "data": _bytes(part)}


def _message_row(path: Path) -> Row:
    data = _bytes(path)
    return {"table": "message", "id": path.stem, "time_created": _created(object_in(data)), "data": data}


def _created(fields: Json) -> int | None:
    created = fields_of(fields.get("time")).get("created")
    return created if type(created) is int else None


def _part_files(path: Path, message: str) -> Iterator[Path]:
    below = ("session", "part", escape(path.stem)) if path.parent.name == _OLD else ("part",)
    return matching(path.parents[2], [*below, escape(message), "*.json"])


def _parent_of_fork(path: Path, created: int | None, times: list[int | None]) -> str | None:
    """Find the parent of a fork. A fork is a copy under new ids, and nothing names its parent; but the messages keep
    their times."""
    copied = max((moment for moment in times if moment and created and moment < created), default=None)
    if copied is None:
        return None
    for other in matching(path.parent, ["*.json"]):
        near = (
            message_file
            for message_file in message_files(other)
            if other != path and _is_made_near(message_file.stem, copied)
        )
        if any(_message_row(file)["time_created"] == copied for file in near):
            return other.stem
    return None


def _is_made_near(message: str, at: int) -> bool:
    """Whether a message's id was made near this time. Ids begin with the lower 36 bits of the time in ms; a clock that
    was set back does not matter here."""
    try:
        made = int(message.partition("_")[2][:9], 16)
    except ValueError:
        return False
    return abs(made - (at & 0xFFFFFFFFF)) < NEAR_MS


# ---------------------------------------------------------------- files


def _bytes(path: Path) -> bytes:
    """Read a file. Invalid UTF-8 in it is replaced; empty if it does not exist, or cannot be read."""
    return (foreign.text(path, MOST_BYTES) or "").encode()


def _fields(path: Path) -> Json:
    return object_in(_bytes(path))
