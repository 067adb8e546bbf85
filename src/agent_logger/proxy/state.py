"""The state files: a small file in the home for each proxy, and for each page, that runs.

The file is locked for as long as its process lives. So a file that can be locked was left by a process that died, and
the process that finds it removes it.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger import platform

_SUFFIX = ".json"


class ProxyState(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a proxy's state file."""

    pid: int
    started: str
    port: int
    log_dir: str
    version: str
    upstream_proxy: str | None = None
    allow_upstream: tuple[str, ...] = ()  # origins that it may call besides the known providers
    socket: str | None = None  # where runs register; none: an older version, with which they cannot
    has_forward_door: bool = False  # whether it takes CONNECT, with the token of a run


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    started: str
    port: int
    version: str
    homes: tuple[str, ...] = ()  # that it shows, where these are not the own home alone


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
        # Hidden until it is locked: a process that looked before would remove it.
        hidden = path.with_name(f".{path.name}")
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
    with held, suppress(OSError, ValueError):
        if not platform.lock(held):
            return msgspec.json.decode(path.read_bytes(), type=kind)
        _remove(path)
    return None


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_suffix(".sock").unlink(missing_ok=True)
