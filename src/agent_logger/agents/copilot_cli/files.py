"""The files of Copilot CLI: a folder per session with its events and its description. Before 0.0.370 a session was a
single file with its events."""

from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from agent_logger.agents.base import Agent
from agent_logger.agents.framing import source_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files import foreign
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of_copy

EVENTS = "events.jsonl"
DESCRIPTION = "workspace.yaml"
MOST_DESCRIPTION_BYTES = 1 << 20


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    """Find sessions. A session that has a folder may also have the single file of an older version."""
    paths = main_files(agent.location, folders, sealed=sealed) if agent.location else []
    in_folders = {path.parent for path in paths if path.name == EVENTS}
    for path in paths:
        name = session_id(path.as_posix())
        stat = stat_of_copy(str(path))
        if stat is None or name in skip or path.with_suffix("") in in_folders:
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        if path.name == EVENTS and (described := stat_of_copy(str(path.with_name(DESCRIPTION)))):
            files.add_stat(described, DESCRIPTION)
        yield Source(str(path), agent.name, str(path), name, files.modified, files.size, files.stamp)


def open_session(source: Source) -> SourceFiles:
    """Open a session. Names of files start at the folder above the session's, because its name is the id."""
    path = Path(source.path)
    above = path.parent.parent if path.name == EVENTS else path.parent
    return SourceFiles(source_file(above, path.relative_to(above).as_posix()), text=partial(_text, above))


def begins_session(first: bytes) -> bool:
    """Whether a main file may begin with these bytes. A power cut may have left NUL bytes in place of lines."""
    rest = first.lstrip(b"\xef\xbb\xbf\0\r\n")
    return rest.startswith(b"{") or not rest


def recognises(first: bytes) -> bool:
    line = first.split(b"\n", 1)[0]
    return line.startswith(b'{"type":"session.start","data":{') and b'"copilotVersion":' in line


def session_id(path: str) -> str:
    """Return the id in the path of a main file."""
    pure = PurePosixPath(path)
    return pure.parent.name if pure.name == EVENTS and pure.parent.name else pure.stem


def _text(folder: Path, name: str) -> str | None:
    """Read the description of a session. Names come from the reader alone."""
    return foreign.text(folder / name, MOST_DESCRIPTION_BYTES)
