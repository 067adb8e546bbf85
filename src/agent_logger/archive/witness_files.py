"""The files of a session as one witness has it, with their places in a unit of an import (`imported`)."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agent_logger.agents.base import ROWS_SUFFIX, Agent, AgentLocation
from agent_logger.agents.databases.rows_file import row_lines
from agent_logger.agents.locations import beside, is_main_file, matching
from agent_logger.agents.registry import readable_agent, repeats
from agent_logger.archive.copy import can_keep
from agent_logger.archive.imported import AGENTS, FILES, HOOKS, LOGS
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.foreign import SEALED
from agent_logger.files.parts import PartFile, live_files_of, parts_of
from agent_logger.files.sources import Source, stat_of
from agent_logger.home.layout import safe_name
from agent_logger.logs.branches import lineage_of
from agent_logger.logs.hook_files import files_with

Parts = tuple[str, ...]
MOST_FOLDER = 40  # characters of a folder's name that are in its place
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_UNREADABLE = re.compile(r"[\\\x00-\x1f\x7f]")


class WitnessFile(NamedTuple):
    """A file, and its path in a unit. `chunks` reads it, unsealed."""

    parts: Parts
    chunks: Callable[[], Iterable[bytes]]
    modified: int  # seconds since 1970
    path: Path | None = None  # none: it is made of the rows of a database
    root: Path | None = None  # the agent's folder that it is below

    @property
    def is_of_lines(self) -> bool:
        return self.parts[-1].endswith((".jsonl", ".live"))


def witness_files(source: Source) -> Iterator[WitnessFile]:
    """Yield the files of a session; of a branch of a log also the logs that it continues. Raises `SourceError`,
    `OSError`."""
    path = Path(source.path)
    if source.is_of_hooks:
        for file in files_with(path.parent, source.name):
            yield _file((HOOKS, path.parent.name, file.name), file)
    elif source.is_log:
        yield from log_files(path.parent, source.name)
    elif source.agent and not source.prompts_only:
        yield from _agent_files(source)


# ---------------------------------------------------------------- our logs


def log_files(folder: Path, name: str) -> Iterator[WitnessFile]:
    for log in dict.fromkeys([name, *(parent for parent, _ in lineage_of(folder, name))]):
        yield from files_of_log(folder, log)


def files_of_log(folder: Path, log: str) -> Iterator[WitnessFile]:
    """Yield the files of one log, without those that it continues."""
    to = (LOGS, _folder_name(folder))
    for part in parts_of(folder, log):
        yield _file((*to, part.path.name), part.path)
    for live in (path for files in live_files_of(folder, log).values() for path in files):
        yield _file((*to, live.name), live)
    bodies = PartFile(folder, log).bodies
    for beside_log in (bodies, folder / log):
        yield from _tree(beside_log, (*to, beside_log.name))


def _folder_name(folder: Path) -> str:
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
    return f"{_ODD.sub('-', folder.name)[:MOST_FOLDER].strip('-') or 'folder'}-{digest}"


def _tree(folder: Path, to: Parts) -> Iterator[WitnessFile]:
    for inside, inner, names in os.walk(folder):
        inner.sort()
        for name in sorted(names):
            path = Path(inside, name.removesuffix(SEALED))
            yield _file((*to, *path.relative_to(folder).parts), path)


# ---------------------------------------------------------------- agents' files


def _agent_files(source: Source) -> Iterator[WitnessFile]:
    agent = readable_agent(source.agent)
    if agent is None:
        raise SourceError(f"{source.path}: agent-logger cannot read files of {source.agent}")
    if agent.location and agent.location.is_database:
        yield _rows(agent, source)
        return
    main = Path(source.path)
    root = root_of(agent.location, main)
    name = main.name if is_portable(main.name) else _folder_name(Path(main.name))
    if root is None:
        root, to = main.parent, (FILES, agent.name, name)
    else:
        to = (AGENTS, agent.name, _folder_name(root))
    for path in _paths(agent, source, root):
        parts = (*path.relative_to(root).parts[:-1], name) if path == main else path.relative_to(root).parts
        if all(map(is_portable, parts)):
            yield _file((*to, *parts), path)._replace(root=root)


def is_portable(name: str) -> bool:
    """Whether a name can stand in a bundle and in an import."""
    return can_keep(name) and len(os.fsencode(name)) <= 255 and not _UNREADABLE.search(name) and name.isprintable()


def root_of(location: AgentLocation | None, main: Path) -> Path | None:
    """Return the agent's folder that a main file is below, judging by the end of its path; None if no agent's folder
    has such a file."""
    for count in range(min(len(main.parts) - 1, 10), 0, -1):
        if location and is_main_file(location, main.parts[-count:]):
            return main.parents[count - 1]
    return None


def _paths(agent: Agent, source: Source, root: Path) -> list[Path]:
    """Return the files below the folder: the main one, those of sub-agents, and what is beside them for this session
    alone."""
    main = Path(source.path)
    paths = [] if source.main_missing else [main]
    opened = agent.open_session(source)
    paths += map(Path, source.others or ())
    paths += (main.parent / file.name for file in opened.others if os.path.isfile(main.parent / file.name))
    for pattern in beside(agent.location.beside if agent.location else (), main.relative_to(root).parts):
        paths += matching(root, pattern, sealed=True)
    clean = (path if path == main else Path(os.path.normpath(str(path).removesuffix(SEALED))) for path in paths)
    return [path for path in dict.fromkeys(clean) if path.is_relative_to(root) and foreign.existing(path)]


def _rows(agent: Agent, source: Source) -> WitnessFile:
    """Return the rows of one session. Several with the same id are in folders of their own."""

    def lines() -> Iterable[bytes]:
        return row_lines(agent.open_session(source))

    folder = name = safe_name(source.name)
    if repeats(agent.name, source.name):
        digest = hashlib.sha256()
        for line in lines():
            digest.update(line)
        folder = f"{name}-{digest.hexdigest()[:8]}"
    return WitnessFile((AGENTS, agent.name, folder, f"{name}{ROWS_SUFFIX}"), lines, int(source.modified))


def _file(parts: Parts, path: Path) -> WitnessFile:
    there = foreign.existing(path)
    stat = stat_of(str(there)) if there else None
    return WitnessFile(parts, partial(foreign.chunks, path), int(stat.st_mtime) if stat else 0, path)
