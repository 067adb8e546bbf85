"""What a sender remembers: of each session the level that it stated, of each object how much was acknowledged.

Whoever sends writes down what is about to be sent first, so that after a crash the same is sent again.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from agent_logger.push.protocol import Level


class StatedSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session, as the hub was told of it."""

    level: Level
    revision: int
    is_acknowledged: bool = False
    is_withdrawn: bool = False
    project: str = ""  # as it is on this machine, to find the rule for a session whose files are gone
    version: str = ""  # of what the hub has all of


class PendingRange(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be sent: how far it reaches in the file, and what it is when it is redacted."""

    end: int
    length: int
    sha256: str


class ObjectState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object, as far as the hub has it."""

    session: str
    revision: int
    rules: str
    generation: int
    has_begun: bool = False  # whether the hub has its head
    offset: int = 0  # that the hub has acknowledged
    source: int = 0  # bytes of the file that this stands for
    tail: str = ""  # the hash of what stands before that in the file
    pending: PendingRange | None = None
    version: str = ""  # of what does not grow: what its file looked like
    is_complete: bool = False


class PushState(Protocol):
    """The memory of a sender. What is put is on the disk when the call returns."""

    def session(self, name: str, /) -> StatedSession | None: ...
    def sessions(self) -> Iterable[tuple[str, StatedSession]]: ...
    def put_session(self, name: str, state: StatedSession, /) -> None: ...
    def object(self, name: str, /) -> ObjectState | None: ...
    def put_object(self, name: str, state: ObjectState, /) -> None: ...

    def next_number(self, above: int = 0, /) -> int:
        """Return a number for a revision or a generation, higher than any before and than `above`."""


class MemoryState:
    """A memory without a disk."""

    def __init__(self) -> None:
        self._sessions: dict[str, StatedSession] = {}
        self._objects: dict[str, ObjectState] = {}
        self._number = 0

    def session(self, name: str) -> StatedSession | None:
        return self._sessions.get(name)

    def sessions(self) -> Iterable[tuple[str, StatedSession]]:
        return list(self._sessions.items())

    def put_session(self, name: str, state: StatedSession) -> None:
        self._sessions[name] = state

    def object(self, name: str) -> ObjectState | None:
        return self._objects.get(name)

    def put_object(self, name: str, state: ObjectState) -> None:
        self._objects[name] = state

    def next_number(self, above: int = 0) -> int:
        self._number = max(self._number, above) + 1
        return self._number
