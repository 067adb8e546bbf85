"""What differs between systems: locks, sync, modes, and what a fork does to open files.

Everything the store keeps open is a `Held`, so that a forked child can let go of all of it at once:
a lock would otherwise outlive its owner for as long as the child runs.
"""

import errno
import fcntl
import os
import random
import stat
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol, Self

FILE_MODE = 0o600
FOLDER_MODE = 0o700
LOW_SPACE_BYTES, LOW_SPACE_SHARE = 512 << 20, 0.05  # warn below the smaller of the two

_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_held: "weakref.WeakSet[Held]" = weakref.WeakSet()


class Held:
    """An open file of ours. It is closed, at the latest, when it is garbage-collected."""

    def __init__(self, fd: int, path: Path) -> None:
        self.fd, self.path = fd, path
        _held.add(self)

    def write(self, data: bytes) -> None:
        """All of it, or an `OSError`; short writes are continued."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class Forked(Protocol):
    def after_fork(self) -> None:
        """Reset the object in the forked child. The child has one thread: a lock that another thread held would stay
        locked for ever."""


_forked: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def on_fork(whom: Forked) -> None:
    """Call the object's `after_fork` in every forked child, for as long as the object lives."""
    _forked.add(whom)


def _reset_child() -> None:
    for held in list(_held):
        held.close()
    for owner in list(_forked):
        owner.after_fork()


os.register_at_fork(after_in_child=_reset_child)


class LinkError(OSError):
    """A folder of ours is a link, or a file has another name: what is behind it may be anybody's."""

    def __init__(self, path: Path, what: str = "is a symbolic link") -> None:
        super().__init__(errno.ELOOP, f"{path} {what}; remove it")


@contextmanager
def _opened_folder(path: Path, top: Path) -> Iterator[int]:
    """Open a folder, and yield its descriptor. `top` may be a link, for the user chose it; nothing below it may. Raises
    `LinkError`."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    fd, path_so_far = os.open(top, flags), top
    try:
        for name in path.relative_to(top).parts:
            above, path_so_far = fd, path_so_far / name
            try:
                fd = os.open(name, flags | os.O_NOFOLLOW, dir_fd=above)
            except OSError as error:
                raise LinkError(path_so_far) if _is_link(name, above) else error from None
            os.close(above)
        yield fd
    finally:
        os.close(fd)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except OSError:
        return False


def open_file(path: Path, *, create: bool = False, top: Path | None = None) -> Held:
    """Open a file for reading and appending. Never follows a link; `create` fails where the file exists.

    If `top` is given, no folder below it may be a link either, and a file with a second name is not opened:
    `LinkError`.
    """
    # A FIFO must not block us.
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    if create:
        flags |= os.O_CREAT | os.O_EXCL
    if top is None:
        held = Held(os.open(path, flags, FILE_MODE), path)
    else:
        held = Held(_open_below(path, flags, top), path)
        if os.fstat(held.fd).st_nlink > 1:
            raise LinkError(path, "has another name, a hard link")
    if create:
        os.fchmod(held.fd, FILE_MODE)  # whatever the umask took away
    elif not stat.S_ISREG(os.fstat(held.fd).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return held


def _open_below(path: Path, flags: int, top: Path) -> int:
    with _opened_folder(path.parent, top) as folder:
        try:
            return os.open(path.name, flags, FILE_MODE, dir_fd=folder)
        except OSError as error:
            if not flags & os.O_CREAT and _is_link(path.name, folder):
                raise LinkError(path) from None
            raise error from None


def open_or_create(path: Path, top: Path | None = None) -> Held:
    """Open a file as `open_file` does. It is created where it does not exist."""
    try:
        return open_file(path, create=True, top=top)
    except FileExistsError:
        return open_file(path, top=top)


class NoLocksError(Exception):
    """The file system has no locks: no process can own a file there."""


def lock(held: Held, *, shared: bool = False) -> bool:
    """Lock the file until it is closed, alone or shared with others. Returns `False` if another process holds it."""
    try:
        fcntl.flock(held.fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise NoLocksError(str(held.path)) from error
        raise
    return True


LOOK_SECONDS = 0.1  # for which a process that only looks may have the lock, on a busy machine


def lock_past_looks(held: Held) -> bool:
    """Lock the file as `lock` does, and retry while a process that only checks (`is_locked`) shares the lock for a
    moment."""
    give_up = time.monotonic() + LOOK_SECONDS
    while not lock(held):
        if not lock(held, shared=True) or time.monotonic() > give_up:
            return False  # an owner shares it with nobody
        fcntl.flock(held.fd, fcntl.LOCK_UN)
        time.sleep(random.uniform(0.0005, 0.002))  # others may try the same
    return True


def is_locked(path: Path) -> bool:
    """Whether another process owns the file just now. Where there are no locks, nobody can tell, and the answer is no.

    The check itself shares the lock for a moment; see `lock_past_looks`.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


