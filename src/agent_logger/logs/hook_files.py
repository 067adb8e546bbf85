"""The files of hooks, one for each call: `<home>/hooks/YYYYMMDD/HHMMSS.mmm-<8 hex>-<session>.json`, in UTC.

So the names say which files belong to a session, and none is opened to find them. An id that cannot be a name is
replaced by its hash; without an id, the name ends before it.

A hook imports this, and an agent waits for it: so it imports next to nothing.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from agent_logger.model.ids import UUID

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FILE = re.compile(r"[0-9]{6}\.[0-9]{3}-[0-9a-f]{8}-(?P<tag>[A-Za-z0-9][A-Za-z0-9._-]{0,63})\.json")
_DAY = re.compile(r"[0-9]{8}")


def hooks_path(home: Path) -> Path:
    return home / "hooks"


def file_of(hooks: Path, now: float, session: str | None) -> Path:
    """Return where to write the input of a hook that is called now."""
    day, clock = time.strftime("%Y%m%d %H%M%S", time.gmtime(now)).split()
    tag = f"-{tag_of(session)}" if session else ""
    return hooks / day / f"{clock}.{int(now * 1000) % 1000:03}-{os.urandom(4).hex()}{tag}.json"


def tag_of(session: str) -> str:
    """Return what stands for a session in the names of files."""
    if SAFE.fullmatch(session):
        return session
    import hashlib  # rarely needed, and slow to import

    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def session_named(session: object, transcript: object) -> str | None:
    """Return the session that an agent names to its hook, by `session_id` and `transcript_path`. After a fork the id
    may be that of the session it was forked from: the name of the transcript is more reliable."""
    if isinstance(transcript, str):
        stem, _, kind = os.path.basename(transcript).rpartition(".")
        if kind == "jsonl" and UUID.fullmatch(stem):
            return stem
    return session if isinstance(session, str) and session else None


def day_folders(home: Path) -> list[str]:
    try:
        with os.scandir(hooks_path(home)) as entries:
            return sorted(
                entry.path for entry in entries if _DAY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except OSError:  # none yet, or not ours to read
        return []


def tag_in(name: str) -> str | None:
    """Return the tag in the name of a file; None if it is not a hook's, or if the hook named no session."""
    match = _FILE.fullmatch(name)
    return match["tag"] if match else None


def files_with(folder: Path, tag: str) -> Iterator[Path]:
    """Yield the files of one session on one day, in the order they were written."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (folder / name for name in names if tag_in(name) == tag)
