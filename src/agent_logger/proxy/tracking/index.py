"""The sessions in memory: their branches, their calls, and the states of their conversations.

All branches of one session (its `root`) enter and leave memory together: a caller that finds one has them all.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from agent_logger.model.records import Identity

MOST_ROWS = 100_000  # about 80 MB; sessions untouched for longest leave first
MOST_TWINS = 64  # calls in one state that are looked at for want of a name


def root_of(session: str) -> str:
    """The root of a session's name. Branches are named after the session, however deep: `<root>_b7`."""
    root, mark, number = session.rpartition("_b")
    return root if mark and number.isdecimal() else session


class CallOutcome(IntEnum):
    OPEN = 0
    FAILED = 1  # an error, or no answer at all
    CUT = 2
    COMPLETE = 3


def outcome_of(status: int | None, stop_reason: str | None = None, *, complete: bool) -> CallOutcome:
    if status is None or status >= 400 or stop_reason == "failed":  # `failed`: the word of the responses API
        return CallOutcome.FAILED
    return CallOutcome.COMPLETE if complete else CallOutcome.CUT


@dataclass(slots=True, eq=False)
class CallRow:
    """A call that has a fingerprint."""

    branch: "Branch"
    seq: int
    thread: str
    kind: str
    state: bytes  # the fingerprint of its messages
    after: bytes | None = None  # the fingerprint of its messages and its answer
    outcome: CallOutcome = CallOutcome.OPEN
    retry_of: int | None = None
    message_id: str | None = None

    @property
    def leads(self) -> bool:
        """Whether a conversation can continue from the call: not from side calls, nor from a request for a summary."""
        return self.thread != "side" and self.kind != "compact"


@dataclass(slots=True, eq=False)
class Branch:
    """The calls of one log."""

    name: str
    provider: str
    upstream: str
    root: str
    created_at: str
    last_activity: str
    identity: Identity | None = None
    agent: str | None = None
    parent: str | None = None
    from_seq: int | None = None
    last_seq: int = 0
    last_state: bytes | None = None
    rows: dict[int, CallRow] = field(default_factory=dict)
    threads: dict[str, list[CallRow]] = field(default_factory=dict)
    active: tuple[str, int] = ("", 0)  # rises with whatever happens
    accounts: set[bytes] = field(default_factory=set)  # digests of the credentials of its calls since the start

    @property
    def client(self) -> tuple[str, str] | None:
        identity = self.identity
        return (self.provider, identity.id) if identity and identity.id else None

    def tip(self, thread: str) -> CallRow | None:
        """The call that the thread stands at: the last one that was answered or is being answered."""
        for row in reversed(self.threads.get(thread, ())):
            if row.leads and row.outcome in (CallOutcome.OPEN, CallOutcome.COMPLETE):
                return row
        return None


@dataclass(slots=True, eq=False)
class Root:
    branches: dict[str, Branch] = field(default_factory=dict)
    states: dict[bytes, list[CallRow]] = field(default_factory=dict)
    row_count: int = 0


class HistoryIndex:
    def __init__(self) -> None:
        self.roots: OrderedDict[str, Root] = OrderedDict()  # the last active one is last
        self.branches: dict[str, Branch] = {}
        self.row_count = 0
        self.changed_branches: dict[Branch, None] = {}  # branches that differ from those in the table
        self.changed_rows: dict[CallRow, None] = {}
        self._states: dict[bytes, list[CallRow]] = {}
        self._clients: dict[tuple[str, str], dict[Branch, None]] = {}
        self._responses: dict[str, CallRow] = {}
        self._active = ("", 0)

    # ------------------------------------------------------------ asking

    def of_client(self, client: tuple[str, str]) -> Collection[Branch]:
        return self._clients.get(client, {})

    def at(self, state: bytes, roots: Collection[str] = ()) -> Sequence[CallRow]:
        """The calls that were in this state: all those of the given roots, or the newest of any root."""
        if not roots:
            return self._states.get(state, ())
        return [row for root in roots for row in self.roots[root].states.get(state, ())]

    def call_of_response(self, message_id: str) -> CallRow | None:
        return self._responses.get(message_id)

    # ------------------------------------------------------------ learning

    def add(self, branch: Branch) -> None:
        self.branches[branch.name] = branch
        self.roots.setdefault(branch.root, Root()).branches[branch.name] = branch
        if branch.client:
            self._clients.setdefault(branch.client, {})[branch] = None
        branch.active = branch.last_activity, 0

    def touch(self, branch: Branch, ts: str) -> None:
        """Mark a branch as the last active one. The order is that of events, even while the clock is behind an earlier
        time; after a restart only the clock's times are known."""
        latest, number = self._active
        self._active = branch.active = max(latest, ts), number + 1
        self.roots.move_to_end(branch.root)

    def add_row(self, row: CallRow) -> None:
        branch = row.branch
        branch.rows[row.seq] = row
        branch.threads.setdefault(row.thread, []).append(row)
        self._add_state(row.state, row)
        self.roots[branch.root].row_count += 1
        self.row_count += 1
        if row.after or row.message_id:
            self.answer(row, row.after, row.message_id)

    def answer(self, row: CallRow, after: bytes | None, message_id: str | None) -> None:
        row.after, row.message_id = after, message_id
        if after:
            self._add_state(after, row)
        if message_id:
            self._responses[message_id] = row

    def _add_state(self, state: bytes, row: CallRow) -> None:
        self.roots[row.branch.root].states.setdefault(state, []).append(row)
        rows = self._states.setdefault(state, [])
        rows.append(row)
        if len(rows) > MOST_TWINS:
            del rows[0]

    # ------------------------------------------------------------ forgetting

    def forget_oldest(self, most_rows: int) -> bool:
        """Forget the oldest sessions, down to nine tenths of `most_rows`, but nothing that the table does not have.
        Returns whether anything was forgotten."""
        forgotten = False
        for name in self._clean_roots() if self.weight > most_rows else ():
            self._forget(name)
            forgotten = True
            if self.weight <= most_rows * 0.9:
                break
        return forgotten

    @property
    def weight(self) -> int:
        """How much memory the index takes, counted in rows."""
        return self.row_count + 2 * len(self.branches)

    def _clean_roots(self) -> list[str]:
        changed = {branch.root for branch in self.changed_branches}
        return [name for name in self.roots if name not in changed]

    def _forget(self, name: str) -> None:
        root = self.roots.pop(name)
        self.row_count -= root.row_count
        for branch in root.branches.values():
            del self.branches[branch.name]
            if branch.client:
                self._clients[branch.client].pop(branch)
                if not self._clients[branch.client]:
                    del self._clients[branch.client]
            for row in branch.rows.values():
                _remove(self._states, row.state, row)
                if row.after:
                    _remove(self._states, row.after, row)
                if row.message_id and self._responses.get(row.message_id) is row:
                    del self._responses[row.message_id]


def _remove(states: dict[bytes, list[CallRow]], state: bytes, row: CallRow) -> None:
    rows = [other for other in states.get(state, ()) if other is not row]
    if rows:
        states[state] = rows
    else:
        states.pop(state, None)
