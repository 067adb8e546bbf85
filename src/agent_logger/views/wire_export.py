"""A wire log as one file that needs no other: its parts joined, and for a branch the records that it continues."""

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from agent_logger.errors import SourceError
from agent_logger.logs.reader import kind_of_log, read_branch
from agent_logger.model import records
from agent_logger.model.records import Record, Unknown
from agent_logger.views.hide import hidden_line


def wire_lines(folder: Path, name: str, on_damage: Callable[[object], None]) -> Iterator[bytes]:
    """The lines of the file, each with its newline, and without keys. Bodies are in the lines, however large.

    What cannot be read is left out and passed to `on_damage`. Raises `SourceError` if there is no such log.
    """
    if kind_of_log(folder, name) != "wire":
        raise SourceError(f"{folder / name}: not a wire log")
    for record in read_branch(folder, name):
        if isinstance(record, Record):  # the ids of its part are those of another file
            copy = replace(record, log=None, part=None, machine=None, writer=None)
            yield hidden_line(records.encode(copy)) + b"\n"
        elif isinstance(record, Unknown):
            yield hidden_line(record.raw) + b"\n"
        else:
            on_damage(record)
