"""The files of Droid: the lines of a session, and its settings, which count its tokens. A sub-agent has a session of
its own, whose first line names the one that started it."""

import os
from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from agent_logger.agents.base import Agent
from agent_logger.agents.droid.lines import BACKUP, SETTINGS, settings_in, start_in
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import (
    FIRST_BYTES,
    FileStamps,
    Source,
    StampCache,
    entries_in,
    first_line_stamp,
    stat_of_copy,
)

LINES = ".jsonl"
MOST_SETTINGS_BYTES = 16 << 20
MOST_SESSIONS = 10_000  # files that are looked at to find the sub-agents of one session


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The name of a file is the session's id; sub-agents belong to the session that started them."""
    paths = [str(path) for path in main_files(agent.location, folders, sealed=sealed)] if agent.location else []
    paths = [path for path in paths if agent.main_file and agent.main_file.search(path)]
    stats = {path: stat for path in paths if (stat := stat_of_copy(path))}
    threads = {}
    for path, stat in stats.items():
        started_by = cache.cached(path, first_line_stamp(stat), partial(_caller, path))
        threads[path] = AgentThread(_session_in(path), started_by or None)
    for path, agents in families(threads).items():
        if threads[path].id in skip:
            continue
        files, others = FileStamps(), list[str]()
        for lines in (path, *agents):
            files.add_stat(stats[lines], os.path.basename(lines))
            settings = _settings_of(lines)
            for name, stat in settings.items():
                files.add_stat(stat, os.path.basename(name))
            others += [lines, *settings] if lines != path else []
        yield Source(path, agent.name, path, threads[path].id, files.modified, files.size, files.stamp, tuple(others))


def _session_in(path: str) -> str:
    return os.path.basename(path).removesuffix(LINES)


def _settings_of(path: str) -> dict[str, os.stat_result]:
    names = (path.removesuffix(LINES) + end for end in (SETTINGS, BACKUP))
    return {name: stat for name in names if (stat := stat_of_copy(name))}


def _caller(path: str) -> str:
    """Return the session that started this one; an empty text if a person did."""
    start = start_in((foreign.text(Path(path), FIRST_BYTES) or "").split("\n", 1)[0].encode("utf-8", "replace"))
    if start.type:
        return start.started_by or ""
    settings = settings_in(foreign.text(Path(path.removesuffix(LINES) + SETTINGS), MOST_SETTINGS_BYTES))
    return str(settings.calling.get("callingSessionId") or "")


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files start at the folder of its lines; sub-agents may have worked in other projects."""
    path = Path(source.path)
    others = source.others if source.others is not None else _sub_agents(path)
    names = [os.path.relpath(other, path.parent).replace(os.sep, "/") for other in others if other.endswith(LINES)]
    return SourceFiles(
        source_file(path.parent, path.name),
        [source_file(path.parent, name) for name in names],
        partial(_text, path.parent),
    )


def _sub_agents(path: Path) -> list[str]:
    """Return the lines of a session's sub-agents, at any depth."""
    entries = (entry for folder in _projects(path.parent) for entry in entries_in(str(folder)))
    names = (entry.path.removesuffix(foreign.SEALED) for entry in entries)
    paths = [name for name in names if name.endswith(LINES)][:MOST_SESSIONS]
    threads = {name: AgentThread(_session_in(name), _caller(name) or None) for name in paths}
    return families(threads).get(str(path), [])


def _text(folder: Path, name: str) -> str | None:
    """Read the settings of a session, by the path of its lines or, if only its id is known, wherever they are. Names
    come from the reader alone."""
    if not PurePosixPath(name).name.endswith((SETTINGS, BACKUP)):
        return None
    text = foreign.text(folder / name, MOST_SETTINGS_BYTES)
    if text is None and "/" not in name:
        texts = (foreign.text(other / name, MOST_SETTINGS_BYTES) for other in _projects(folder))
        text = next(filter(None, texts), None)
    return text


def _projects(folder: Path) -> list[Path]:
    """Return the folders of all projects, of which this is one."""
    entries = entries_in(str(folder.parent)) if folder.parent.name == "sessions" else []
    others = (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    return [folder, *(Path(other) for other in others if other != str(folder))]


# ---------------------------------------------------------------- how a file begins


def begins_session(first: bytes) -> bool:
    """Whether a main file may begin with these bytes. The first line may be damaged."""
    rest = first.lstrip(b"\xef\xbb\xbf\0\r\n")
    return rest.startswith((b'{"type":"session_start","id":"', b'{"type":"message","id":"'))


def recognises(first: bytes) -> bool:
    start = start_in(first.split(b"\n", 1)[0])
    return bool(begins_session(first) and start.id and start.cwd and not start.started_by)
