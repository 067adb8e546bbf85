"""The files of gptme: a folder per conversation, which has its name. A sub-agent has a folder, too, whose description
says in which folder it was started."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.gptme.messages import CONFIG, CONVERSATION, META, SubAgentMeta
from agent_logger.agents.locations import main_files
from agent_logger.agents.objects import object_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_below, entries_in, stat_of_copy
from agent_logger.providers.lenient import fitting

BRANCHES, LOSSLESS = "branches", "lossless.jsonl"
MOST_DOCUMENT_BYTES = 1 << 20
MOST_FILES = 10_000  # of one session
_BEGINNING = re.compile(rb'\{"role": "(?:system|user|assistant)", "content": "')
_TIME = re.compile(rb'", "timestamp": "\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00)?"[,}]')


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The name of a folder is the session's id."""
    paths = list(map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()))
    threads = {path: AgentThread(_name(path), _started_by(path, cache)) for path in paths}
    for path, agents in families(threads).items():
        stat, name = stat_of_copy(path), threads[path].id
        if stat is None or name in skip:
            continue
        stamps = FileStamps()
        stamps.add_stat(stat, "")
        others = list(_others(path, agents))
        for other in (*others, os.path.join(os.path.dirname(path), CONFIG)):
            if other_stat := stat_of_copy(other):
                stamps.add_stat(other_stat, os.path.basename(other))
        yield Source(path, agent.name, path, name, stamps.modified, stamps.size, stamps.stamp, tuple(others))


def _name(path: str) -> str:
    return os.path.basename(os.path.dirname(path))


def _started_by(path: str, cache: StampCache) -> str | None:
    """Return the name of the conversation that started this one."""
    meta = os.path.join(os.path.dirname(path), META)
    stat = stat_of_copy(meta)
    if stat is None:
        return None
    return cache.cached(meta, f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}", partial(_parent_in, meta)) or None


def _parent_in(meta: str) -> str:
    document = (foreign.text(Path(meta), MOST_DOCUMENT_BYTES) or "").encode("utf-8", "replace")
    return fitting(SubAgentMeta, object_in(document)).parent


def _others(main: str, agents: Iterable[str]) -> Iterator[str]:
    """Yield what belongs to a conversation: its other branches, and the files of its sub-agents."""
    yield from _branches(main)
    for path in agents:
        yield path
        yield from _branches(path)
        yield os.path.join(os.path.dirname(path), META)


def _branches(main: str) -> Iterator[str]:
    folder = os.path.dirname(main)
    if foreign.existing(Path(folder, LOSSLESS)):
        yield os.path.join(folder, LOSSLESS)
    branches = (entry.path.removesuffix(foreign.SEALED) for entry in entries_below(os.path.join(folder, BRANCHES)))
    yield from sorted({path for path in branches if path.endswith(".jsonl")})[:MOST_FILES]


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files start at the folder of all conversations, because that of this one is its id."""
    path = Path(source.path)
    if path.name != CONVERSATION:  # a copy somewhere else
        return SourceFiles(source_file(path.parent, path.name))
    root = path.parent.parent
    others = source.others if source.others is not None else tuple(_others(source.path, _agents_of(root, path)))
    names = [os.path.relpath(other, root) for other in others if not other.endswith(META)]
    main = os.path.relpath(path, root)
    return SourceFiles(source_file(root, main), [source_file(root, name) for name in names], partial(_text, root))


def _agents_of(root: Path, main: Path) -> list[str]:
    folders = (entry.path for entry in entries_in(str(root)) if entry.is_dir(follow_symlinks=False))
    described = (os.path.join(folder, CONVERSATION) for folder in folders if foreign.existing(Path(folder, META)))
    threads = {path: AgentThread(_name(path), _started_by(path, StampCache())) for path in described}
    threads[str(main)] = AgentThread(_name(str(main)), None)
    return families(threads)[str(main)][:MOST_FILES]


def _text(root: Path, name: str) -> str | None:
    """Read the settings of a conversation, or the description of a sub-agent."""
    folder, _, document = name.rpartition("/")
    is_known = document in (CONFIG, META) and folder not in ("", ".", "..") and "/" not in folder
    return foreign.text(root / name, MOST_DOCUMENT_BYTES) if is_known else None


def begins_session(first: bytes) -> bool:
    return bool(_BEGINNING.match(first))


def recognises(first: bytes) -> bool:
    """Whether the first line is a message with a time, written with blanks, or the beginning of a long one."""
    line, end, _ = first.partition(b"\n")
    return begins_session(first) and bool(_TIME.search(line) if end else b'"content": "You are gptme' in line[:80])
