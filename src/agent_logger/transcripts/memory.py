"""What an agent wants to know the next time it works on a project: `memory/MEMORY.md` in the project's folder."""

from pathlib import Path

from agent_logger import platform
from agent_logger.errors import StoreError


def read(folder: Path) -> str:
    """What was written last; empty if nothing was. Raises `StoreError` and `OSError`."""
    try:
        return _path(folder).read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def write(folder: Path, text: str) -> None:
    """In the place of what was there, as a whole or not at all. Raises `StoreError` and `OSError`."""
    path = _path(folder)
    platform.make_folder(path.parent)
    platform.replace_file(path, text.encode("utf-8", "replace"))


def _path(folder: Path) -> Path:
    path = folder / "memory" / "MEMORY.md"
    if any(location.is_symlink() for location in (path, path.parent, folder)):
        raise StoreError(f"{path}: a link; it would lead elsewhere")
    return path
