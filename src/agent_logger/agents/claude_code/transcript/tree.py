"""How lines of Claude Code's are linked: `parentUuid` within a file, message ids between files.

The order is the file's. A walk from a leaf to the root would lose results of tools that ran side by side, because they
are linked to different lines of one response; so the tree only shows where a conversation was continued from an earlier
point.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Protocol, TypeVar

_LATE = datetime.max.replace(tzinfo=UTC)
LATEST = 64  # lines by which a line may precede its parent


class TreeLine(Protocol):
    """A line that has a place in the tree."""

    @property
    def uuid(self) -> str | None: ...

    @property
    def parent_uuid(self) -> str | None: ...


L = TypeVar("L", bound=TreeLine)


def behind_parents(lines: Iterable[L]) -> Iterator[L]:
    """Yield the same lines, none before its parent: clients that write asynchronously (2.1.50) may put the beginning of
    a session after what came next. A parent that is too far away, or missing, changes nothing."""
    visited: set[str | None] = {None}
    held: list[L] = []
    for line in lines:
        visited.add(line.uuid)
        if held or line.parent_uuid not in visited:
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


class Tree:
    """The lines of a file by their ids, each with the number of the exchange it is in."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.exchange_of: dict[str | None, int] = {}  # numbers of exchanges by line, on the main thread
        self._prompts: dict[int, str] = {}  # the line that began an exchange
        self._last: str | None = None  # the last line of the main thread

    def add(self, uuid: str, parent: str | None, exchange: int | None) -> None:
        """Add a line. `exchange`: None for a line that is not on the main thread."""
        self.parents[uuid] = parent
        if exchange is not None:
            self.exchange_of[uuid] = exchange
            self._last = uuid

    def begins(self, exchange: int, uuid: str) -> None:
        self._prompts[exchange] = uuid

    def root(self, uuid: str) -> str:
        """Return the first known line above."""
        return [uuid, *self._above(uuid)][-1]

    def loose(self) -> frozenset[str]:
        """Return the missing lines: those that others name as their parent."""
        return frozenset(parent for parent in self.parents.values() if parent and parent not in self.parents)

    def left(self) -> frozenset[int]:
        """Return the exchanges that the last line does not continue from. Without any parents this cannot be known."""
        on_the_way = {exchange for exchange in self._way() if exchange}
        on_path = on_the_way and any(self.parents.values())
        return frozenset(self._prompts) - on_the_way if on_path else frozenset()

    def _way(self) -> Iterator[int]:
        exchange = self.exchange_of.get(self._last or "", 0)
        visited: set[int] = set()
        while exchange and exchange not in visited:
            visited.add(exchange)
            yield exchange
            exchange = self._before(exchange)

    def _before(self, exchange: int) -> int:
        """Return the exchange that this one continues from. Where a line is missing, that is the one before it in the
        file."""
        prompt = self._prompts.get(exchange)
        if prompt is None:
            return exchange - 1
        top = prompt
        for above in self._above(prompt):
            number = self.exchange_of.get(above)
            if number is not None and number < exchange:
                return number
            top = above
        return 0 if self.parents.get(top) is None else exchange - 1

    def _above(self, uuid: str) -> Iterator[str]:
        """Yield the lines above, the nearest first; lines of a broken file may form a circle."""
        visited = {uuid}
        parent = self.parents.get(uuid)
        while parent is not None and parent in self.parents and parent not in visited:
            visited.add(parent)
            yield parent
            parent = self.parents[parent]


# ---------------------------------------------------------------- forks

JITTER = timedelta(seconds=1)  # lines may be written this much later than the time in them
_MANY = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """What a session's own files say about its descent."""

    session: str
    message_ids: Sequence[str] = ()  # ids of the main thread, in order, each once
    began: datetime | None = None  # the earliest time in its file
    forked_from: str | None = None  # the session that copied lines name: the parent, or one before it
    recorded_parent: str | None = None  # the parent that the proxy recorded
    first_written: datetime | None = None  # the next two: see `Beginning`
    own_line_after: int | None = None
    responses: int = 0  # responses of the main thread, also those with ids that are not unique
    ended: datetime | None = None  # the latest time of these

    @cached_property
    def ids(self) -> frozenset[str]:
        """Return the message ids as a set, made once: each session is compared with all that share anything with it."""
        return frozenset(self.message_ids)

    @property
    def first(self) -> datetime | None:
        """Return when the first response was written to the session's file, as far as that is known."""
        return self.first_written or self.began


