"""What the hub keeps: objects with a name and content that never changes. They are the truth; the rest is made from
them."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agent_logger import platform

MOST_NAME_LENGTH = 512
MOST_PART_LENGTH = 128
MOST_SYNCED = 10_000  # folders that are remembered
_PART = re.compile(rf"[0-9A-Za-z_-][0-9A-Za-z._-]{{0,{MOST_PART_LENGTH - 1}}}")


def check_name(name: str) -> None:
    """Raise `ValueError` if a store might refuse the name, or take it for another one."""
    if len(name) > MOST_NAME_LENGTH or not all(_PART.fullmatch(part) for part in name.split("/")):
        raise ValueError(f"{name!r} is not the name of an object")


def is_head(name: str) -> bool:
    """Whether it is an object without which nothing is made of those beside it. It is deleted before them, so that what
    a crash in the middle leaves does not count."""
    return name.endswith("/head.json")


class ObjectStore(Protocol):
    """A place for objects. Names have parts, separated by `/`; no object is below another one. Several threads and
    processes may use it. What cannot be done now raises `OSError`."""

    def create(self, name: str, data: bytes, /) -> bool:
        """Store an object, which is on the device then. Returns `False`, and changes nothing, if there is one of that
        name."""

    def read(self, name: str, /) -> bytes:
        """Return the content. Raises `FileNotFoundError`."""

    def names(self, prefix: str, /) -> Iterator[str]:
        """Yield the names of all objects below a prefix, which is a name's first parts, in no particular order."""

    def delete(self, prefix: str, /) -> None:
        """Delete the object of this name, or all below it."""


class MemoryStore:
    """Objects in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def create(self, name: str, data: bytes) -> bool:
        check_name(name)
        with self._lock:
            if name in self.objects:
                return False
            self.objects[name] = data
            return True

    def read(self, name: str) -> bytes:
        check_name(name)
        try:
            return self.objects[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def names(self, prefix: str) -> Iterator[str]:
        if prefix:
            check_name(prefix)
        yield from [name for name in list(self.objects) if _is_below(name, prefix)]

    def delete(self, prefix: str) -> None:
        check_name(prefix)
        for name in [name for name in self.objects if name == prefix or _is_below(name, prefix)]:
            del self.objects[name]


def _is_below(name: str, prefix: str) -> bool:
    return not prefix or name.startswith(f"{prefix}/")


class FolderStore:
    """Objects as files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        platform.make_folder(folder)
        platform.sync_folder(folder.parent)
        self._synced: set[Path] = set()  # folders whose own entries are on the device

    def create(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        if path.exists():
            return False
        changed = self._changed_folders(path.parent)
        platform.make_folder(path.parent, self.folder)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
        with platform.open_file(temporary, create=True, top=self.folder) as file:
            try:
                file.write(data)
                platform.sync(file.fd)
                os.link(temporary, path)
            except FileExistsError:
                return False
            finally:
                temporary.unlink()
        for folder in changed:
            platform.sync_folder(folder)
        if len(self._synced) > MOST_SYNCED:
            self._synced.clear()
        self._synced.update(changed)
        return True

    def read(self, name: str) -> bytes:
        with platform.open_file(self._path(name)) as file:
            return os.pread(file.fd, file.size(), 0)

    def names(self, prefix: str) -> Iterator[str]:
        top = self._path(prefix) if prefix else self.folder
        for inside, _, names in os.walk(top):
            for name in names:
                if not name.startswith("."):
                    yield Path(inside, name).relative_to(self.folder).as_posix()

    def delete(self, prefix: str) -> None:
        path = self._path(prefix)
        for name in sorted(self.names(prefix), key=is_head, reverse=True):
            Path(self.folder, name).unlink(missing_ok=True)
        if path.is_dir():
            _remove_folder(path)
        else:
            path.unlink(missing_ok=True)
        if path.parent.is_dir():
            platform.sync_folder(path.parent)

    def _changed_folders(self, folder: Path) -> list[Path]:
        """Return the folder, and those above it that have a new entry: also one that another thread or process has
        made, and not synced yet."""
        changed = [folder]
        while folder != self.folder and (folder not in self._synced or not folder.exists()):
            folder = folder.parent
            changed.append(folder)
        return changed

    def _path(self, name: str) -> Path:
        check_name(name)
        return self.folder.joinpath(*name.split("/"))


def _remove_folder(folder: Path) -> None:
    """Remove a folder, with what a crash has left in it. Others may do the same."""
    for inside, _, names in os.walk(folder, topdown=False):
        for name in names:
            Path(inside, name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            os.rmdir(inside)
