"""Which processes live: those of a run, known by the token in their environment, and those of a shell's session."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
PS_SECONDS = 5.0


def start_time(pid: int) -> str | None:
    """When a process started, in any form that tells it from a later one of the same number. `None` if there is none.
    Raises `OSError`."""
    if not sys.platform.startswith("linux"):
        return _ps("lstart=", "-p", str(pid)).strip() or None
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def process_with(text: str) -> int | None:
    """Return a process of ours that has this text in the environment that it was started with. Raises `OSError`."""
    if not sys.platform.startswith("linux"):
        return _pid_beside(text, _ps("pid=,command=", "-axEww"))
    return next((pid for pid in _pids() if text.encode() in _environment(pid)), None)


def _pid_beside(text: str, listing: str) -> int | None:
    """Return the process with this text in its row. A variable of several lines continues its process's row."""
    pid: int | None = None
    for line in listing.splitlines():
        number, _, _ = line.strip().partition(" ")
        pid = int(number) if number.isdecimal() and number.isascii() else pid
        if text in line:
            return pid
    return None


def process_in_session(session: int) -> int | None:
    """Return a process of this session; its leader if that one lives."""
    return next((pid for pid in [session, *_pids()] if _session_of(pid) == session), None)


def _environment(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended, or is another user's
        return b""


def _session_of(pid: int) -> int | None:
    with suppress(OSError):
        return os.getsid(pid)
    return None


def _pids() -> list[int]:
    if sys.platform.startswith("linux"):
        names = os.listdir(_PROC)
    else:
        names = _ps("pid=", "-ax").split()
    return [int(name) for name in names if name.isdecimal()]


def _ps(columns: str, *options: str) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        command = ["ps", *options, "-o", columns]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PS_SECONDS).stdout
    return ""
