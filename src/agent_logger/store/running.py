"""Which sessions of Claude Code are open just now: the client notes in `sessions/<pid>.json` what it is at.

A hint, and no more: the note is left behind by a kill, and the number of a process is used again. So it counts if the
process lives and, where both can be told, began when the note says. What else lies in that folder is not looked at: the
client keeps keys there.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_logger.store import foreign

MOST_BYTES = 1 << 16
_NOTE = re.compile(r"[1-9][0-9]{0,9}\.json")


class _Note(msgspec.Struct, rename="camel"):
    pid: int = 0
    session_id: str = ""
    proc_start: str | None = None


_note = msgspec.json.Decoder(_Note)


def running_sessions(roots: Iterable[Path]) -> set[str]:
    """Their ids, over all configuration folders."""
    notes = (_read(path) for root in roots for path in _notes(root / "sessions"))
    return {note.session_id for note in notes if note.session_id and _lives(note)}


def _notes(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(it.path) for it in entries if _NOTE.fullmatch(it.name)]
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
    """In ticks since the system did, as the client notes it. None where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]  # the name in front may hold anything
