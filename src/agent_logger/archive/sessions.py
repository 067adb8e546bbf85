"""The sessions in the archive: of what is there, main files, by agent and the client's id."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agent_logger.agents.claude_code.files import is_id
from agent_logger.agents.claude_code.opener import claude_source
from agent_logger.agents.framing import modified
from agent_logger.agents.locations import AGENT_PLACES, AgentLocation
from agent_logger.agents.openers import gemini_cli_session, sources_of
from agent_logger.agents.source_files import SourceFiles
from agent_logger.archive.collect import is_main_file
from agent_logger.archive.copy import generations
from agent_logger.archive.layout import DATABASES, ArchivedCopy, ArchiveFolder, copies, folders
from agent_logger.files import foreign
from agent_logger.model.ids import UUID


class Archived(NamedTuple):
    """A session of which there is a copy, whether its agent still has it or not."""

    id: str
    copy: ArchivedCopy  # of its main file
    file: Path  # the same under its plain name; of a database, the generation that it is in
    source: "partial[SourceFiles]"  # what its reader is given
    modified: float
    others: tuple[Path, ...] = ()  # of its sub-agents, where only their content says so

    @property
    def agent(self) -> str:
        return self.copy.folder.agent

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called by. The name of a file of Gemini CLI has a part of the id, which stands inside."""
        inside = gemini_cli_session(self.copy.target) if self.agent == "gemini-cli" else None
        return (self.id, inside) if inside else (self.id,)


def archived_sessions(home: Path) -> Iterator[Archived]:
    for folder in folders(home):
        yield from archived_in(folder)


def archived_in(folder: ArchiveFolder) -> Iterator[Archived]:
    """Of one folder of an agent's. Files are opened only of agents whose names of files do not tell whose they are."""
    place = next((place for place in AGENT_PLACES if place.agent == folder.agent), None)
    if place:
        yield from _sessions(place, folder)


def _sessions(place: AgentLocation, folder: ArchiveFolder) -> Iterator[Archived]:
    if place.agent == "opencode":
        for copy in copies(folder):  # databases, whatever they are called
            yield from _in_database(copy)
        return
    mains = {copy.target: copy for copy in copies(folder) if is_main_file(place, copy.parts)}
    if place.agent == "claude-code":
        for target, copy in mains.items():
            if is_id(target.stem):
                yield Archived(target.stem, copy, target, partial(claude_source, target), copy.modified)
        return
    by_name = {target.name: copy for target, copy in mains.items()}
    for source in sources_of(place.agent, mains):
        name = PurePosixPath(source.main.name).name
        copy = by_name[name]
        others = tuple(by_name[other.name].target for other in source.others if other.name in by_name)
        yield Archived(id_in(name), copy, copy.target, partial(_same, source), modified(copy.target), others)


def _in_database(copy: ArchivedCopy) -> Iterator[Archived]:
    """What a newer copy does not hold any more is in an older one."""
    visited: set[str] = set()
    for path in (copy.target, *generations(copy.target)):
        for source in sources_of("opencode", [path]):
            name = id_in(source.main.name)
            if name not in visited:
                visited.add(name)
                yield Archived(name, copy, path, partial(_same, source), modified(path))


def _same(source: SourceFiles) -> SourceFiles:
    return source


def id_in(name: str) -> str:
    """The client's id in the name of a file, else the name."""
    match = UUID.search(name)
    return match[0] if match else PurePosixPath(name).stem


def copies_by_name(home: Path) -> dict[str, list[Path]]:
    """The copies of sessions' main files, as they lie in the archive, the newest first, by what the session may be
    called by; none of a database, for it holds the sessions of others too."""
    paths_by_name: dict[str, list[Path]] = {}
    sessions = [session for session in archived_sessions(home) if session.agent not in DATABASES]
    for session in sorted(sessions, key=lambda session: -session.modified):
        plain = (session.copy.target, *generations(session.copy.target))
        copies = [copy for path in plain if (copy := foreign.existing(path))]
        for name in session.names:
            paths_by_name.setdefault(name, []).extend(copies)
    return paths_by_name


def copies_of(home: Path, session: str) -> list[Path]:
    return copies_by_name(home).get(session, [])
