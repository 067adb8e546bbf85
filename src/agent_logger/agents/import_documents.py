"""Documents that an agent imports itself, for sessions in its database: no other program writes there."""

from typing import NamedTuple

LONGEST_NAME = 60  # characters of an id in a message to the user


class LeftOutRow(NamedTuple):
    session: str
    row: str  # its table and id
    reason: str


class ImportDocument(NamedTuple):
    session: str
    directory: str | None  # where the session took place; the import puts it into the folder where it is run
    data: bytes
    rows: frozenset[tuple[str, str]]  # table and id
    left_out: list[LeftOutRow]
    completed: int  # rows of older versions that were given fields which the import requires
