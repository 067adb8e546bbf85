"""The files of Kimi Code: a folder per session, with the lines of each agent, and a description of the session."""

import os
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.kimi_code.lines import MAIN_AGENT, STATE
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files.foreign import SEALED, existing
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_below, stat_of_copy

WIRE = "wire.jsonl"
MOST_AGENTS = 10_000  # sub-agents of one session
_BEGINNING = b'{"type":"metadata","protocol_version":'
_SECOND = re.compile(rb'[^\n]*\n\{"type":"[\w.]+",(?:"[^"]+":"[^"\\]*",)*?"agentId":"main"')


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The folder of a session has its id as its name."""
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        session = _session_folder(path)
        stat, name = stat_of_copy(path), os.path.basename(session)
        if stat is None or name in skip:
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        others = tuple(_others(session))
        for other in others:
            if other_stat := stat_of_copy(other):
                files.add_stat(other_stat, os.path.relpath(other, session))
        yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp, others)


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files start at the folder above the session's, because its own name is the id."""
    path = Path(source.path)
    session = Path(_session_folder(source.path))
    if path != session / "agents" / MAIN_AGENT / WIRE:  # a copy somewhere else
        return SourceFiles(source_file(path.parent, path.name))
    others = [os.path.relpath(other, session.parent) for other in _others(str(session))]
    main = os.path.relpath(path, session.parent)
    return SourceFiles(source_file(session.parent, main), [source_file(session.parent, name) for name in others])


def _session_folder(main: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(main)))


def _others(session: str) -> Iterator[str]:
    """Yield the paths of what belongs to the main file: lines of sub-agents, and the description of the session."""
    agents = sorted(
        entry.path
        for entry in entries_below(os.path.join(session, "agents"))
        if entry.name != MAIN_AGENT and entry.is_dir(follow_symlinks=False)
    )
    for path in (*(os.path.join(folder, WIRE) for folder in agents[:MOST_AGENTS]), os.path.join(session, STATE)):
        if existing(Path(path)):
            yield path.removesuffix(SEALED)


def begins_session(first: bytes) -> bool:
    return first.startswith(_BEGINNING)


def recognises(first: bytes) -> bool:
    """Whether it is the file of the agent that a person talks to: the second line names it."""
    return begins_session(first) and bool(_SECOND.match(first))
