"""The files of Gemini CLI: a chat per session in the folder of its project, which also says where the project is. Chats
of sub-agents are in a folder named after the session."""

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.gemini_cli import PROJECT_FILE
from agent_logger.agents.locations import main_files
from agent_logger.agents.single_file import id_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_in, stat_of_copy

MOST_FIRST_BYTES = 1 << 20  # bytes of a chat's first line
MOST_DOCUMENT_BYTES = 64 << 20  # bytes of a chat that is one document
MOST_AGENTS = 10_000  # chats of sub-agents of one session


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. The name of a chat ends with the beginning of the session's id, which also begins the name of the
    folder of its sub-agents."""
    below: dict[str, list[tuple[str, list[os.DirEntry[str]]]]] = {}
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        chats, file_name = os.path.split(path)
        if chats not in below:
            below[chats] = _agent_folders(chats)
        stat, name = stat_of_copy(path), id_in(path)
        if stat is None or name in skip:
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        started = [entry for folder, entries in below[chats] if folder[:8] in file_name for entry in entries]
        others = tuple(entry.path.removesuffix(foreign.SEALED) for entry in started if files.add(entry))
        yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp, others)


def _agent_folders(chats: str) -> list[tuple[str, list[os.DirEntry[str]]]]:
    folders = [item for item in entries_in(chats) if item.is_dir(follow_symlinks=False)]
    return [(item.name, sorted(entries_in(item.path), key=lambda child: child.name)) for item in folders]


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files start at the project's folder, because that holds the project's path."""
    path = Path(source.path)
    project = path.parent.parent
    session = session_id(path)
    agents = [chat for chat in _chats_below(path.parent) if session == chat.parent.name]
    others = [source_file(project, agent.relative_to(project).as_posix()) for agent in agents]
    main = source_file(project, path.relative_to(project).as_posix())
    main = replace(
        main, name=f"{main.name.rpartition('.')[0] or main.name}.{'json' if _is_document(path) else 'jsonl'}"
    )
    return SourceFiles(main, others, partial(_text, project, {main.name: path}))


def _is_document(path: Path) -> bool:
    """Whether a chat is one document, as those of older versions are, and not one object per line."""
    text = (foreign.text(path, MOST_FIRST_BYTES) or "").strip()
    return "\n" not in text or not text.partition("\n")[0].rstrip().endswith("}")


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


def _text(project: Path, main: Mapping[str, Path], name: str) -> str | None:
    """Read a side file, or the main one, which may have another name. Names come from the reader alone: those of the
    project's path, and of chats."""
    if path := main.get(name):
        return foreign.text(path, MOST_DOCUMENT_BYTES)
    parts = PurePosixPath(name).parts
    if name != PROJECT_FILE and (parts[:1] != ("chats",) or ".." in parts):
        return None
    return foreign.text(project / name, MOST_DOCUMENT_BYTES)


# ---------------------------------------------------------------- how a file begins


class _Line(msgspec.Struct, gc=False):
    id: str | None = msgspec.field(name="sessionId", default=None)
    kind: str = "main"


_line = msgspec.json.Decoder(_Line).decode


def session_id(path: Path) -> str | None:
    """Return the session's id in the first line."""
    try:
        return _line((foreign.text(path, MOST_FIRST_BYTES) or "").split("\n", 1)[0]).id
    except (ValueError, RecursionError):
        return None


def begins_session(first: bytes) -> bool:
    try:
        line = _line(first.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        line = _Line()
    if line.id is not None:
        return line.kind == "main"
    return b'"sessionId":' in first and b'"kind": "subagent"' not in first  # an older, indented document


def recognises(first: bytes) -> bool:
    return first[:1] == b"{" and b'"projectHash":' in first and begins_session(first)
