"""Who is recording: a small file in the home for each proxy that runs.

The file is locked for as long as its process lives, so one that can be locked was left by a process that
died, and is removed by whoever finds it.
"""

from pathlib import Path

import msgspec

from agent_logger.store import platform

_PREFIX, _SUFFIX = "proxy-", ".json"


class State(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    started: str
    port: int
    log_dir: str
    version: str
    upstream_proxy: str | None = None


def state_path(home: Path, pid: int) -> Path:
    return home / f"{_PREFIX}{pid}{_SUFFIX}"


class Announcement:
    """The file of this process. Close it to take it away."""

    def __init__(self, home: Path, state: State) -> None:
        platform.make_folder(home)
        path = state_path(home, state.pid)
        path.unlink(missing_ok=True)
        self._held = platform.open_file(path, create=True)
        platform.lock(self._held)
        self._held.write(msgspec.json.encode(state) + b"\n")

    def close(self) -> None:
        self._held.path.unlink(missing_ok=True)
        self._held.close()


def running(home: Path) -> list[State]:
    """The proxies that run now."""
    found = (_read(path) for path in sorted(home.glob(f"{_PREFIX}*{_SUFFIX}")))
    return [state for state in found if state]


def _read(path: Path) -> State | None:
    try:
        held = platform.open_file(path)
    except OSError:
        return None
    try:
        if platform.lock(held):
            path.unlink(missing_ok=True)
            return None
        return msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        held.close()
