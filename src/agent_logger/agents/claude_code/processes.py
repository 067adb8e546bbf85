"""Sessions of Claude Code that are open now: the client notes its current session in `sessions/<pid>.json`.

The note is only a hint: a killed client leaves it behind, and process ids are reused. So a note counts if the process
is alive and, where both start times are known, started when the note says. Nothing else in that folder is read: the
client keeps keys there.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_logger.agents.running import NotedSessions
from agent_logger.files import foreign

MOST_BYTES = 1 << 16
_NOTE = re.compile(r"[1-9][0-9]{0,9}\.json")


class _Note(msgspec.Struct, rename="camel"):
    pid: int = 0
    session_id: str = ""
    proc_start: str | None = None


_note = msgspec.json.Decoder(_Note)


def noted_sessions(roots: Iterable[Path]) -> NotedSessions:
    folders = [root / "sessions" for root in roots]
    notes = [note for folder in folders for path in _notes(folder) if (note := _read(path)).session_id]
    running = frozenset(note.session_id for note in notes if _lives(note))
    killed = frozenset(note.session_id for note in notes) - running
    changes = [time for time in map(_changed, folders) if time is not None]
    return NotedSessions(running, killed, max(changes, default=None))


def _changed(folder: Path) -> float | None:
    try:
        return folder.stat().st_mtime
    except OSError:
        return None


def _notes(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if _NOTE.fullmatch(entry.name)]
    except OSError:  # not there, or not ours to read
        return []


def _read(path: Path) -> _Note:
    try:
        note = _note.decode(foreign.text(path, MOST_BYTES) or "")
    except (ValueError, RecursionError):
        return _Note()
    return note if str(note.pid) == path.stem else _Note()


def _lives(note: _Note) -> bool:
    try:
        os.kill(note.pid, 0)
    except PermissionError:
        pass  # another user's, but there
    except (OSError, OverflowError):
        return False
    began = _began(note.pid)
    return began is None or note.proc_start in (None, began)


def _began(pid: int) -> str | None:
    """Return when the process started, in ticks since the system started, as the client notes it. None where the system
    does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]  # the name in front may hold anything
