"""Whether this installation wrote the logs in a folder, from the first records of the newest few files.

Anybody may have made the folder: it can come with a repository. So no link is followed, only regular files are opened,
and of each only the beginning is read.
"""

import heapq
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.parts import log_named
from agent_logger.home.part_origin import is_own
from agent_logger.journal.ownership import HEAD_LINES
from agent_logger.model import records
from agent_logger.model.records import Record

NEWEST_FILES = 4
MOST_ENTRIES = 2_000  # of a folder and the folders in it; to look at ten thousand takes longer than all the rest
HEAD_BYTES = 256 << 10  # the first record is shorter, unless a crash took the one that was to be the first

# `unproven`: no part has a mac, as in logs of older versions.
LogOrigin = Literal["own", "other", "unproven"]


def folder_origin(folder: Path, key: bytes | None) -> LogOrigin | None:
    """Return who wrote the logs in a folder: the installation with this key, or another one; `None` if the folder holds
    no logs in our form.

    One part of another installation is enough: one of our logs may lie among a colleague's.
    """
    origins = {_origin_of(path, key) for path in _newest_files(folder)}
    order: tuple[LogOrigin, ...] = ("other", "own", "unproven")
    return next((origin for origin in order if origin in origins), None)


def _newest_files(folder: Path) -> list[str]:
    entries = islice(_entries(str(folder)), MOST_ENTRIES)
    files = ((_age_key(entry.name), entry.path) for entry in entries if _is_part(entry))
    return [path for _, path in heapq.nlargest(NEWEST_FILES, files)]


def _age_key(name: str) -> tuple[bool, str]:
    """Return what is greatest for the newest log. Names begin with a time, apart from a few; to ask the system for the
    time of every file would take ten times as long as listing them."""
    return name[0].isdigit(), name


def _entries(folder: str, *, deeper: bool = True) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder, then what is in the folders in it: wire logs are in one for each provider."""
    inner: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if deeper and _may_hold_logs(entry.name) and entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
    for path in inner:
        yield from _entries(path, deeper=False)


def _may_hold_logs(folder_name: str) -> bool:
    return not folder_name.startswith(".") and not folder_name.endswith(".bodies")


def _is_part(entry: os.DirEntry[str]) -> bool:
    if not entry.name.endswith((".jsonl", ".jsonl" + foreign.SEALED)) or not log_named(entry.name):
        return False
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:  # in a folder whose names can be listed, and nothing else
        return False


def _origin_of(path: str, key: bytes | None) -> LogOrigin | None:
    """Return who wrote a file; `None` if it is not a part of a log."""
    origin: LogOrigin | None = None
    for record in filter(None, map(_record_of, _first_lines(path))):
        if record.mac:
            return "own" if key and is_own(record, key) else "other"
        origin = "unproven"
    return origin


def _first_lines(path: str) -> list[bytes]:
    """Return the whole lines at the beginning of a file; none if it cannot be read."""
    with suppress(OSError, SourceError), foreign.opened(path) as fd:
        start = os.read(fd, HEAD_BYTES)
        text = _unpacked(start) if path.endswith(foreign.SEALED) else start
        return text.split(b"\n", HEAD_LINES)[:-1]
    return []


def _unpacked(start: bytes) -> bytes:
    """Return the beginning of a sealed file's plain text. A frame is not read to its end: it may hold 16 MB."""
    from agent_logger.files.sealed import zstd

    try:
        return zstd.ZstdDecompressor().decompress(start, max_length=HEAD_BYTES)
    except zstd.ZstdError:
        return b""


def _record_of(line: bytes) -> Record | None:
    """Return the record of a line; `None` if the line is not a record of a log, in every field."""
    try:
        kind = records.kind_of(line)
        record = records.decode(line, kind) if kind in ("exchange", "wire", "transcript") else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, Record) else None
