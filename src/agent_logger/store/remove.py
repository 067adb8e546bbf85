"""Deleting a log of ours with all that lies beside it, or what hooks were told of a session, and nothing else.

Whoever asks has made the name safe. It is looked at once more all the same: a folder and the name `/` make the root of
the file system, and it would be gone.
"""

import shutil
from contextlib import suppress
from pathlib import Path

from agent_logger.store.hook_files import files_with
from agent_logger.store.parts import PartFile, live_files_of, parts_of


def remove_session(found: PartFile) -> None:
    """Its log, and the folder of what lies beside it. Raises `OSError`."""
    remove_log(found)
    remove_folder(found.folder, found.name)


def remove_log(found: PartFile) -> None:
    """The newest part first: as long as there is one, the log can be found to be removed again. Raises `OSError`."""
    lives = [path for paths in live_files_of(found.folder, found.name).values() for path in paths]
    parts = parts_of(found.folder, found.name)[::-1]
    for path in [*lives, *(path for part in parts for path in (part.path, part.sealed_path))]:
        path.unlink(missing_ok=True)
    remove_folder(found.folder, found.bodies.name)


def remove_hooks(folder: Path, tag: str) -> None:
    """What hooks were told of one session on one day; the day's folder goes with the last of it. Raises `OSError`."""
    for path in files_with(folder, tag):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # others are in it
        folder.rmdir()


def remove_folder(folder: Path, name: str) -> None:
    """The one of that name in the folder, if there is one; a link is none. Raises `OSError`."""
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f"{name!r} is not the name of a folder")
    wanted = folder / name
    if wanted.is_dir() and not wanted.is_symlink():
        shutil.rmtree(wanted)
