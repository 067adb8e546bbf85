"""Every session there is, as each witness has it: our logs, events of hooks, agents' files, and copies of them."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_logger.agents.registry import identity_of
from agent_logger.archive.imported import imports_path
from agent_logger.catalog.discovery.agent_files import agent_sessions
from agent_logger.catalog.discovery.documents import FOLDER as DOCUMENTS
from agent_logger.catalog.discovery.documents import documents_in
from agent_logger.catalog.discovery.own_logs import (
    folders_of_logs,
    hooked_sessions,
    log_folders,
    logs_in,
)
from agent_logger.files.sources import Source, StampCache
from agent_logger.home.homes import OWN, Homes, folders_inside, is_inside


def find_sources(homes: Homes, remembered: StampCache) -> Iterator[Source]:
    """Find the sessions of all homes. The folders of agents belong to the own home."""
    if homes.has_own:
        yield from _own_sources(homes.own, remembered)
    for key, home in homes.folders.items():
        if key != OWN:
            remembered.forget_passed_over()
            yield from (source._replace(home=key) for source in _sources_inside(home, remembered))


def _sources_inside(home: Path, remembered: StampCache) -> Iterator[Source]:
    """Find what is in another home's folder."""
    for folder in folders_of_logs(folders_inside(home)):
        yield from logs_in(str(folder), remembered)
    if is_inside(home / "hooks"):
        yield from hooked_sessions(home, remembered)
    if is_inside(home / DOCUMENTS):
        yield from documents_in(home)
    if is_inside(home / "archive"):
        yield from _archived_sources(home, (), remembered)
        yield from _imported_sources(home, remembered)


def _own_sources(home: Path, remembered: StampCache) -> Iterator[Source]:
    for folder in folders_of_logs(log_folders(home)):
        yield from logs_in(str(folder), remembered)
    yield from hooked_sessions(home, remembered)
    of_agents = list(agent_sessions(remembered))
    whole = [source for source in of_agents if not source.prompts_only]
    present = [(source.agent, identity_of(source)) for source in whole if not source.main_missing]
    archived = list(_archived_sources(home, present, remembered))
    yield from whole
    yield from archived
    imported = list(_imported_sources(home, remembered))
    if typed := [source for source in of_agents if source.prompts_only]:
        others = ((source.agent, source.name) for source in (*archived, *imported))
        excluded = remembered.passed_over.union(others)
        yield from (source for source in typed if (source.agent, source.name) not in excluded)
    yield from imported


def _imported_sources(home: Path, cache: StampCache) -> Iterator[Source]:
    if os.path.isdir(imports_path(home)):
        from agent_logger.catalog.discovery.imported import imported_sources

        yield from imported_sources(home, cache)


def _archived_sources(home: Path, present: Iterable[tuple[str | None, str]], cache: StampCache) -> Iterator[Source]:
    """Find what we have kept of agents and they no longer have, each once. `present`: agents and identities of what
    they have."""
    if not os.path.isdir(home / "archive"):
        return
    from agent_logger.archive.layout import folders
    from agent_logger.archive.sessions import archived_in

    present = set(present)
    for folder in folders(home):
        present |= cache.passed_over
        names = {name for agent, name in present if agent == folder.agent}
        for session in archived_in(folder, cache, names):
            if (folder.agent, identity_of(session.source)) not in present:
                present.add((folder.agent, identity_of(session.source)))
                yield session.source
