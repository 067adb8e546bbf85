"""Finds our own files: logs, wherever they were written to, and events of hooks."""

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agent_logger.files import foreign
from agent_logger.files.parts import log_named
from agent_logger.files.sources import FileStamps, Source, StampCache, entries_in, stat_of
from agent_logger.files.stored_text import hashed
from agent_logger.home.facts import known_folders
from agent_logger.logs.hook_files import day_folders, tag_in

REFUSED = "refused"  # a log of what we did not pass on, which was not billed
SETTLED_SECONDS = 2.0  # file system clocks are coarse: a folder may change twice at one time


def log_folders(home: Path) -> list[Path]:
    """Return the folders that we have ever written logs to, if they still exist."""
    transcripts = home / "projects"  # our transcripts, which are registered nowhere
    return [folder for folder in [*known_folders(home), transcripts] if os.path.isdir(folder)]


def folders_of_logs(log_folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders with logs. Exchange logs are directly in a log folder, wire logs in one for each provider,
    transcripts in one for each project."""
    for folder in log_folders:
        yield folder
        yield from (
            Path(entry.path)
            for entry in entries_in(str(folder))
            if entry.is_dir(follow_symlinks=False) and entry.name[0] != "." and not entry.name.endswith(".bodies")
        )


def logs_in(folder: str, remembered: StampCache) -> Iterator[Source]:
    logs: dict[str, FileStamps] = {}
    for entry in sorted(entries_in(folder), key=lambda item: item.name):
        name = log_named(entry.name)
        if name and name != REFUSED:
            files = logs.get(name) or FileStamps()
            is_sealed = entry.name.endswith(foreign.SEALED)
            if files.add(entry, SEALED_MARK if is_sealed else ""):
                logs[name] = files
                if not is_sealed:
                    remembered.unsealed_since = min(remembered.unsealed_since, files.modified)
    _mark_branches(logs)
    if remembered.is_as_it_was(folder, [log.stamp for log in logs.values()], None, logs):
        return
    for name, files in logs.items():
        path = f"{folder}/{name}.jsonl"
        yield Source(path, None, path, name, files.modified, files.size, files.stamp)


def _mark_branches(logs: Mapping[str, FileStamps]) -> None:
    """Mark each branch with the number of older logs of the same root: a branch is read together with the log it
    continues from, which is one of them."""
    branches = {name: branch for name in logs if (branch := _branch_of(name))}
    numbers: dict[str, list[int]] = {}
    for root, number in branches.values():
        numbers.setdefault(root, [0] if root in logs else []).append(number)
    for them in numbers.values():
        them.sort()
    for name, (root, number) in branches.items():
        logs[name].stamp += f"after {bisect_left(numbers[root], number)};"


def _branch_of(name: str) -> tuple[str, int] | None:
    root, mark, number = name.rpartition("_b")
    return (root, int(number)) if mark and number.isdecimal() and len(number) < LONGEST_NUMBER else None


LONGEST_NUMBER = 10  # digits
SEALED_MARK = "z"  # the mark before the stamp of a sealed part


def is_only_sealed(stamp: str, before: str) -> bool:
    """Whether a log is unchanged, except for parts that were sealed: these keep their time."""
    now, then = stamp.split(";"), before.split(";")
    return len(now) == len(then) and all(
        stamp == old or (stamp[:1] == SEALED_MARK != old[:1] and stamp.rpartition(":")[2] == old.rpartition(":")[2])
        for stamp, old in zip(now, then, strict=True)
    )


def hooked_sessions(home: Path, remembered: StampCache) -> Iterator[Source]:
    """Find events of hooks, by day and session. Files are added and removed, and never change: while the folder is
    unchanged, its files are not looked at."""
    for folder in day_folders(home):
        stat = stat_of(folder)
        if stat is None:
            continue
        settled = time.time() - stat.st_mtime > SETTLED_SECONDS
        entries = [] if settled else entries_in(folder)
        look = [f"{stat.st_ino}:{stat.st_mtime_ns}", *(entry.name for entry in entries)]
        if not remembered.is_as_it_was(folder, look, None, ()):
            yield from _hooks_in(folder, entries or entries_in(folder))


def _hooks_in(folder: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[Source]:
    files_by_name: dict[str, FileStamps] = {}
    for entry in entries:
        if tag := tag_in(entry.name):
            files_by_name.setdefault(tag, FileStamps()).add(entry, entry.name)
    for tag, files in files_by_name.items():
        path = f"{folder}/{tag}"
        yield Source(f"{path}#hooks", None, path, tag, files.modified, files.size, str(hashed(files.stamp)))
