"""Copies the files of sessions into the archive: of one, as a hook names it, or all that are below an agent's folder.

A hook's child imports this, so it imports little.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agent_logger.agents.base import AgentLocation
from agent_logger.agents.folders import agent_folders
from agent_logger.agents.locations import beside, is_main_file, matching
from agent_logger.agents.registry import located
from agent_logger.archive.copy import CopyOutcome, can_keep, copy_file
from agent_logger.archive.layout import ArchiveFolder, folder_of, prepare
from agent_logger.errors import AgentLoggerError
from agent_logger.files import foreign
from agent_logger.home.facts import tombstones
from agent_logger.home.machine import note_machine
from agent_logger.model.ids import UUID

Parts = tuple[str, ...]


class CopyProblem(msgspec.Struct, frozen=True):
    path: str
    reason: str


class ArchiveReport(msgspec.Struct, kw_only=True):
    """What was copied, left out and failed."""

    files: int = 0  # that belong to sessions
    new: int = 0
    grown: int = 0
    rewritten: int = 0  # the older copy is kept, as a generation
    bytes: int = 0  # that were copied
    sealed: int = 0
    left_out: list[CopyProblem] = []  # files with a name that has another meaning in the archive
    failed: list[CopyProblem] = []  # tried again next time

    def add(self, outcome: CopyOutcome) -> None:
        self.files += 1
        self.bytes += outcome.bytes
        match outcome.change:
            case "new":
                self.new += 1
            case "grown":
                self.grown += 1
            case "rewritten":
                self.rewritten += 1

    @contextmanager
    def trying(self, path: Path) -> Iterator[None]:
        """Report what fails, and let the rest continue. A file that was deleted meanwhile is no failure; its copy
        stays."""
        try:
            yield
        except FileNotFoundError:
            pass
        except (OSError, AgentLoggerError) as error:
            self.failed.append(CopyProblem(str(path), getattr(error, "strerror", None) or str(error)))


def keep_files(home: Path, folder: ArchiveFolder, files: Iterable[Parts], report: ArchiveReport) -> None:
    """Copy files into the archive, except those of sessions that were removed."""
    note_machine(home)
    # Any other name may be a word in any path.
    buried = [name for name in tombstones(home) if UUID.fullmatch(name)]
    for parts in files:
        if any(name in part for name in buried for part in parts):
            continue
        path = folder.origin.joinpath(*parts)
        if not all(map(can_keep, parts)):
            report.left_out.append(CopyProblem(str(path), "its name is reserved in the archive"))
            continue
        with report.trying(path), foreign.opened_below(folder.origin, parts) as source:
            prepare(folder)
            report.add(copy_file(source, folder.target(parts)))


def keep_session(home: Path, transcript: Path) -> ArchiveReport:
    """Copy one session, named by its main file. Any program may have named it: it counts only if it is a main file
    below a folder of an agent, and not a link."""
    report = ArchiveReport()
    for agent, location in located():
        for origin in agent_folders(location):
            parts = _parts_below(origin, transcript)
            if parts and is_main_file(location, parts):
                folder = folder_of(home, agent.name, origin)
                keep_files(home, folder, _session_files(location, origin, parts), report)
                return report
    return report


def _parts_below(origin: Path, path: Path) -> Parts | None:
    """Return the path below the agent's folder. The file's folder may be reached by a link, if that leads into the
    agent's folder."""
    real = Path(os.path.realpath(path.parent), path.name)
    return real.relative_to(origin).parts if real.is_relative_to(origin) else None


def _session_files(location: AgentLocation, origin: Path, parts: Parts) -> Iterator[Parts]:
    yield parts
    for pattern in beside((*location.beside, *location.shared), parts):
        yield from (path.relative_to(origin).parts for path in matching(origin, pattern))