WAIT_SECONDS = 2.0  # for others who have the folder to themselves, each for a moment, on a busy machine
_folders_held: ContextVar[frozenset[tuple[int, int]]] = ContextVar("_folders_held", default=frozenset())


@contextmanager
def exclusive_in(folder: Path) -> Iterator[None]:
    """Do something in a folder while nobody else does the same there. Nobody waits longer than `WAIT_SECONDS`: if the
    folder is missing, has no locks, or stays locked, the work is done without the lock. What is done inside may ask
    for the same folder again."""
    try:
        held = Held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), folder)
    except OSError:
        yield
        return
    with held:
        opened = os.fstat(held.fd)
        identity = (opened.st_dev, opened.st_ino)
        if identity in _folders_held.get():  # another descriptor of this process would wait for the first one
            yield
            return
        give_up = time.monotonic() + WAIT_SECONDS
        with suppress(OSError, NoLocksError):
            while not lock(held) and time.monotonic() < give_up:
                time.sleep(random.uniform(0.0005, 0.002))
        token = _folders_held.set(_folders_held.get() | {identity})
        try:
            yield
        finally:
            _folders_held.reset(token)


def sync(fd: int) -> None:
    """Sync the data: it is on the device when this returns."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_folder(path: Path) -> None:
    """Sync a folder: its new, renamed and removed names are on the device when this returns."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def is_same_file(held: Held) -> bool:
    """Whether the path still leads to the open file: the file may have been sealed, replaced or removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(held.fd), os.lstat(held.path))
    except FileNotFoundError:
        return False


def size_of(path: Path) -> int:
    """The size of a file; 0 if it is gone, for anybody may remove a file between two looks at it."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def modified_at(path: Path) -> float:
    """When a file was last modified; 0, long ago, if it is gone."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def make_folder(path: Path, top: Path | None = None) -> bool:
    """Make the folder and its parents, readable by their owner alone. Returns `False` if it existed.

    If `top` is given, no folder below it may be a link: `LinkError`.
    """
    if top is not None and path != top:
        make_folder(path.parent, top)
        with _opened_folder(path.parent, top) as above:
            try:
                os.mkdir(path.name, FOLDER_MODE, dir_fd=above)
            except FileExistsError:
                if _is_link(path.name, above):
                    raise LinkError(path) from None
                return False
            os.chmod(path.name, FOLDER_MODE, dir_fd=above)
            return True
    if path.is_dir():
        return False
    if path.parent != path:
        make_folder(path.parent)
    try:
        os.mkdir(path, FOLDER_MODE)
    except FileExistsError:
        if path.is_dir():
            return False
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
    os.chmod(path, FOLDER_MODE)
    return True


def replace_file(
    path: Path, data: bytes, *, mode: int | None = None, synced: bool = False, top: Path | None = None
) -> None:
    """Put a whole file in the place of another, so that nobody ever reads half of one. Raises `OSError`."""
    own = int.from_bytes(os.urandom(4), "big")  # other threads may replace it, too
    temporary = path.with_name(f".{path.name}.{own}")
    with open_file(temporary, create=True, top=top) as held:
        try:
            held.write(data)
            if mode is not None:
                os.fchmod(held.fd, mode)
            if synced:
                sync(held.fd)
            move_file(temporary, path, top)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def move_file(path: Path, to: Path, top: Path | None = None) -> None:
    """Move a file within a file system, and replace what is at `to`. If `top` is given, no folder below it may be a
    link."""
    if top is None:
        os.rename(path, to)
        return
    with _opened_folder(to.parent, top) as target:
        os.rename(path, to.name, dst_dir_fd=target)


def is_low_on_space(path: Path) -> bool:
    space = os.statvfs(path)
    low = min(LOW_SPACE_BYTES, LOW_SPACE_SHARE * space.f_blocks * space.f_frsize)
    return space.f_bavail * space.f_frsize < low


MACHINE_ID = Path("/etc/machine-id")


def machine_id() -> str:
    """What tells this machine from others: the id of its installation, or its name if it has none. Not for others to
    see."""
    with suppress(OSError):
        if installed := MACHINE_ID.read_bytes().strip():
            return os.fsdecode(installed)
    return os.uname().nodename


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package in a process of its own.

    Without `-P`, Python would import modules of the working folder before its own, and that folder may be anybody's
    repository.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def give_way(niceness: int) -> None:
    """Lower the priority of this thread and of all that it will start. Where the system can, the thread also never
    preempts a running program."""
    os.nice(niceness)
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MOST_IN_HEAP = 4 << 20


def keep_freed_memory(size: int) -> bool:
    """Have this process keep so much freed memory, at most, for later. `False` where we cannot tell the C library."""
    import ctypes  # few processes need it

    if not is_glibc():
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(_M_TRIM_THRESHOLD, size) and library.mallopt(_M_MMAP_THRESHOLD, _MOST_IN_HEAP))


def is_glibc() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (ValueError, OSError):
        return False
