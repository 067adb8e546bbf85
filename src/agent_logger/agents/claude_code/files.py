"""Where Claude Code keeps sessions, in all layouts that it ever had or was said to have.

`projects/<folder of the project>/<id>.jsonl`, and `projects/<id>.jsonl` and `sessions/<id>.jsonl` of old
descriptions. Whose project a session is says `cwd` in its records: names of folders are lossy. Files of sub-agents
are no sessions. Nothing here follows a link, or opens what is not a plain file.
"""

import base64
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

LONGEST_FOLDER = 200  # then the client cuts, and appends a hash
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class SessionFile(NamedTuple):
    path: Path
    id: str
    modified: float
    size: int


def is_id(text: str) -> bool:
    """Whether it can name a session: never a path, never a sub-agent."""
    return _ID.fullmatch(text) is not None and not text.startswith("agent-")


def session_files(root: Path) -> Iterator[SessionFile]:
    """All sessions below a configuration folder of the client, in no order."""
    for folder in _folders(root):
        for entry in _entries(folder):
            name, end = os.path.splitext(entry.name)
            if end == ".jsonl" and is_id(name) and (file := _session_file(entry, name)):
                yield file


def find(roots: Iterable[Path], session: str, repo_root: Path | None = None) -> list[SessionFile]:
    """Every file of that session, those of the repository first, then the newest. `ValueError`: not an id."""
    if not is_id(session):
        raise ValueError(f"{session!r} is not a session id")
    hits = {file.path: file for root in roots for file in _named(root, session)}
    own = project_folders(repo_root) if repo_root else ()
    return sorted(
        hits.values(), key=lambda file: (file.path.parent.name not in own, -file.modified, str(file.path))
    )


def project_folders(cwd: Path) -> tuple[str, ...]:
    """The names that a project's folder may have: by the client's rule, by older ones."""
    real = unicodedata.normalize("NFC", os.path.realpath(cwd))
    dashed = re.sub(r"[/.]", "-", real)
    encoded = base64.urlsafe_b64encode(real.encode("utf-8", "surrogateescape")).decode().rstrip("=")
    return tuple(dict.fromkeys((folder_name(real), dashed, dashed.removeprefix("-"), encoded)))


def folder_name(path: str) -> str:
    """The client's own rule; `path` is real and normalised."""
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2)]
    name = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)
    if len(name) <= LONGEST_FOLDER:
        return name
    return f"{name[:LONGEST_FOLDER]}-{_base36(_hash(codes))}"


def _hash(codes: Iterable[int]) -> int:
    """As Java hashes a string, without its sign."""
    value = 0
    for code in codes:
        value = (31 * value + code) & 0xFFFFFFFF
    return (1 << 32) - value if value >> 31 else value


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _named(root: Path, session: str) -> Iterator[SessionFile]:
    for folder in _folders(root):
        for entry in _entries(folder, f"{session}.jsonl"):
            if file := _session_file(entry, session):
                yield file


def _folders(root: Path) -> Iterator[Path]:
    yield root / "sessions"
    yield root / "projects"
    for entry in _entries(root / "projects"):
        if entry.is_dir(follow_symlinks=False):
            yield Path(entry.path)


def _entries(folder: Path, only: str | None = None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if only in (None, entry.name)]
    except OSError:  # not there, not a folder, not ours to read
        return []


def _session_file(entry: os.DirEntry[str], name: str) -> SessionFile | None:
    try:
        if not entry.is_file(follow_symlinks=False):
            return None
        status = entry.stat(follow_symlinks=False)
    except OSError:  # it has just been removed
        return None
    return SessionFile(Path(entry.path), name, status.st_mtime, status.st_size)
