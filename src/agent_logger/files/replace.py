"""Changing a small text file of the user's: the change is shown first, then the file is replaced as a whole, or not at
all."""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_logger import platform
from agent_logger.errors import StoreError


@dataclass(frozen=True, slots=True)
class Edited:
    """A file as it was read. A link stays one: what it leads to is replaced."""

    path: Path
    text: str  # nothing, if there is no such file
    mode: int | None  # `None`: there is none

    @classmethod
    def read(cls, path: Path) -> "Edited":
        """Read the file. Raises `StoreError`."""
        real = Path(os.path.realpath(path))
        try:
            mode = os.stat(real).st_mode & 0o777
            return cls(real, real.read_bytes().decode("utf-8"), mode)
        except FileNotFoundError:
            return cls(real, "", None)
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"cannot read {real}: {error}") from error

    def diff(self, after: str) -> Iterator[str]:
        before = self.text.splitlines()
        name = str(self.path)
        yield from difflib.unified_diff(before, after.splitlines(), name, name, lineterm="")

    def write(self, after: str) -> None:
        """Replace the file. Raises `StoreError`, and leaves the file as it is, also if somebody else has changed it
        since it was read."""
        if Edited.read(self.path) != self:
            raise StoreError(f"{self.path} was changed by another program; nothing was written, try again")
        try:
            platform.make_folder(self.path.parent)
            platform.replace_file(self.path, after.encode(), mode=self.mode, synced=True)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}; it was not changed") from error
