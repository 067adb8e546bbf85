"""Finds what was imported. Imports may have the same session: of each witness, the one with the most bytes is used."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from agent_logger.agents.base import ROWS_SUFFIX, Agent
from agent_logger.agents.registry import readable_agent, repeats
from agent_logger.agents.single_file import id_in
from agent_logger.archive.imported import AGENTS, FILES, LOGS, ImportedUnit, head_of, units
from agent_logger.catalog.discovery.own_logs import hooked_sessions, logs_in
from agent_logger.catalog.discovery.sub_agents import as_thread, may_be_sub_agent
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_in, stat_of
from agent_logger.model.session import Session

# The agent, the name, and for hooks the day; of an id that may repeat the path, because all sources are used.
Witness = tuple[str | None, str, str]


def imported_sources(home: Path, cache: StampCache) -> Iterator[Source]:
    best: dict[Witness, Source] = {}
    for unit in units(home):
        for source in _sources_in(unit, cache.without_looks()):
            witness = (source.agent, source.name, source.path if repeats(source.agent, source.name) else "")
            if source.is_of_hooks:
                witness = (source.agent, source.name, Path(source.path).parent.name)
            elif source.is_of_no_session:  # every home has one of that name
                witness = (source.agent, source.name, unit.name)
            if witness not in best or best[witness].size < source.size:
                best[witness] = source._replace(imported=unit.name)
    yield from best.values()


def in_its_bundle(session: Session, log: Path) -> Session:
    """Return the session in an imported log as that of its bundle, if its calls do not name it: the exporting machine
    knew its name from the agent's files."""
    head = head_of(log)
    if head is None or log.stem not in head.logs or session.id == head.session:
        return session
    if session.id == log.stem:
        return replace(session, id=head.session)
    return as_thread(session, head.session) if may_be_sub_agent(session) else session


def _sources_in(unit: ImportedUnit, cache: StampCache) -> Iterator[Source]:
    for folder in entries_in(str(unit.folder / LOGS)):
        if folder.is_dir(follow_symlinks=False):
            yield from logs_in(folder.path, cache)
    yield from hooked_sessions(unit.folder, cache)
    for kind in (AGENTS, FILES):
        for entry in entries_in(str(unit.folder / kind)):
            agent = readable_agent(entry.name)
            for folder in entries_in(entry.path) if agent else ():
                if agent and folder.is_dir(follow_symlinks=False):
                    yield from _of_agent(agent, Path(folder.path), cache) if kind == AGENTS else _file(agent, folder)


def _of_agent(agent: Agent, folder: Path, cache: StampCache) -> Iterator[Source]:
    if agent.location and agent.location.is_database:
        for entry in entries_in(str(folder)):
            if entry.name.endswith(ROWS_SUFFIX):
                yield from _single(agent, entry.path, entry.name.removesuffix(ROWS_SUFFIX))
        return
    yield from agent.discover([folder], cache, sealed=True)


def _file(agent: Agent, folder: "os.DirEntry[str]") -> Iterator[Source]:
    yield from _single(agent, f"{folder.path}/{folder.name}", id_in(folder.name))


def _single(agent: Agent, path: str, name: str) -> Iterator[Source]:
    if stat := stat_of(path):
        files = FileStamps()
        files.add_stat(stat, "")
        yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp)
