"""What a machine knows of the hub that it has joined: `<home>/device-token`, and the state of its pushes."""

from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.clock import CLOCK
from agent_logger.errors import AgentLoggerError, StoreError
from agent_logger.home.small_files import read_small_file

TOKEN_FILE = "device-token"
FOLDER = "push"
STATUS_FILE = "status.json"
PAUSE_FILE = "paused"
MOST_BYTES = 64 << 10


class NotJoinedError(AgentLoggerError):
    """No hub was joined by this machine."""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The hub that this machine has joined, and its token there."""

    url: str
    token: str
    device: str
    person: str
    machine: str


class PushStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the last push went."""

    at: str | None = None  # when it ended
    succeeded_at: str | None = None  # when the last one ended that sent everything
    error: str | None = None  # of the last one
    sessions: int = 0  # that are shared
    waiting: int = 0  # sessions that were not sent completely


def push_folder(home: Path) -> Path:
    return home / FOLDER


def membership(home: Path) -> Membership | None:
    """Return the hub that was joined; None if there is none."""
    try:
        return msgspec.json.decode(read_small_file(home / TOKEN_FILE, MOST_BYTES), type=Membership)
    except (ValueError, RecursionError):
        return None


def joined(home: Path) -> Membership:
    """Return the hub that was joined. Raises `NotJoinedError`."""
    if member := membership(home):
        return member
    raise NotJoinedError("this machine has not joined a hub; 'agent-logger join URL' does so")


def note_membership(home: Path, member: Membership) -> None:
    """Write down the hub and the token, readable by the owner alone. Raises `StoreError`."""
    try:
        platform.make_folder(home)
        platform.replace_file(home / TOKEN_FILE, msgspec.json.encode(member) + b"\n", synced=True)
    except OSError as error:
        raise StoreError(f"cannot write {home / TOKEN_FILE}: {error.strerror}") from error


def forget_membership(home: Path) -> None:
    """Delete the token, and what was remembered of pushes. Raises `StoreError`."""
    try:
        (home / TOKEN_FILE).unlink(missing_ok=True)
        for path in push_folder(home).glob("*"):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot delete {home / TOKEN_FILE}: {error.strerror}") from error


def status_of(home: Path) -> PushStatus:
    try:
        return msgspec.json.decode(read_small_file(push_folder(home) / STATUS_FILE, MOST_BYTES), type=PushStatus)
    except (ValueError, RecursionError):
        return PushStatus()


def note_status(home: Path, *, error: str | None, sessions: int, waiting: int) -> None:
    now = CLOCK.now()
    before = status_of(home)
    status = PushStatus(
        at=now,
        succeeded_at=before.succeeded_at if error else now,
        error=error,
        sessions=sessions,
        waiting=waiting,
    )
    platform.make_folder(push_folder(home))
    platform.replace_file(push_folder(home) / STATUS_FILE, msgspec.json.encode(status))


def is_paused(home: Path) -> bool:
    return (push_folder(home) / PAUSE_FILE).exists()


def pause(home: Path, *, paused: bool) -> None:
    """Pause or resume the pushes of `start` and the service."""
    path = push_folder(home) / PAUSE_FILE
    if not paused:
        path.unlink(missing_ok=True)
        return
    platform.make_folder(path.parent)
    platform.replace_file(path, b"")
