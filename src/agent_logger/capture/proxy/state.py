"""Who is running: a small file in the home for each proxy, and for each page.

The file is locked for as long as its process lives, so one that can be locked was left by a process that
died, and is removed by whoever finds it.
"""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger.store import platform

_SUFFIX = ".json"


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Of a proxy."""

    pid: int
    started: str
    port: int
    log_dir: str
    version: str
    upstream_proxy: str | None = None


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    started: str
    port: int
    version: str


S = TypeVar("S", State, PageState)
_PREFIXES: dict[type[State] | type[PageState], str] = {State: "proxy-", PageState: "page-"}


def state_path(home: Path, pid: int) -> Path:
    """Of a proxy."""
    return _path(home, State, pid)


class Announcement:
    """The file of this process. Close it to take it away."""

    def __init__(self, home: Path, state: State | PageState) -> None:
        platform.make_folder(home)
        path = _path(home, type(state), state.pid)
        hidden = path.with_name(f".{path.name}")  # until it is locked: whoever looked before would remove it
        hidden.unlink(missing_ok=True)
        self._held = platform.open_file(hidden, create=True)
        platform.lock(self._held)
        self._held.write(msgspec.json.encode(state) + b"\n")
        os.rename(hidden, path)
        self._held.path = path

    def close(self) -> None:
        self._held.path.unlink(missing_ok=True)
        self._held.close()


def running(home: Path) -> list[State]:
    """The proxies that run now."""
    return _running(home, State)


def running_pages(home: Path) -> list[PageState]:
    return _running(home, PageState)


def _path(home: Path, kind: type[State] | type[PageState], pid: int) -> Path:
    return home / f"{_PREFIXES[kind]}{pid}{_SUFFIX}"


def _running(home: Path, kind: type[S]) -> list[S]:
    found = (_read(path, kind) for path in sorted(home.glob(f"{_PREFIXES[kind]}*{_SUFFIX}")))
    return [state for state in found if state]


def _read(path: Path, kind: type[S]) -> S | None:
    try:
        held = platform.open_file(path)
    except OSError:
        return None
    try:
        if platform.lock(held):
            path.unlink(missing_ok=True)
            return None
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        held.close()
