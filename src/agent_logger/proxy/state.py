"""The state files: a small file in the home for each proxy, and for each page, that runs.

The file is locked for as long as its process lives. So a file that can be locked was left by a process that died, and
the process that finds it removes it.

A proxy that was started for one agent may be used by others. Those share a lock on a second file, and the proxy, when
its own agent has ended, waits until it has that lock alone.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger import platform

_SUFFIX = ".json"
_LOOK_SECONDS = 0.1


class ProxyState(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a proxy's state file."""

    pid: int
    started: str
    port: int
    log_dir: str
    version: str
    upstream_proxy: str | None = None
    allow_upstream: tuple[str, ...] = ()  # origins that it may call besides the known providers


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    started: str
    port: int
    version: str


S = TypeVar("S", ProxyState, PageState)
_PREFIXES: dict[type[ProxyState] | type[PageState], str] = {ProxyState: "proxy-", PageState: "page-"}


def state_path(home: Path, pid: int) -> Path:
    """The path of a proxy's state file."""
    return _path(home, ProxyState, pid)


class Announcement:
    """The state file of this process. Close it to remove the file."""

    def __init__(self, home: Path, state: ProxyState | PageState) -> None:
        platform.make_folder(home)
        path = _path(home, type(state), state.pid)
        hidden = path.with_name(
            f".{path.name}"
        )  # until it is locked: a process that looked before would remove it
        hidden.unlink(missing_ok=True)
        self._held = platform.open_file(hidden, create=True)
        platform.lock(self._held)
        self._held.write(msgspec.json.encode(state) + b"\n")
        os.rename(hidden, path)
        self._held.path = path

    def close(self) -> None:
        _remove(self._held.path)
        self._held.close()


def running(home: Path) -> list[ProxyState]:
    """The proxies that run now."""
    return _running(home, ProxyState)


def running_pages(home: Path) -> list[PageState]:
    return _running(home, PageState)


def _path(home: Path, kind: type[ProxyState] | type[PageState], pid: int) -> Path:
    return home / f"{_PREFIXES[kind]}{pid}{_SUFFIX}"


def _running(home: Path, kind: type[S]) -> list[S]:
    states = (_read(path, kind) for path in sorted(home.glob(f"{_PREFIXES[kind]}*{_SUFFIX}")))
    return [state for state in states if state]


def _read(path: Path, kind: type[S]) -> S | None:
    try:
        held = platform.open_file(path)
    except OSError:
        return None
    try:
        if platform.lock(held):
            _remove(path)
            return None
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        held.close()


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)  # first: a process that comes later and finds no users finds no proxy either
    pid = path.name.removesuffix(_SUFFIX).rpartition("-")[2]
    _users_path(path.parent, pid).unlink(missing_ok=True)


# ---------------------------------------------------------------- a proxy that others use, too


@contextmanager
def using(home: Path, state: ProxyState) -> Iterator[bool]:
    """Use a proxy. Yields whether it stays until this is left; `False` if it is about to end."""
    users = _users(home, state.pid)
    try:
        yield platform.lock(users, shared=True) and state in running(home)
    finally:
        users.close()


def is_used(home: Path, pid: int) -> bool:
    """Whether others than the agent it was started for use a proxy."""
    users = _users(home, pid)
    try:
        return not platform.lock(users) and platform.lock(users, shared=True)
    finally:
        users.close()


def until_unused(home: Path, pid: int) -> platform.Held:
    """Wait until nobody uses the proxy. As long as the returned file is held, nobody can begin to."""
    users = _users(home, pid)
    while not platform.lock(users):
        time.sleep(_LOOK_SECONDS)
    return users


def _users(home: Path, pid: int) -> platform.Held:
    path = _users_path(home, str(pid))
    try:
        return platform.open_file(path, create=True)
    except FileExistsError:
        return platform.open_file(path)


def _users_path(home: Path, pid: str) -> Path:
    return home / f".users-{pid}"
