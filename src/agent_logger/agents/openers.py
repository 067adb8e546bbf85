"""From the main files of Codex, Gemini CLI, opencode and others to what their readers are given.

Files are opened when they are read, and only read. One that is gone by then is empty.
"""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec

from agent_logger.agents.codex.meta import CodexMeta, meta_of
from agent_logger.agents.framing import source_file
from agent_logger.agents.gemini_cli.session import PROJECT_FILE
from agent_logger.agents.locations import AGENT_PLACES
from agent_logger.agents.opencode import database, older_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.agents.threads import AgentThread, families
from agent_logger.errors import SourceError
from agent_logger.files import foreign

MOST_FIRST_BYTES = 1 << 20  # of a rollout's first line, which holds the instructions
MOST_DOCUMENT_BYTES = 64 << 20  # of a chat that is one document
MOST_AGENTS = 10_000  # chats of sub-agents of one session


def sources_of(agent: str, paths: Iterable[Path]) -> Iterator[SourceFiles]:
    """The sessions in main files of an agent. What cannot be opened at all is left out."""
    match agent:
        case "codex":
            yield from codex_sources(paths)
        case "gemini-cli":
            yield from map(gemini_cli_source, paths)
        case "opencode":
            for path in paths:
                yield from _opencode_sources(path)
        case _:
            if not any(place.agent == agent for place in AGENT_PLACES):
                raise ValueError(f"no sources of {agent!r} are known here")
            yield from (_source(path, ()) for path in paths)  # a session is a file


# ---------------------------------------------------------------- Codex


def codex_sources(paths: Iterable[Path]) -> Iterator[SourceFiles]:
    """One per session: rollouts of sub-agents go with that of the thread that started them."""
    metas = {path: meta for path in paths if (meta := codex_meta(path))}
    threads = {path: AgentThread(meta.id, meta.spawned_by) for path, meta in metas.items()}
    for path, agents in families(threads).items():
        yield _source(path, agents)


def codex_meta(path: Path) -> CodexMeta | None:
    """What the first line says; none if it cannot be read."""
    first = (foreign.text(path, MOST_FIRST_BYTES) or "").split("\n", 1)[0]
    try:
        return meta_of(msgspec.json.decode(first))
    except (ValueError, RecursionError):
        return None


def _source(path: Path, agents: Iterable[Path]) -> SourceFiles:
    return SourceFiles(
        source_file(path.parent, path.name), [source_file(agent.parent, agent.name) for agent in agents]
    )


# ---------------------------------------------------------------- Gemini CLI


def gemini_cli_source(path: Path) -> SourceFiles:
    """Names are from the project's folder on, for that holds its path. Chats of sub-agents lie in a folder that is
    called as the session."""
    project = path.parent.parent
    main = path.relative_to(project)
    agents = [chat for chat in _chats_below(path.parent) if gemini_cli_session(path) == chat.parent.name]
    others = [source_file(project, agent.relative_to(project).as_posix()) for agent in agents]
    return SourceFiles(source_file(project, main.as_posix()), others, partial(_text, project))


def _chats_below(chats: Path) -> list[Path]:
    try:
        folders = [entry.path for entry in os.scandir(chats) if entry.is_dir(follow_symlinks=False)]
        paths = {
            Path(entry.path.removesuffix(foreign.SEALED))
            for folder in folders
            for entry in os.scandir(folder)
            if entry.is_file(follow_symlinks=False)
        }
    except OSError:
        return []
    return sorted(path for path in paths if path.suffix in (".jsonl", ".json"))[:MOST_AGENTS]


class _Chat(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="sessionId", default=None)


_chat = msgspec.json.Decoder(_Chat).decode


def gemini_cli_session(path: Path) -> str | None:
    try:
        return _chat((foreign.text(path, MOST_FIRST_BYTES) or "").split("\n", 1)[0]).session
    except (ValueError, RecursionError):
        return None


def _text(project: Path, name: str) -> str | None:
    """Names come from the reader alone: of the project's path, and of chats."""
    parts = PurePosixPath(name).parts
    if name != PROJECT_FILE and (parts[:1] != ("chats",) or ".." in parts):
        return None
    return foreign.text(project / name, MOST_DOCUMENT_BYTES)


# ---------------------------------------------------------------- opencode


def _opencode_sources(path: Path) -> Iterator[SourceFiles]:
    if path.suffix == ".json":
        yield older_files.source_of(path)
        return
    try:
        for name in database.session_ids(path):
            yield database.source_of(path, name)
    except (SourceError, OSError):
        return
