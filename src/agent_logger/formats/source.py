"""What a reader of other agents' files is given: the files of one session, opened and framed by whoever has them.

Readers are pure. They never open anything; a side file is asked for by its name and may be gone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent_logger.wire.jsonl import Damage, Entry, Torn

Entries = Iterable[Entry | Damage | Torn]


@dataclass(frozen=True, slots=True)
class File:
    """One file of a session. `name` is its path below the folder of the main one, with `/`."""

    name: str
    entries: Entries  # read while it is iterated over, once
    modified: float = 0.0  # by the clock


def no_text(_name: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Source:
    main: File
    others: Sequence[File] = ()  # of sub-agents, and what describes them
    text: Callable[[str], str | None] = no_text  # the content of a side file by its name; none if it is gone
