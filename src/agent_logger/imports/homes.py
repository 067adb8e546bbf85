"""The files of another home, with their places in an import: logs, events of hooks, and copies of agents' files.

Its key, settings, tokens, certificates, facts and derived databases are not taken; nor are logs that were written to
other folders, which may mean other files on this machine.
"""

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from agent_logger.archive.layout import folders
from agent_logger.archive.sessions import archived_in
from agent_logger.archive.witness_files import WitnessFile, log_files, witness_files
from agent_logger.catalog.discovery.imported import imported_sources
from agent_logger.catalog.discovery.own_logs import hooked_sessions
from agent_logger.files.parts import parts_by_log
from agent_logger.files.sources import StampCache

HOME_NAME = ".agent-logger"
_SIGNS = ("facts.jsonl", "catalog.db")  # a folder with one of these is a home, whatever its name
_LOG_FOLDERS = ("logs", "sessions", "projects")


def home_at(path: Path) -> Path | None:
    """Return the home that a path is, or has in it."""
    if not path.is_dir() or path.is_symlink():
        return None
    if path.name == HOME_NAME or any((path / name).is_file() for name in _SIGNS):
        return path
    inside = path / HOME_NAME
    return inside if inside.is_dir() and not inside.is_symlink() else None


def home_files(home: Path) -> Iterator[WitnessFile]:
    for folder in _log_folders(home):
        for name in parts_by_log(folder):
            yield from log_files(folder, name)
    cache = StampCache()
    copied = (session.source for folder in folders(home) for session in archived_in(folder, cache))
    for source in chain(hooked_sessions(home, cache), copied, imported_sources(home, cache)):
        yield from witness_files(source)


def _log_folders(home: Path) -> Iterator[Path]:
    for name in _LOG_FOLDERS:
        for inside, inner, _ in os.walk(home / name):
            inner[:] = sorted(folder for folder in inner if folder[0] != "." and not folder.endswith(".bodies"))
            yield Path(inside)
            if Path(inside).parent != home:
                inner.clear()  # logs are in a folder, or in one for each provider or project
