"""Find the session that an ID means, and read it. A path means that one file; otherwise all files of the same session
are joined."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from agent_logger import config
from agent_logger.cli._catalog import opened
from agent_logger.errors import SourceError
from agent_logger.files.parts import part_of, parts_of
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.joining.calls import WireCall
    from agent_logger.model.session import Session

MOST_CANDIDATES = 10


def session_called(settings: config.Configuration, name: str) -> "Session":
    return session_with_damage(settings, name)[0]


def session_with_damage(settings: config.Configuration, given: str) -> "tuple[Session, Mapping[Path, int]]":
    """The session, and its files that have damaged lines, with how many."""
    from agent_logger.logs.reader import read_session

    if _is_there(given):
        session = read_session(Path(given))
        files = _damaged_files(Path(given))
        return replace(session, damaged_lines=sum(files.values())) if files else session, files
    with opened(settings) as catalog:
        name = one_called(catalog, given)
        whole = catalog.session(name)
        damaged = catalog.damaged_files(name).get(name, {})
    if whole is None:
        raise SourceError(f"the files of session {given!r} cannot be read any more")
    return whole, damaged


def _damaged_files(path: Path) -> "Mapping[Path, int]":
    from agent_logger.logs.damage import count_damage

    by_path = {}
    for file in _parts(path):
        if file.suffix in (".jsonl", ".zst"):
            with suppress(OSError, SourceError):
                by_path[file] = count_damage(file).places
    return {file: places for file, places in by_path.items() if places}


def files_called(settings: config.Configuration, name: str) -> list[Path]:
    """The files of a session, from every witness; all parts of a log of ours."""
    if _is_there(name):
        return _parts(Path(name))
    with opened(settings) as catalog:
        summary = catalog.summary(one_called(catalog, name))
    return [file for path in (summary.paths if summary else ()) for file in _parts(path)]


def calls_called(settings: config.Configuration, name: str) -> "list[WireCall]":
    from agent_logger.catalog.joining.calls import calls_of

    if _is_there(name):
        return calls_of([Path(name)])
    with opened(settings) as catalog:
        return catalog.calls(one_called(catalog, name))


def _is_there(name: str) -> bool:
    path = Path(name)
    return path.is_file() or bool((part := part_of(path)) and parts_of(part.folder, part.name))


def _parts(path: Path) -> list[Path]:
    part = part_of(path)
    return [other.existing_path() for other in parts_of(part.folder, part.name)] if part else [path]


def short_ids(catalog: "Catalog", sessions: Iterable[str]) -> dict[str, str]:
    """The shortest id that a person can type for each session."""
    return {
        name: max(short, screen.date_of_log(name), key=len)
        for name, short in catalog.short_ids(sessions).items()
    }


def one_called(catalog: "Catalog", name: str) -> str:
    """The id of the one session with this name. Raises `SourceError` if there is none, `UsageError` if there are
    several."""
    matching = catalog.resolve(name)
    if not matching:
        raise SourceError(f"no session {name!r}; 'agent-logger ls' lists them")
    if len(matching) > 1:
        names = [*matching[:MOST_CANDIDATES], *["..."] * (len(matching) > MOST_CANDIDATES)]
        raise click.UsageError(f"{name!r} is ambiguous ({', '.join(names)}): use a longer prefix or a path")
    return matching[0]