class Relatives:
    """Sessions that have messages in common, by their ids.

    There may be thousands of them, because some servers give all their answers the same id. Session ids decide nothing,
    except between sessions that are the same in everything else.
    """

    def __init__(self, lineages: Iterable[Lineage]) -> None:
        self._lineages = sorted(lineages, key=_age)
        self._by_name = {lineage.session: lineage for lineage in self._lineages}
        self._holding: dict[str, set[int]] = {}
        for number, lineage in enumerate(self._lineages):
            for name in lineage.ids:
                self._holding.setdefault(name, set()).add(number)

    def parents(self) -> dict[str, str]:
        """Return the parent of each session that was forked. No session descends from itself, whatever files say."""
        parents_by_session: dict[str, str] = {}
        surest = sorted(self._lineages, key=lambda lineage: (not lineage.recorded_parent, not lineage.forked_from))
        for own in surest:
            fitting = (
                candidate
                for candidate in self._candidates(own)
                if not _descends(candidate, own.session, parents_by_session)
            )
            if parent := next(fitting, None):
                parents_by_session[own.session] = parent
        return parents_by_session

    def in_order(self, parents: Mapping[str, str]) -> list[str]:
        """Return all sessions, each after its parent; else the one that began first is first."""
        forks: dict[str | None, list[str]] = {}
        for lineage in self._lineages:
            parent = parents.get(lineage.session)
            forks.setdefault(parent if parent in self._by_name else None, []).append(lineage.session)
        ordered = list(forks.get(None, ()))
        for name in ordered:  # grows meanwhile
            ordered += forks.get(name, ())
        return ordered

    def _candidates(self, own: Lineage) -> Iterator[str]:
        """Yield possible parents, the best first. Copies keep the ids of messages, and in newer clients their times.
        The parent is the one that is named, else the one that shares most and is older; of several, the oldest."""
        sharing = list(self._sharing(own))
        named = own.recorded_parent or own.forked_from
        if named is None:
            yield from self._older(own, sharing, 0)
        elif own.recorded_parent is None and named in self._by_name:
            # Lines that were copied twice still name the first session; the nearer one shares more of them.
            numbers = {number for number, lineage in enumerate(self._lineages) if lineage.session == named}
            yield from self._older(own, sharing, sum(not numbers.isdisjoint(members) for members in sharing))
        if named and named != own.session:
            yield named

    def _older(self, own: Lineage, sharing: Sequence[set[int]], fewest: int) -> Iterator[str]:
        """Yield the sessions that share more than the fewest messages, and are older."""
        more: set[int] = set()
        for count in range(len(sharing), fewest, -1):
            for number in sorted(sharing[count - 1] - more):
                other = self._lineages[number]
                if other.session != own.session and _is_older(other, own, count):
                    yield other.session
            more = sharing[count - 1]

    def _sharing(self, own: Lineage) -> Iterator[set[int]]:
        """Yield the sessions that share the first message, the first two, and so on, as long as there is another
        session."""
        left: set[int] | None = None
        for name in own.message_ids:
            holding = self._holding.get(name, set())
            left = holding if left is None else left & holding
            if not any(self._lineages[number].session != own.session for number in left):
                return
            yield left


def _descends(session: str, ancestor: str, parents: Mapping[str, str]) -> bool:
    above: str | None = session
    while above is not None and above != ancestor:
        above = parents.get(above)
    return above is not None


def _is_older(other: Lineage, own: Lineage, shared: int) -> bool:
    """Whether the other of two sessions, which begin with this many shared messages, is older. The times of writing
    decide; then the one with lines of its own among the shared ones had them first; then the one that stopped where the
    other continues."""
    theirs, ours = other.first, own.first
    if theirs and ours and abs(theirs - ours) > JITTER:
        return theirs < ours
    if (within := _has_own_line_within(other, shared)) != _has_own_line_within(own, shared):
        return within
    if None not in (lines := (other.own_line_after, own.own_line_after)) and lines[0] != lines[1]:
        return _own_line(other) < _own_line(own)
    if theirs and ours and theirs != ours:
        return theirs < ours
    if other.ids != own.ids and (other.ids < own.ids or own.ids < other.ids):
        return other.ids < own.ids
    return _age(other) < _age(own)


def _has_own_line_within(lineage: Lineage, shared: int) -> bool:
    return lineage.own_line_after is not None and lineage.own_line_after < shared


def _own_line(lineage: Lineage) -> int:
    return _MANY if lineage.own_line_after is None else lineage.own_line_after


def _age(lineage: Lineage) -> tuple[datetime, int, int, Sequence[str], int, datetime, str]:
    """Return a key that sorts older sessions first. The session's id is the last resort, between two that are the same
    in everything else."""
    ids, length = tuple(lineage.message_ids), lineage.responses
    return (
        lineage.first or _LATE,
        _own_line(lineage),
        len(ids),
        ids,
        length,
        lineage.ended or _LATE,
        lineage.session,
    )
