"""The files of Codex: one rollout per thread. Rollouts of sub-agents belong to the session that started them."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.codex.meta import CodexMeta, meta_of
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, first_line_stamp, stat_of_copy
from agent_logger.model.ids import UUID

MOST_FIRST_BYTES = 1 << 20  # bytes of a rollout's first line, which has the instructions


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. Rollouts of sub-agents belong to that of the thread that started them, at any depth."""
    paths = map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ())
    stats = {path: stat for path in paths if (stat := stat_of_copy(path))}
    threads: dict[str, AgentThread] = {}
    for path, stat in stats.items():
        if ids := cache.cached(path, first_line_stamp(stat), partial(_ids, path)):
            threads[path] = AgentThread(*ids)
    for path, agents in families(threads).items():
        named = UUID.search(os.path.basename(path))
        name = named[0] if named else threads[path].id
        if name not in skip:
            files = FileStamps()
            for file in (path, *agents):
                files.add_stat(stats[file], os.path.basename(file))
            yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp, tuple(agents))


def open_session(source: Source) -> SourceFiles:
    path = Path(source.path)
    session = next(sources_in([path, *map(Path, source.others or ())]), None)
    if session is None:
        raise SourceError(f"{path}: contains no session")
    return session


def sources_in(paths: Iterable[Path]) -> Iterator[SourceFiles]:
    """Yield the files of each session. Rollouts that cannot be opened at all are left out."""
    metas = {path: meta for path in paths if (meta := meta_in(path))}
    threads = {path: AgentThread(meta.id, meta.spawned_by) for path, meta in metas.items()}
    for path, agents in families(threads).items():
        others = [source_file(agent.parent, agent.name) for agent in agents]
        yield SourceFiles(source_file(path.parent, path.name), others)


def meta_in(path: Path) -> CodexMeta | None:
    """Return what the first line says; None if it cannot be read."""
    first = (foreign.text(path, MOST_FIRST_BYTES) or "").split("\n", 1)[0]
    try:
        return meta_of(msgspec.json.decode(first))
    except (ValueError, RecursionError):
        return None


def _ids(path: str) -> list[str | None] | None:
    meta = meta_in(Path(path))
    return [meta.id, meta.spawned_by] if meta else None


# ---------------------------------------------------------------- how a file begins


class _Payload(msgspec.Struct, gc=False):
    id: str
    source: str | dict[str, msgspec.Raw] = ""  # an object, for a sub-agent


class _Line(msgspec.Struct, gc=False):
    type: str
    payload: _Payload


_line = msgspec.json.Decoder(_Line).decode
_META = re.compile(rb'\{"timestamp":"[^"]*",(?:"ordinal":\d+,)?"type":"session_meta","payload":\{')
_BARE = re.compile(rb'\{"id":"[^"]*","timestamp":"[^"]*"[,}]')  # the first line before 0.32


def begins_session(first: bytes) -> bool:
    """Whether a main file begins with these bytes. Instructions may make the first line longer than the bytes given:
    then a sub-agent is recognised by its role."""
    line = first.split(b"\n", 1)[0]
    if _BARE.match(line):
        return True
    try:
        head = _line(line)
    except (ValueError, RecursionError):
        return bool(_META.match(line)) and b'"source":{"subagent"' not in line
    return head.type == "session_meta" and isinstance(head.payload.source, str)


def recognises(first: bytes) -> bool:
    line = first.split(b"\n", 1)[0]
    return begins_session(first) and (b'"session_meta"' in line or b'"instructions":' in line)
