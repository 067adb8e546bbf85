"""What commands say about lines that cannot be read: how many, and the command that shows them."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from agent_logger.cli import _output
from agent_logger.model.plurals import pluralize

MOST_PATHS = 3  # listed in one line


def note_damage(files: Mapping[Path, int], where: str = "") -> None:
    """Print a note about damage. `files` has the number of damaged lines of each file."""
    if files:
        _output.note(f"{damage_text(files)}{where} skipped; for details: {verify_command(files)}")


def damage_text(files: Mapping[Path, int]) -> str:
    return pluralize(sum(files.values()), "damaged line")


def verify_command(files: Mapping[Path, int]) -> str:
    """The command that shows the damage of the worst files."""
    worst = sorted(files, key=lambda path: (-files[path], str(path)))
    more = f" (and {pluralize(len(worst) - MOST_PATHS, 'more file')})" if len(worst) > MOST_PATHS else ""
    return f"agent-logger verify {shlex.join(map(str, worst[:MOST_PATHS]))}{more}"
