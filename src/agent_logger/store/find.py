"""Finding a wire log by what people call it: its name, the client's id of its session, a beginning of one, a path."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_logger import records
from agent_logger.records import WireStart
from agent_logger.store.ownership import head_of
from agent_logger.store.parts import PartFile, part_of, parts_in, parts_of


def logs_called(log_dir: Path, wanted: str) -> list[PartFile]:
    """The logs that are meant, each by its first part. Several if all of them are called so, or begin so."""
    path = part_of(Path(wanted))
    if path and parts_of(path.folder, path.name):
        return [PartFile(path.folder, path.name)]
    logs = list(_logs(log_dir))
    if named := [log for log in logs if log.name == wanted]:
        return named
    clients = {log: client_id(log) or "" for log in logs}
    if known := [log for log, client in clients.items() if client == wanted != ""]:
        return known
    return [
        log
        for log, client in clients.items()
        if wanted and wanted in (log.name[: len(wanted)], client[: len(wanted)])
    ]


def _logs(log_dir: Path) -> Iterator[PartFile]:
    folders = [it for it in log_dir.glob("*") if it.is_dir() and not it.name.startswith(".")]
    for folder in sorted(folders):
        yield from dict.fromkeys(PartFile(folder, part.name) for part in parts_in(folder))


def client_id(log: PartFile) -> str | None:
    """The client's own name for the session of a wire log."""
    for line in head_of(min(parts_of(log.folder, log.name), default=log)):
        try:
            record = records.decode(line.raw, "wire")
        except msgspec.MsgspecError:
            continue
        if isinstance(record, WireStart):
            return record.identity.id if record.identity else None
    return None
