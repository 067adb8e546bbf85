"""One proxy per log folder: the proxy that records to a folder owns it."""

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.home import layout
from agent_logger.proxy.spool.folder import make_spool_folder, spool_folder


class FolderOwnedError(StoreError):
    """Another process records to the folder."""


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    port: int | None = None


class Owner:
    """The ownership of a log folder by the proxy that records to it."""

    def __init__(self, held: platform.Held) -> None:
        self._held = held
        self._port: int | None = None
        self._lock = threading.Lock()
        self._write_holder()

    def listening(self, port: int) -> None:
        self._port = port
        self._write_holder()

    def stay(self) -> None:
        """Take the folder over again if it was removed or moved away; make it if there is none in its place.

        Raises `OSError`.
        """
        with self._lock:
            if platform.is_same_file(self._held):
                return
            make_spool_folder(self._held.path.parent)
            held = platform.open_file(self._held.path, create=True, top=self._held.path.parent.parent)
            if not platform.lock(held):  # another proxy was quicker, and it is theirs
                held.close()
                return
            self._held.close()
            self._held = held
            self._write_holder()

    def _write_holder(self) -> None:
        os.ftruncate(self._held.fd, 0)
        self._held.write(msgspec.json.encode(_Holder(os.getpid(), self._port)))

    def close(self) -> None:
        self._held.close()


def own(log_dir: Path, folders: Sequence[str] = ()) -> Owner:
    """Become the one proxy of a log folder. Raises `StoreError`, which names the proxy that owns it.

    `folders`: those that will be written to. The log folder may be a link, for the user chose it; these may not: a
    repository can contain such links.
    """
    layout.prepare_log_folder(log_dir)
    folder = spool_folder(log_dir)
    for link in _links(log_dir, [folder.name, *folders]):
        raise StoreError(f"{link} is a symbolic link; remove it, or choose another log folder")
    for path in _special_files(folder):
        raise StoreError(f"{path} is not a regular file; remove it, or choose another log folder")
    path = folder / "owner"
    try:
        make_spool_folder(folder)
        held = platform.open_or_create(path, log_dir)
        if platform.lock(held):
            return Owner(held)
        holder = msgspec.json.decode(os.pread(held.fd, 1000, 0), type=_Holder)
    except platform.NoLocksError:
        raise StoreError(f"{log_dir} is on a file system without locks; choose another folder") from None
    except ValueError:
        holder = _Holder(0)
    except OSError as error:
        raise StoreError(f"cannot use {folder}: {error.strerror}; choose another folder") from error
    where = f" on port {holder.port}" if holder.port else ", which is not listening yet,"
    raise FolderOwnedError(
        f"process {holder.pid}{where} is already recording to {log_dir}; use that one, or another folder"
    )


def _special_files(folder: Path) -> list[Path]:
    """FIFOs, sockets and devices among the files of the spool: a reader of one may wait for ever."""
    if not folder.is_dir():
        return []
    modes = {path: os.lstat(path).st_mode for path in sorted(folder.iterdir())}
    return [
        path for path, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
    ]


def _links(log_dir: Path, folders: Sequence[str]) -> Iterator[Path]:
    """Yield our folders that are links, and the bodies folders in them that are."""
    for folder in (log_dir / name for name in folders):
        if folder.is_symlink():
            yield folder
        elif folder.is_dir():
            with os.scandir(folder) as inner:
                yield from (
                    Path(entry.path) for entry in inner if entry.name.endswith(".bodies") and entry.is_symlink()
                )
