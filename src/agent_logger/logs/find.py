"""Finds a log by any of its names: its own, the client's id of its session, a beginning of one, a path."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from agent_logger.files.line_files import whole_lines
from agent_logger.files.parts import PartFile, part_of, parts_in, parts_of
from agent_logger.journal.ownership import head_of
from agent_logger.model import records
from agent_logger.model.records import AnyRecord, ExchangeRecord, Kind, Resume, SessionEnd, SessionStart, WireStart


def log_at(name: str) -> PartFile | None:
    """Return the log that a path leads to, by its first part; `None` if there is none."""
    path = part_of(Path(name))
    return PartFile(path.folder, path.name) if path and parts_of(path.folder, path.name) else None


def logs_called(log_dir: Path, name: str) -> list[PartFile]:
    """Return the logs that are meant, each by its first part. Several if all of them have that name, or begin so."""
    logs = list(_logs(log_dir))
    if named := [log for log in logs if log.name == name]:
        return named
    clients = {log: client_id(log) or "" for log in logs}
    if parts := [log for log, client in clients.items() if client == name != ""]:
        return parts
    return [log for log, client in clients.items() if name and name in (log.name[: len(name)], client[: len(name)])]


def distinct_logs(logs: Iterable[PartFile]) -> list[PartFile]:
    """Return the logs without copies of another one, which another home may have: of these, the longest is left."""
    copies: dict[object, list[PartFile]] = {}
    for log in dict.fromkeys(logs):
        first = next(iter(head_of(min(parts_of(log.folder, log.name), default=log))), None)
        copies.setdefault((log.name, first and first.raw), []).append(log)
    return [max(same, key=_count_lines) if len(same) > 1 else same[0] for same in copies.values()]


def _count_lines(log: PartFile) -> int:
    return sum(1 for part in parts_of(log.folder, log.name) for _ in whole_lines(part))


def _logs(log_dir: Path) -> Iterator[PartFile]:
    folders = [path for path in log_dir.glob("*") if path.is_dir() and not path.name.startswith(".")]
    for folder in sorted(folders):
        yield from dict.fromkeys(PartFile(folder, part.name) for part in parts_in(folder))


def client_id(log: PartFile) -> str | None:
    """Return the client's own name for the session of a wire log."""
    head = _records_in_head(min(parts_of(log.folder, log.name), default=log), "wire")
    start = next((record for record in head if isinstance(record, WireStart)), None)
    return start.identity.id if start and start.identity else None


def _records_in_head(part: PartFile, kind: Kind) -> Iterator[AnyRecord]:
    for line in head_of(part):
        with suppress(ValueError):
            yield records.decode(line.raw, kind)


# ---------------------------------------------------------------- exchange logs

HEAD_BYTES = 4096  # the session's id is in the first record, near its beginning


def exchange_log_of(folder: Path, session_id: str) -> PartFile | None:
    """Return the log of a session, by the id inside, whatever its name: the newest if there are several."""
    logs = dict.fromkeys(PartFile(folder, part.name) for part in _parts_in(folder))
    parts = [log for log in logs if _mentions(log, session_id) and session_id_of(log) == session_id]
    return max(parts, default=None)


def free_name(folder: Path, preferred: str) -> str:
    """Return this name, or the name with a number appended if another log has it."""
    taken = {part.name for part in _parts_in(folder)}
    numbered = (f"{preferred}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (preferred, *numbered) if name not in taken)


def _parts_in(folder: Path) -> list[PartFile]:
    try:
        return parts_in(folder)
    except OSError:
        return []  # writing to it will report the error


def session_id_of(log: PartFile) -> str | None:
    named = (SessionStart, ExchangeRecord, SessionEnd, Resume)
    ids = (record.session_id for record in _records_in_head(log, "exchange") if isinstance(record, named))
    return next(filter(None, ids), None)


def _mentions(log: PartFile, session_id: str) -> bool:
    """Whether the log may belong to the session. A quick check, because there may be thousands of logs. Sealed ones are
    judged by their name."""
    with suppress(OSError):
        if log.is_sealed():
            return f"_{session_id[:8]}" in log.name
        with log.path.open("rb") as file:
            return session_id.encode("utf-8", "replace") in file.read(HEAD_BYTES)
    return False
