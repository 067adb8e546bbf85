"""Finds sessions in any folder, such as a copy of another machine's files, by what is in the files."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import cast

from agent_logger.agents.base import Agent, module
from agent_logger.agents.contracts import DatabaseFiles
from agent_logger.agents.locations import MOST_FILES
from agent_logger.agents.registry import recognise
from agent_logger.agents.single_file import id_in
from agent_logger.catalog.discovery.own_logs import logs_in
from agent_logger.files import foreign
from agent_logger.files.parts import log_named, part_of
from agent_logger.files.sources import FileStamps, Source, StampCache, first_bytes, stat_of
from agent_logger.logs.log_records import kind_of_log


def sessions_below(folder: Path) -> Iterator[Source]:
    """Yield the sessions in the regular files below a folder; no link is followed."""
    for inside, _, names in islice(os.walk(folder), MOST_FILES):
        own = [source for source in logs_in(inside, StampCache()) if kind_of_log(Path(inside), source.name)]
        yield from own
        logs = {source.name for source in own}
        for name in sorted(names):
            if log_named(name) not in logs:
                yield from _sessions_in(Path(inside, name.removesuffix(foreign.SEALED)))


def sessions_in_file(path: Path) -> Iterator[Source]:
    """Yield the session in a file, or those in a database, whatever its name."""
    part = part_of(path)
    if part and kind_of_log(part.folder, part.name):
        yield from (source for source in logs_in(str(part.folder), StampCache()) if source.name == part.name)
    else:
        yield from _sessions_in(path)


def _sessions_in(path: Path) -> Iterator[Source]:
    agent = recognise(path.as_posix(), first_bytes(path))
    stat = stat_of(str(foreign.existing(path)))
    if agent is None or agent.reader is None or stat is None:
        return
    if _is_database(agent, path):
        yield from cast("DatabaseFiles", module(agent.files)).sessions_in(agent, path, StampCache())
        return
    files = FileStamps()
    files.add_stat(stat, "")
    yield Source(str(path), agent.name, str(path), id_in(str(path)), files.modified, files.size, files.stamp)


def _is_database(agent: Agent, path: Path) -> bool:
    first = next(foreign.chunks(path), b"")[:1]
    return agent.location is not None and agent.location.is_database and first != b"{"
