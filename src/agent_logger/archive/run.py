"""Brings the archive up to date: every file that belongs to a session, of every agent; then seals and sweeps."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from agent_logger.agents.base import Agent, AgentLocation
from agent_logger.agents.folders import agent_files, agent_folders
from agent_logger.agents.locations import kept_files
from agent_logger.agents.registry import located
from agent_logger.archive.collect import ArchiveReport, CopyProblem, keep_files
from agent_logger.archive.copy_database import copy_database, modified_ns
from agent_logger.archive.layout import (
    MAKING,
    archive_path,
    copies,
    folder_of,
    folders,
    prepare,
)
from agent_logger.errors import SourceError
from agent_logger.files.parts import part_of
from agent_logger.files.sources import StampCache
from agent_logger.journal.seal import seal

MAKING_SECONDS = 86_400.0  # after which no process is making that copy any more


def archive_all(home: Path, quiet_seconds: float = 0.0) -> ArchiveReport:
    """Copy all files. A database that was written to within `quiet_seconds` is left for later."""
    report = ArchiveReport()
    for agent, location in located():
        for origin in agent_folders(location):
            keep_files(home, folder_of(home, agent.name, origin), _session_files(agent, location, origin), report)
        for path in agent_files(agent) if location.is_database else ():
            with report.trying(path):
                if not 0 <= time.time() - modified_ns(path) / 1e9 < quiet_seconds:
                    folder = folder_of(home, agent.name, path.parent)
                    prepare(folder)
                    report.add(copy_database(agent, path, folder.target((path.name,))))
    return report


def _session_files(agent: Agent, location: AgentLocation, origin: Path) -> Iterator[tuple[str, ...]]:
    """Yield the files of sessions below a folder, as paths from that folder. A folder that the user names has other
    files, too."""
    if not location.is_named_by_user:
        yield from kept_files(location, origin)
        return
    for source in agent.discover([origin], StampCache()):
        yield Path(source.path).relative_to(origin).parts


def seal_archive(home: Path, after_seconds: float | None, report: ArchiveReport) -> None:
    """Pack the copies of files that were not written to for so long. `None`: never."""
    for folder in folders(home) if after_seconds is not None else ():
        for copy in copies(folder):
            part = part_of(copy.path) if copy.path.suffix == ".jsonl" else None
            if part is None or time.time() - copy.modified < (after_seconds or 0):
                continue
            try:
                report.sealed += seal(part) is not None
            except (OSError, SourceError) as error:
                report.failed.append(CopyProblem(str(copy.path), str(error)))


def sweep(home: Path) -> None:
    """Remove unfinished copies that killed processes left."""
    for inside, _, names in os.walk(archive_path(home)):
        for name in filter(MAKING.fullmatch, names):
            path = Path(inside, name)
            if time.time() - path.lstat().st_mtime > MAKING_SECONDS:
                path.unlink(missing_ok=True)
