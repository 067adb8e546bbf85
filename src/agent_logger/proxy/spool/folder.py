"""The folder of the spool: what its files are called, and its creation."""

from pathlib import Path

from agent_logger import platform
from agent_logger.files.append import append_once
from agent_logger.home import layout

# For a log folder that was there before us: it may hold others' files, so each of our own is named.
_GITIGNORE = b"""\
# What agent-logger writes here. This file is its own, too; change it as you like.
/.gitignore
/.spool/
/sessions.db*
/refused.jsonl*
/refused.p[0-9]*
/refused.bodies/
/unattributed.jsonl*
/unattributed.p[0-9]*
/*/unattributed*
/*/[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]-*
"""


def spool_folder(log_dir: Path) -> Path:
    return log_dir / ".spool"


def segment_path(folder: Path, relay: str, number: int) -> Path:
    return folder / f"{relay}.{number}.spool"


def lock_path(folder: Path, relay: str) -> Path:
    return folder / f"{relay}.lock"


def make_spool_folder(folder: Path) -> None:
    log_dir = folder.parent
    layout.make_log_folder(log_dir)
    _hide_from_git(log_dir / ".gitignore")
    platform.make_folder(folder, log_dir)
    append_once(folder / ".gitignore", b"*", log_dir)


def _hide_from_git(path: Path) -> None:
    """Write a `.gitignore`, unless one exists: that one is ours, or the user's, and stays as it is."""
    try:
        held = platform.open_file(path, create=True)
    except FileExistsError:
        return
    with held:
        try:
            held.write(_GITIGNORE)
        except OSError:
            path.unlink()
            raise
