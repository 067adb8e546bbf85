"""Tool calls of the model, by their ids: they tell where a history came from that its client has changed since.

When Claude Code resumes a session, it may put its reminders elsewhere, and many clients cut the beginning of a long
history: then no state of it is known. But the ids of tool calls stay, and no vendor gives one twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from agent_logger.providers.request_body import value

MOST_USES = 20_000  # the last so many uses are remembered
# The forms of ids that are unique; other ids may be counters.
_UNIQUE = re.compile(r"(?:toolu|tooluse|call|fc|chatcmpl-tool)[_-][A-Za-z0-9_-]{16,}")


class Use(NamedTuple):
    """The call whose answer contains the tool use."""

    session: str
    seq: int


class Uses:
    """The most recent tool uses. `changed`: those of them that are not in the table."""

    def __init__(self) -> None:
        self._uses: dict[str, Use] = {}
        self.changed: dict[str, Use] = {}

    def note(self, session: str, seq: int, message: Mapping[str, Any]) -> None:
        for name in _ids(message):
            self._uses[name] = self.changed[name] = Use(session, seq)
        for uses in (self._uses, self.changed):
            while len(uses) > MOST_USES:
                del uses[next(iter(uses))]

    def load(self, older: Mapping[str, Use]) -> None:
        """Add the uses that the table has."""
        self._uses = _last({**older, **self._uses})

    def take_over(self, older: "Uses") -> None:
        """Add the uses from a log that was read again, also to those that the table must get."""
        if older.changed and len(self._uses) < MOST_USES:
            self._uses = _last({**older.changed, **self._uses})
            self.changed = _last({**older.changed, **self.changed})

    def change_all(self) -> None:
        """Mark all uses as changed, because the table was lost."""
        self.changed = dict(self._uses)

    def last_in(self, units: Sequence[msgspec.Raw]) -> tuple[Use, int] | None:
        """The last known use in a history, and how often the model spoke after it."""
        later = 0
        for unit in reversed(units) if self._uses else ():
            message = value(unit)
            if not isinstance(message, dict):
                continue
            if use := next((self._uses[name] for name in _ids(message) if name in self._uses), None):
                return use, later
            later += message.get("role") == "assistant"
        return None


def _last(uses: dict[str, Use]) -> dict[str, Use]:
    return dict(list(uses.items())[-MOST_USES:])


def _ids(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the tool calls in an answer, or in a unit of a history, in any API."""
    for field in ("content", "tool_calls", "output"):
        blocks = message.get(field)
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("type") != "tool_result":
                yield from _id(block)
    if "call_id" in message and not str(message.get("type")).endswith("_output"):
        yield from _id(message)


def _id(block: Mapping[str, Any]) -> Iterator[str]:
    name = block.get("call_id") or block.get("id")
    if isinstance(name, str) and _UNIQUE.fullmatch(name):
        yield name
