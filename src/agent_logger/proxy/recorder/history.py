"""The logs of sessions, for the tracker to learn from when its table is lost."""

from collections.abc import Iterator
from pathlib import Path

from agent_logger import platform
from agent_logger.errors import SourceError
from agent_logger.files.line_files import part_entries
from agent_logger.files.parts import PartFile, parts_by_log
from agent_logger.model.records import Large, decode
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.proxy.tracking.memory import Log

NO_SESSIONS = ("unattributed", "refused")
_LARGE = b'{"type":"large"'


def wire_logs(log_dir: Path) -> Iterator[Log]:
    """Yield the logs of sessions, the one last written to first. What cannot be read is left out."""
    logs = [
        (folder.name, name, parts)
        for folder in log_dir.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
        for name, parts in parts_by_log(folder).items()
        if name not in NO_SESSIONS
    ]
    for provider, name, parts in sorted(logs, key=lambda log: _written(log[2][-1]), reverse=True):
        yield Log(provider, name, _lines(parts))


def _written(part: PartFile) -> float:
    return platform.modified_at(part.existing_path())


def _lines(parts: list[PartFile]) -> Iterator[bytes]:
    for part in parts:
        try:
            for entry in part_entries(part):
                if isinstance(entry, JsonEntry):
                    yield _whole(entry.raw, part.folder)
        except (OSError, SourceError):  # damage; the rest of the log is read
            continue


def _whole(line: bytes, folder: Path) -> bytes:
    if not line.startswith(_LARGE):
        return line
    try:
        record = decode(line, "wire")
        return (folder / record.file).read_bytes() if isinstance(record, Large) else line
    except (OSError, ValueError):
        return line
