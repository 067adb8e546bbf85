"""How lines of Claude Code's hang together: `parentUuid` within a file, message ids between files.

Order is the file's. A walk from a leaf to the root would lose results of tools that ran side by side, for they hang off
different lines of one response; so the tree only tells where a conversation was taken up again at an earlier point.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import takewhile
from typing import Protocol, TypeVar

_LATE = datetime.max.replace(tzinfo=UTC)
LATEST = 64  # lines that one may come before its parent


class Line(Protocol):
    """What has a place in the tree."""

    @property
    def uuid(self) -> str | None: ...

    @property
    def parent_uuid(self) -> str | None: ...


L = TypeVar("L", bound=Line)


def behind_parents(lines: Iterable[L]) -> Iterator[L]:
    """The same lines, none before the one it follows: clients that write aside (2.1.50) may put the beginning of a
    session behind what came next. A parent that is too far away, or nowhere, changes nothing."""
    seen: set[str | None] = {None}
    held: list[L] = []
    for line in lines:
        seen.add(line.uuid)
        if held or line.parent_uuid not in seen:
            held.append(line)
            if len(held) < LATEST:
                continue
            yield from _sorted(held)
            held = []
        else:
            yield line
    yield from _sorted(held)


def _sorted(lines: Sequence[L]) -> Iterator[L]:
    to_come = {line.uuid for line in lines if line.uuid}
    waiting: dict[str | None, list[L]] = {}
    for line in lines:
        if line.parent_uuid in to_come and line.parent_uuid != line.uuid:
            waiting.setdefault(line.parent_uuid, []).append(line)
            continue
        due = [line]
        while due:
            next_ = due.pop(0)
            yield next_
            to_come.discard(next_.uuid)
            due = waiting.pop(next_.uuid, []) + due if next_.uuid else due
    for circle in waiting.values():
        yield from circle


@dataclass(frozen=True, slots=True)
class Branch:
    """Exchanges that go on from the same point; the last one is what the conversation went on with."""

    after: int  # the number of the exchange; 0 is the beginning
    exchanges: Sequence[int]


class Tree:
    """The lines of a file by their ids, each with the number of the exchange it is in."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.exchange_of: dict[str | None, int] = {}  # of lines on the main thread
        self._prompts: dict[int, str] = {}  # the line that began an exchange
        self._last: str | None = None  # of the main thread

    def add(self, uuid: str, parent: str | None, exchange: int | None) -> None:
        """`exchange`: none for a line that is not of the main thread."""
        self.parents[uuid] = parent
        if exchange is not None:
            self.exchange_of[uuid] = exchange
            self._last = uuid

    def begins(self, exchange: int, uuid: str) -> None:
        self._prompts[exchange] = uuid

    def root(self, uuid: str) -> str:
        """The first known line above."""
        return [uuid, *self._above(uuid)][-1]

    def loose(self) -> frozenset[str]:
        """Lines that are missing: others name them as their parent."""
        return frozenset(it for it in self.parents.values() if it and it not in self.parents)

    def branches(self) -> list[Branch]:
        followers: dict[int, list[int]] = {}
        for exchange in sorted(self._prompts):
            followers.setdefault(self._before(exchange), []).append(exchange)
        return [Branch(after, found) for after, found in sorted(followers.items()) if len(found) > 1]

    def abandoned(self) -> frozenset[int]:
        """Exchanges that the last line does not go on from."""
        on_the_way = {exchange for exchange in self._way() if exchange}
        return frozenset(self._prompts) - on_the_way if on_the_way else frozenset()

    def _way(self) -> Iterator[int]:
        exchange = self.exchange_of.get(self._last or "", 0)
        seen: set[int] = set()
        while exchange and exchange not in seen:
            seen.add(exchange)
            yield exchange
            exchange = self._before(exchange)

    def _before(self, exchange: int) -> int:
        """The exchange that one goes on from. Where a line is missing, that is the one before it in the file."""
        prompt = self._prompts.get(exchange)
        if prompt is None:
            return exchange - 1
        top = prompt
        for above in self._above(prompt):
            found = self.exchange_of.get(above)
            if found is not None and found < exchange:
                return found
            top = above
        return 0 if self.parents.get(top) is None else exchange - 1

    def _above(self, uuid: str) -> Iterator[str]:
        """From the line above on; lines of a broken file may form a circle."""
        seen = {uuid}
        parent = self.parents.get(uuid)
        while parent is not None and parent in self.parents and parent not in seen:
            seen.add(parent)
            yield parent
            parent = self.parents[parent]


# ---------------------------------------------------------------- forks


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """What can be told of a session's descent from its files alone."""

    session: str
    message_ids: Sequence[str] = ()  # of the main thread, in order, each once
    began: datetime | None = None  # the earliest time in its file
    forked_from: str | None = None  # as the client says

    @cached_property
    def ids(self) -> frozenset[str]:
        """Made once: each session is compared with all that share anything with it."""
        return frozenset(self.message_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    session: str
    shared: Sequence[str]  # the message ids of the history that was copied
    certain: bool  # the client says so; else it was concluded from what both have


def parent_of(own: Lineage, others: Iterable[Lineage]) -> Parent | None:
    """The session whose history this one begins with a copy of; none if it begins with its own.

    Copies keep the ids of messages, and in newer clients their times, but nothing says which file was first. It is the
    one that stopped where the other goes on; else the one that began earlier; of several, the one that shares most.
    """
    found = [
        (shared, other)
        for other in others
        if other.session != own.session and (shared := _shared(own, other))
    ]
    if own.forked_from:
        named = next((shared for shared, other in found if other.session == own.forked_from), [])
        return Parent(session=own.forked_from, shared=named, certain=True)
    older = [(shared, other) for shared, other in found if _is_older(other, own)]
    if not older:
        return None
    shared, other = min(
        older, key=lambda it: (-len(it[0]), _age(it[1]), len(it[1].message_ids), it[1].session)
    )
    return Parent(session=other.session, shared=shared, certain=False)


def _shared(own: Lineage, other: Lineage) -> list[str]:
    return list(takewhile(other.ids.__contains__, own.message_ids))


def _is_older(other: Lineage, own: Lineage) -> bool:
    theirs, ours = other.ids, own.ids
    if theirs != ours and (theirs < ours or ours < theirs):
        return theirs < ours
    return (_age(other), other.session) < (_age(own), own.session)


def _age(lineage: Lineage) -> datetime:
    return lineage.began or _LATE
