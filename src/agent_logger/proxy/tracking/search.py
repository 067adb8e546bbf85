"""The search for earlier calls that a call's history continues."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agent_logger.proxy.tracking.fingerprint import Rolled
from agent_logger.proxy.tracking.index import Branch, CallOutcome, CallRow, HistoryIndex

FAILED = (CallOutcome.FAILED, CallOutcome.CUT)
UNANSWERED = (*FAILED, CallOutcome.OPEN)


@dataclass(slots=True)
class HistoryMatch:
    """A call whose state is a beginning of the history."""

    row: CallRow
    units: int = 0  # how many units of the history it covers
    others: list[CallRow] = field(default_factory=list)  # calls of other branches that fit as well


@dataclass(slots=True, frozen=True)
class Repeats:
    """The history is that of an earlier call, which was answered, or failed, was cut, or is not answered yet."""

    call: HistoryMatch
    is_answered: bool


@dataclass(slots=True, frozen=True)
class Continues:
    """The history continues a state of the thread: the one it stands at (its tip), or an earlier one.

    A thread stands at its last call that was answered or is being answered. A call that failed or was cut does not move
    it, but clients continue from such a call too, with or without its request.
    """

    state: HistoryMatch
    is_tip: bool


@dataclass(slots=True, frozen=True)
class Unrelated:
    """The history is not known."""

    last: CallRow  # the last call of the thread


class NothingBefore:
    """There is no call to compare with: the session is new, or has other threads only, or the call is a side call."""


Relation = Repeats | Continues | Unrelated | NothingBefore


@dataclass(slots=True, frozen=True)
class ForkPoint:
    parent: str
    from_seq: int  # up to its answer the two are the same; 0: nothing is


@dataclass(slots=True)
class HistorySearch:
    """A search in one history. `origin` is the call whose answer the client says it follows; its state comes before the
    first of `rolled`. `client`: without a group, only branches with this name are searched."""

    index: HistoryIndex
    provider: str
    rolled: Rolled
    units: Sequence[msgspec.Raw] = ()
    origin: CallRow | None = None
    client: tuple[str, str] | None = None

    def attempt(
        self, group: Collection[Branch] | None, thread: str, outcomes: Collection[CallOutcome]
    ) -> HistoryMatch | None:
        """The earlier call with the same history, if the last such call of its branch had one of these outcomes."""
        state = self.rolled.states[-1]
        rows = self.index.at(state, _roots(group))
        if not rows:
            return None
        last: dict[Branch, CallRow] = {}
        for row in rows:
            if row.state == state and row.thread == thread and self._is_in(row, group):
                earlier = last.get(row.branch)
                if earlier is None or row.seq > earlier.seq:
                    last[row.branch] = row
        return _best([row for row in last.values() if row.outcome in outcomes], len(self.rolled.states), _activity)

    def longest(
        self, group: Collection[Branch] | None, thread: str | None, *, need_answer: bool
    ) -> HistoryMatch | None:
        """The call with the longest state that the history continues, of any thread if none is given. If there are
        several: a call that its thread stands at, then the one last active. Twins (same folder, prompt and answers) are
        in one state at the same time, or one after the other; a call that is itself in a state does not continue it."""

        def fits(row: CallRow) -> bool:
            return thread in (None, row.thread) and row.leads and self._is_in(row, group)

        for units, rows in self._states(_roots(group), need_answer=need_answer):
            if fitting := [row for row in rows if fits(row)]:
                return self._best_at(units, fitting)
        return None

    def relation(self, group: Collection[Branch], thread: str) -> Relation:
        """How the history relates to the calls of a thread."""
        # Warm-ups ask the same of several models at once; that is no retry.
        if attempt := self.attempt(group, thread, FAILED if thread == "side" else UNANSWERED):
            return Repeats(attempt, is_answered=False)
        branches = [branch for branch in group if thread in branch.threads]
        if thread == "side" or not branches:
            return NothingBefore()
        last = last_active(branches).threads[thread][-1]
        state = self.longest(group, thread, need_answer=False)
        if state and (last.kind != "compact" or self.has_answer(state)):
            return Continues(state, is_tip=self.is_at_tip(state))
        if attempt := self.attempt(group, thread, (CallOutcome.COMPLETE,)):
            return Repeats(attempt, is_answered=True)
        return Unrelated(last)

    def continued(self, group: Collection[Branch] | None, thread: str, outcomes: Collection[CallOutcome]) -> set[str]:
        """The roots whose answers the history holds, or one of whose calls it repeats that ended so."""
        matches = self.longest(group, None, need_answer=True), self.attempt(group, thread, outcomes)
        return {row.branch.root for match in matches if match for row in (match.row, *match.others)}

    def is_known(self, group: Collection[Branch], thread: str) -> bool:
        match = self.attempt(group, thread, tuple(CallOutcome)) or self.longest(group, thread, need_answer=False)
        return match is not None

    def is_at_tip(self, match: HistoryMatch) -> bool:
        """Whether the thread of the match stands where the history continues from."""
        return self._stands_at(match.row, match.units)

    def among(self, attempt: HistoryMatch, match: HistoryMatch | None) -> HistoryMatch:
        """The call that is retried, or the one that its twin has reached since: the one last active."""
        if match is None or not self.is_at_tip(match):
            return attempt
        retried = [attempt.row, *attempt.others]
        branches = {row.branch for row in retried}
        standing = [row for row in (match.row, *match.others) if self._stands_at(row, match.units)]
        rest = [row for row in standing if row.branch not in branches]
        best = max([*retried, *rest], key=_activity)
        units = attempt.units if best in retried else match.units
        return HistoryMatch(best, units, [row for row in (*retried, *rest) if row is not best])

    def has_answer(self, match: HistoryMatch) -> bool:
        """Whether the two share more than questions: a summary of a conversation keeps the questions."""
        first = self.rolled.first_answer
        return bool(self.origin and self.origin.leads) or (first is not None and first < match.units)

    def fork_point(self, match: HistoryMatch) -> ForkPoint:
        row = match.row
        if self._is_whole(row, match.units):
            return ForkPoint(row.branch.name, row.seq)
        # The histories part in the answer to that call. What they share ends with a call before it.
        for units, rows in self._states([row.branch.root], need_answer=False):
            if units < match.units:
                shared = [candidate for candidate in rows if candidate.leads and self._is_whole(candidate, units)]
                if best := _best(
                    shared, units, lambda candidate: (candidate.branch is row.branch, *_activity(candidate))
                ):
                    return ForkPoint(best.row.branch.name, best.row.seq)
        return ForkPoint(row.branch.name, 0)

    # ------------------------------------------------------------ small things

    def _best_at(self, units: int, rows: list[CallRow]) -> HistoryMatch | None:
        return _best(rows, units, lambda row: (self._stands_at(row, units), *_activity(row)))

    def _states(self, roots: Collection[str], *, need_answer: bool) -> Iterator[tuple[int, Sequence[CallRow]]]:
        """Yield the states of the history, the longest first; states that no call was in are left out."""
        states, first = self.rolled.states, self.rolled.first_answer
        lowest = 0 if not need_answer or self.origin else len(states) if first is None else first
        for units in range(len(states) - 1, lowest, -1):
            if rows := self.index.at(states[units - 1], roots):
                yield units, rows
        if self.origin:
            yield 0, [self.origin]

    def _is_in(self, row: CallRow, group: Collection[Branch] | None) -> bool:
        if group is not None:
            return row.branch in group
        return row.branch.provider == self.provider and self.client in (None, row.branch.client)

    def _state(self, units: int) -> bytes | None:
        if units:
            return self.rolled.states[units - 1]
        return self.origin.after if self.origin else None

    def _is_whole(self, row: CallRow, units: int) -> bool:
        """Whether the history holds the whole answer of the call, and not only its request."""
        return row.after is None or row.after == self._state(units)

    def _stands_at(self, row: CallRow, units: int) -> bool:
        tip = row.branch.tip(row.thread)
        if tip and row.seq < tip.seq:
            return False
        if self._is_whole(row, units):
            return True
        # Some clients do not send an answer back as it was; it still is one.
        answers = self.rolled.is_answer
        return units < len(answers) and answers[units]


def last_active(branches: Collection[Branch]) -> Branch:
    return max(branches, key=lambda branch: branch.active)


def _roots(group: Collection[Branch] | None) -> Collection[str]:
    """The roots of a group: a single one, unless the session was begun again while the table was being rebuilt."""
    return {branch.root for branch in group} if group else ()


def _activity(row: CallRow) -> tuple[tuple[str, int], int]:
    return row.branch.active, row.seq


def _best(rows: list[CallRow], units: int, rank: Callable[[CallRow], tuple[Any, ...]]) -> HistoryMatch | None:
    if not rows:
        return None
    if len(rows) == 1:
        return HistoryMatch(rows[0], units)
    best = max(rows, key=rank)
    others = {row.branch: row for row in rows if row.branch is not best.branch}
    return HistoryMatch(best, units, list(others.values()))
