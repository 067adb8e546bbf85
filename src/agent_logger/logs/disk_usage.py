"""How much disk space logs use, by kind of file."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from agent_logger.files.parts import is_live, part_of


class FolderUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a folder and all below it, by the length of files, not by blocks."""

    path: str
    logs: int
    plain_bytes: int
    sealed_bytes: int
    live_bytes: int
    body_bytes: int
    other_bytes: int  # indexes, the spool, keys, settings
    free_bytes: int  # of the disk it is on

    @property
    def total_bytes(self) -> int:
        return self.plain_bytes + self.sealed_bytes + self.live_bytes + self.body_bytes + self.other_bytes


def outermost(folders: Iterable[Path]) -> list[Path]:
    """Return the folders that exist, without those within another of them, so that everything counts once."""
    there = {folder.resolve(): folder for folder in folders if os.path.isdir(folder)}
    return [path for real, path in there.items() if not any(other in real.parents for other in there)]


def folder_usage(path: Path) -> FolderUsage:
    """Return the usage of a folder. Links are not followed. Files that are deleted meanwhile are not counted."""
    sizes = dict.fromkeys(("plain", "sealed", "live", "body", "other"), 0)
    logs = set()
    for file, size in _files(path):
        kind = _kind(file)
        sizes[kind] += size
        if kind in ("plain", "sealed") and (part := part_of(file)):
            logs.add((part.folder, part.name))
    return FolderUsage(
        path=str(path),
        logs=len(logs),
        **{f"{kind}_bytes": size for kind, size in sizes.items()},
        free_bytes=shutil.disk_usage(path).free,
    )


def _files(path: Path) -> Iterator[tuple[Path, int]]:
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder) / name
            try:
                yield file, file.lstat().st_size
            except FileNotFoundError:
                continue


def _kind(file: Path) -> str:
    if file.parent.name.endswith(".bodies"):
        return "body"
    if part_of(file) is None or ".spool" in file.parts:
        return "other"
    if file.suffix == ".zst":
        return "sealed"
    return "live" if is_live(file) else "plain"
