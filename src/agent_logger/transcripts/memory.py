"""An agent's notes for the next time it works on a project: `memory/MEMORY.md` in the project's folder."""

from pathlib import Path

from agent_logger import platform
from agent_logger.errors import StoreError


def read(folder: Path) -> str:
    """The text that was written last; empty if there is none. Raises `StoreError` and `OSError`."""
    try:
        return _path(folder).read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def write(folder: Path, text: str) -> None:
    """Replace the text, as a whole or not at all. Raises `StoreError` and `OSError`."""
    path = _path(folder)
    platform.make_folder(path.parent)
    platform.replace_file(path, text.encode("utf-8", "replace"))


def _path(folder: Path) -> Path:
    path = folder / "memory" / "MEMORY.md"
    if any(location.is_symlink() for location in (path, path.parent, folder)):
        raise StoreError(f"{path}: a symbolic link, which is not followed")
    return path
