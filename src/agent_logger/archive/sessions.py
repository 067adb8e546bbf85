"""The sessions in the archive: main files, by agent and the client's id."""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple, cast

from agent_logger.agents.base import ROWS_SUFFIX, Agent, module
from agent_logger.agents.contracts import DatabaseFiles
from agent_logger.agents.registry import agent_called, identity_of, readable_agent
from agent_logger.agents.source_files import SourceFiles
from agent_logger.archive.copy import generations
from agent_logger.archive.layout import ArchiveFolder, copies, folders
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import Source, StampCache


class Archived(NamedTuple):
    """A session that has a copy, whether its agent still has it or not."""

    folder: ArchiveFolder
    copy: Path  # of its main file, under its plain name
    source: Source  # of a database, in the generation of the copy that has it

    @property
    def id(self) -> str:
        return self.source.name

    @property
    def agent(self) -> str:
        return self.folder.agent

    @property
    def parts(self) -> tuple[str, ...]:
        """The path of its main file below the agent's folder."""
        return self.copy.relative_to(self.folder.copies).parts

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the session: the name of a file may have only a part of the id, which is inside the file."""
        agent = agent_called(self.agent)
        inside = module(agent.files).session_id(self.copy) if agent and agent.has_id_inside else None
        return (self.id, inside) if inside else (self.id,)

    def open(self) -> SourceFiles:
        """Open the session. Raises `SourceError`, `OSError`."""
        agent = agent_called(self.agent)
        assert agent
        return agent.open_session(self.source)


def archived_sessions(home: Path) -> Iterator[Archived]:
    for folder in folders(home):
        yield from archived_in(folder, StampCache())


def is_archived(home: Path, session: str) -> bool:
    """Whether the archive has a copy of the session. An archive that cannot be read has none."""
    try:
        return any(session in archived.names for archived in archived_sessions(home))
    except (OSError, SourceError):
        return False


def archived_in(folder: ArchiveFolder, cache: StampCache, skip: Container[str] = ()) -> Iterator[Archived]:
    """Find the sessions of one folder of an agent, except those in `skip` (`identity_of`), without opening any."""
    agent = readable_agent(folder.agent)
    if agent is None or agent.location is None:
        return
    if agent.location.is_database:
        yield from _in_databases(agent, folder, cache, skip)
        return
    for source in agent.discover([folder.copies], cache, skip, sealed=True):
        if not source.main_missing:
            yield Archived(folder, Path(source.path), source)


def _in_databases(agent: Agent, folder: ArchiveFolder, cache: StampCache, skip: Container[str]) -> Iterator[Archived]:
    """Find the sessions in databases, whatever the files are called. What a newer copy no longer has is in an older
    one."""
    files = cast("DatabaseFiles", module(agent.files))
    for copy in copies(folder):
        if copy.target.name.endswith(ROWS_SUFFIX):
            name = copy.target.name.removesuffix(ROWS_SUFFIX)
            stamp = f"{copy.size}:{copy.modified};"
            if name not in skip:
                source = Source(str(copy.target), agent.name, str(copy.target), name, copy.modified, copy.size, stamp)
                yield Archived(folder, copy.target, source)
            continue
        names: set[str] = set()
        for path in (copy.target, *generations(copy.target)):
            for source in files.sessions_in(agent, path, cache):
                identity = identity_of(source)
                if identity not in names and identity not in skip:
                    names.add(identity)
                    yield Archived(folder, copy.target, source)


def copies_by_name(home: Path) -> dict[str, list[Path]]:
    """Return the copies of sessions' main files, as they are in the archive, the newest first, by the session's names;
    no copies of a database, because it has other sessions too."""
    paths_by_name: dict[str, list[Path]] = {}
    sessions = [session for session in archived_sessions(home) if session.source.key == session.source.path]
    for session in sorted(sessions, key=lambda session: -session.source.modified):
        plain = (session.copy, *generations(session.copy))
        copies = [copy for path in plain if (copy := foreign.existing(path))]
        for name in session.names:
            paths_by_name.setdefault(name, []).extend(copies)
    return paths_by_name


def copies_of(home: Path, session: str) -> list[Path]:
    return copies_by_name(home).get(session, [])
