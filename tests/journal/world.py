"""A log of one session, and a clock that a test sets. `logs.py` has exchanges, and what was acknowledged."""

from pathlib import Path

from agent_logger.clock import Clock
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import AnyRecord, Resume, SessionStart
from agent_logger.protocols.jsonl import Damage, Torn

NAME = "20261115_084532_1f320356"


def start(session: str = "1f320356") -> SessionStart:
    return SessionStart(
        session_id=session,
        ts="2026-11-15T08:45:32.000Z",
        model="claude-haiku-4-5",
        cwd="/work",
        tools_available=[],
        permission_mode=None,
    )


def note(text: str, ts: str = "2026-11-15T08:45:33.000Z") -> Resume:
    """The shortest record there is, with something to know it by."""
    return Resume(session_id=text, ts=ts)


def records_in(folder: Path, name: str = NAME) -> list[AnyRecord]:
    """The records of a log; fails the test if anything in it cannot be read."""
    found = [item.value for item in read_log(folder, name)]
    assert not [it for it in found if isinstance(it, Damage)]
    return [it for it in found if not isinstance(it, Damage | Torn)]


def notes_in(folder: Path, name: str = NAME) -> list[str]:
    return [it.session_id or "" for it in records_in(folder, name) if isinstance(it, Resume)]


class FakeTime:
    """A clock that a test sets."""

    def __init__(self, wall: float = 1_800_000_000.0) -> None:
        self.wall, self.monotonic = wall, 1000.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    @property
    def clock(self) -> Clock:
        return Clock(wall=lambda: self.wall, monotonic=lambda: self.monotonic)
