"""Find the session that an ID means, and read it. A path means that one file; otherwise all files of the same session
are joined."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from agent_logger import config
from agent_logger.catalog.summary import Filter
from agent_logger.cli._catalog import NOTHING_YET, open_catalog
from agent_logger.errors import SourceError
from agent_logger.files.parts import part_of, parts_of
from agent_logger.home.homes import Homes
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.joining.calls import WireCall
    from agent_logger.exports.base import ExportedSession
    from agent_logger.home.marks import Marks
    from agent_logger.model.session import Session

MOST_CANDIDATES = 10
# What people say for the session last active; it is called `last`.
LAST_WORDS = ("latest", "newest", "recent", "current", "-1")


@contextmanager
def selected(settings: config.Configuration, homes: Homes, given: str) -> "Iterator[SelectedSession]":
    """Yield the session that a path or a name means. Raises `SourceError` if there is none, `UsageError` if there are
    several."""
    if _is_there(given):
        yield _SessionAtPath(Path(given))
        return
    with open_catalog(settings, homes) as catalog:
        yield _SessionInCatalog(catalog, resolve_id(catalog, given))


@dataclass(frozen=True)
class _SessionAtPath:
    path: Path

    def session(self) -> "Session":
        from agent_logger.logs.reader import read_session

        session, damaged = read_session(self.path), sum(self.damaged_files.values())
        return replace(session, damaged_lines=damaged) if damaged else session

    @cached_property
    def damaged_files(self) -> "Mapping[Path, int]":
        """The files that have damaged lines, with how many."""
        from agent_logger.logs.damage import count_damage

        by_path = {}
        for file in self.files():
            if file.suffix in (".jsonl", ".zst"):
                with suppress(OSError, SourceError):
                    by_path[file] = count_damage(file).places
        return {file: places for file, places in by_path.items() if places}

    def files(self) -> list[Path]:
        """The files of every witness; all parts of a log of ours."""
        return _parts(self.path)

    def exported(self) -> "ExportedSession":
        from agent_logger.exports.sessions import exported_file

        return exported_file(self.path, self.session)

    def marks(self) -> "Marks | None":
        return None

    def calls(self) -> "list[WireCall]":
        from agent_logger.catalog.joining.calls import calls_of

        return calls_of([self.path])


@dataclass(frozen=True)
class _SessionInCatalog:
    catalog: "Catalog"
    id: str

    def session(self) -> "Session":
        if session := self.catalog.read(self.id):
            return session
        raise SourceError(f"the files of session {self.id!r} can no longer be read")

    @cached_property
    def damaged_files(self) -> "Mapping[Path, int]":
        return self.catalog.damaged_files(self.id).get(self.id, {})

    def files(self) -> list[Path]:
        summary = self.catalog.summary(self.id)
        return [file for path in (summary.paths if summary else ()) for file in _parts(path)]

    def exported(self) -> "ExportedSession":
        from agent_logger.exports.sessions import exported_sessions

        return exported_sessions(self.catalog, Filter(sessions=frozenset({self.id})))[0]

    def marks(self) -> "Marks | None":
        return self.catalog.marks().get(self.id)

    def calls(self) -> "list[WireCall]":
        return self.catalog.calls(self.id)


SelectedSession = _SessionAtPath | _SessionInCatalog  # the session that a command is about


def _is_there(name: str) -> bool:
    path = Path(name)
    return os.path.isfile(path) or bool((part := part_of(path)) and parts_of(part.folder, part.name))


def _parts(path: Path) -> list[Path]:
    part = part_of(path)
    return [other.existing_path() for other in parts_of(part.folder, part.name)] if part else [path]


def short_ids(catalog: "Catalog", sessions: Iterable[str]) -> dict[str, str]:
    """The shortest id that a person can type for each session."""
    return {name: max(short, screen.date_of_log(name), key=len) for name, short in catalog.short_ids(sessions).items()}


def resolve_id(catalog: "Catalog", name: str) -> str:
    """The id of the one session with this name. Raises `SourceError` if there is none, `UsageError` if there are
    several."""
    matching = catalog.resolve(name)
    if not matching and os.sep in name:
        try:
            os.stat(name)
        except OSError as error:
            raise SourceError(f"{name}: {error.strerror}") from error
        raise SourceError(f"{name} is a folder; give the path of a session's file")
    if not matching:
        if name == "last":
            raise SourceError(NOTHING_YET.replace("\n", " "))
        hint = "; 'last' is the most recent one" if name.lower() in LAST_WORDS else ""
        raise SourceError(f"no session {name!r}{hint}; 'agent-logger ls' lists them")
    if len(matching) > 1:
        ids = short_ids(catalog, matching[:MOST_CANDIDATES])
        names = [*ids.values(), *["..."] * (len(matching) > MOST_CANDIDATES)]
        raise click.UsageError(f"{name!r} is ambiguous ({', '.join(names)}): use a longer prefix or a path")
    return matching[0]
