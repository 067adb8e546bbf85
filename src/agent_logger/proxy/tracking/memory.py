"""The known sessions: in memory, behind that in the table, behind that in the logs.

Decisions are made in memory. Changes are written to the table later, many calls at once, whenever it can be written to;
sessions that have left memory are read from it again. A lost table is rebuilt: at once from memory, and from the logs
where memory does not have everything, a piece with each commit.
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from agent_logger.model.records import Fork, Record, Request, Response, WireStart, decode
from agent_logger.providers.ending import is_complete
from agent_logger.providers.registry import dialect_of
from agent_logger.providers.request_body import value
from agent_logger.proxy.tracking.classify import api_of
from agent_logger.proxy.tracking.fingerprint import Fingerprints, Rolled, state_of
from agent_logger.proxy.tracking.index import (
    MOST_ROWS,
    Branch,
    CallOutcome,
    CallRow,
    HistoryIndex,
    outcome_of,
    root_of,
)
from agent_logger.proxy.tracking.table import Table, TableBusy, TableLost
from agent_logger.proxy.tracking.tool_uses import Uses

WRITE_SECONDS = 0.25  # many calls at once: most of a commit's cost is its pages
CHECK_SECONDS = 1.0  # how often to check whether the open file is still the one at its path
MOST_UNWRITTEN = 4  # times what may be in memory, while the table cannot be written to
RESTORE_BYTES = 4 << 20  # bytes of logs that are read for one commit: about 20 ms
RESTORE_SECONDS = 0.05  # between two of these; calls are recorded meanwhile

T = TypeVar("T")
log = logging.getLogger("agent_logger.proxy.tracking")


class Log(NamedTuple):
    provider: str
    name: str
    lines: Iterable[bytes]  # lines of all its parts, in order


Logs = Callable[[], Iterable[Log]]  # all there are, the newest first


class Memory:
    """The memory of a tracker. `fingerprints`: for answers that an older recorder logged without one, though they had
    ended."""

    def __init__(
        self,
        table: Table | None = None,
        logs: Logs = tuple,
        most_rows: int = MOST_ROWS,
        fingerprints: Fingerprints | None = None,
    ) -> None:
        self.index = HistoryIndex()
        self._fingerprints = fingerprints
        # Requests whose responses were not learned yet.
        self._endpoints: dict[tuple[str, int], _Endpoint] = {}
        self.uses = Uses()
        self._table, self._logs, self._most_rows = table, logs, most_rows
        self._is_open = self._is_whole = self._is_lost = False
        self._complete = table is None  # whether all is in memory
        self._restoring: Iterator[None] | None = None
        self._check_at = self._try_at = 0.0
        if table:
            self._open(table)

    @property
    def is_committed(self) -> bool:
        """Whether nothing would be missing at the next start. A table that is not whole is rebuilt then."""
        return self._table is None or not self._is_whole or not self.index.changed_branches

    # ------------------------------------------------------------ asking

    def branches_of_client(self, client: tuple[str, str]) -> Collection[Branch]:
        branches = self.index.of_client(client)
        if not branches and not self._complete:
            for root in self._ask(lambda table: table.roots_of_client(client)) or ():
                self._load(root)
            branches = self.index.of_client(client)
        return branches

    def branch(self, session: str) -> Branch | None:
        stored = self.index.branches.get(session)
        if stored is None and not self._complete:
            self._load(self._ask(lambda table: table.root_of_session(session)))
            stored = self.index.branches.get(session)
        return stored

    def call_of_response(self, message_id: str) -> CallRow | None:
        row = self.index.call_of_response(message_id)
        if row is None and not self._complete:
            self._load(self._ask(lambda table: table.root_of_response(message_id)))
            row = self.index.call_of_response(message_id)
        return row

    def fetch(self, rolled: Rolled, *, any_outcome: bool = False) -> None:
        """Load into memory what a call may continue, or be the retry of."""
        if self._complete or self._table is None:
            return
        *before, state = rolled.states
        roots = self._ask(lambda table: table.roots_at(state, unanswered=not any_outcome)) or []
        with_answer = before[rolled.first_answer :][::-1] if rolled.first_answer is not None else []
        longest = self._ask(lambda table: table.first_of(with_answer))
        if longest:
            roots += self._ask(lambda table: table.roots_at(longest, unanswered=False)) or []
        for root in roots:
            self._load(root)

    # ------------------------------------------------------------ learning

    def begin(self, branch: Branch) -> None:
        self.index.add(branch)
        self.index.changed_branches[branch] = None

    def note_request(self, branch: Branch, seq: int, row: CallRow | None, ts: str) -> None:
        index = self.index
        branch.last_seq = max(branch.last_seq, seq)
        branch.last_activity = max(branch.last_activity, ts)
        if row:
            branch.last_state = row.state
            index.add_row(row)
            index.changed_rows[row] = None
        index.changed_branches[branch] = None
        index.touch(branch, ts)

    def note_answer(
        self,
        branch: Branch,
        row: CallRow | None,
        outcome: CallOutcome,
        after: bytes | None,
        message_id: str | None,
        ts: str,
    ) -> None:
        index = self.index
        branch.last_activity = max(branch.last_activity, ts)
        if row:
            row.outcome = outcome
            index.answer(row, after, message_id)
            branch.last_state = after or branch.last_state
            index.changed_rows[row] = None
        index.changed_branches[branch] = None
        index.touch(branch, ts)

    def learn(self, provider: str, session: str, record: Record) -> None:
        """Learn from a record in a log. Learning it twice changes nothing."""
        branch = self.branch(session)
        if isinstance(record, WireStart):
            if branch is None:
                self.begin(_branch_of(provider, session, record))
        elif branch is None:
            return
        elif isinstance(record, Fork):
            branch.parent, branch.from_seq = record.parent_session, record.from_seq
            self.index.changed_branches[branch] = None
        elif isinstance(record, Request):
            if record.seq > branch.last_seq:
                row = _row_of(branch, record)
                self.note_request(branch, record.seq, row, record.ts)
                if row:
                    asked_endpoint = _Endpoint(record.method, record.path, record.transport == "websocket")
                    self._endpoints[session, record.seq] = asked_endpoint
        elif isinstance(record, Response):
            row, endpoint = branch.rows.get(record.seq), self._endpoints.pop((session, record.seq), None)
            if row.outcome is CallOutcome.OPEN if row else record.ts > branch.last_activity:
                complete = bool(record.complete) or _has_ended(provider, endpoint, record)
                outcome = outcome_of(record.status, record.stop_reason, complete=complete)
                after = state_of(record.fingerprint)
                if row and endpoint and after is None and outcome is CallOutcome.COMPLETE:
                    after = self._state_after(row, endpoint, record)
                if row and after and isinstance(message := _message(record), dict):
                    self.uses.note(session, record.seq, message)
                self.note_answer(branch, row, outcome, after, record.message_id, record.ts)

    def _state_after(self, row: CallRow, endpoint: "_Endpoint", record: Response) -> bytes | None:
        """The state after an answer whose record has no fingerprint; `None` if something was redacted in the answer."""
        message = _message(record)
        api = api_of(endpoint.method, endpoint.path, message=endpoint.websocket)
        if not self._fingerprints or not api or record.redactions or not isinstance(message, dict):
            return None
        return self._fingerprints.after(api, row.state, message)

    # ------------------------------------------------------------ the table

    def commit(self, now: float, *, at_once: bool = False) -> None:
        """Write what is new if that is due and the table can be written to. `now`: monotonic seconds. Never raises."""
        table = self._table
        if table is None:
            self.index.changed_branches.clear()
            self.index.changed_rows.clear()
            self.uses.changed.clear()
            return
        if now < self._try_at and not at_once:
            return
        self._try_at = now + (RESTORE_SECONDS if self._restoring else WRITE_SECONDS)
        try:
            if self._is_lost:
                raise TableLost("it could not be read, or could not be written to for a long time")
            if not self._is_open:
                self._open(table)
            if now >= self._check_at:
                self._check_at = now + CHECK_SECONDS
                if not table.is_ours():
                    raise TableLost("the file was replaced")
            self._write(table)
            self._restore(table)
        except (TableBusy, OSError) as error:  # all of it is in memory, or in the logs
            log.debug("%s cannot be used now: %s", table.path.name, error)
            self._shed()
        except TableLost as error:
            log.warning("%s is rebuilt: %s", table.path.name, error)
            self._make_anew(table)

    def close(self) -> None:
        if self._table:
            self._table.close()

    def _write(self, table: Table) -> None:
        index = self.index
        if index.changed_branches:
            table.write(index.changed_branches, index.changed_rows, self.uses.changed)
            index.changed_branches.clear()
            index.changed_rows.clear()
            self.uses.changed.clear()
            if index.forget_oldest(self._most_rows):
                self._complete = False

    def _shed(self) -> None:
        """Drop the oldest sessions, so that memory is bounded even while nothing can be written: they are in the
        logs."""
        index = self.index
        if index.weight > MOST_UNWRITTEN * self._most_rows:
            index.changed_branches.clear()
            index.changed_rows.clear()
            index.forget_oldest(self._most_rows)
            self._complete, self._is_lost = False, True

    def _open(self, table: Table) -> None:
        """Open the table, and load the sessions that were active last."""
        try:
            table.open()
            self.uses.load(table.uses())
            self._is_open = self._is_whole = True
            self._load_recent(table)
        except TableBusy:
            return
        except TableLost:
            self._make_anew(table)

    def _make_anew(self, table: Table) -> None:
        """Rebuild the table. The next commit writes what memory has; the rest is read from the logs."""
        index = self.index
        index.changed_branches |= dict.fromkeys(index.branches.values())
        index.changed_rows |= {row: None for branch in index.branches.values() for row in branch.rows.values()}
        self.uses.change_all()
        self._is_open = self._is_whole = False
        self._is_lost = True
        with contextlib.suppress(TableBusy, TableLost):
            table.create()
            self._is_open, self._is_lost = True, False
            self._restoring = None if self._complete else self._restored()
            self._restore(table)

    def _load_recent(self, table: Table) -> None:
        """Load the most recently active sessions, as many as fit; they are the last to be forgotten."""
        for root in table.roots():
            if self.index.weight > self._most_rows * 0.9:
                self._complete = False
                return
            self._load(root)
            self.index.roots.move_to_end(root, last=False)
        self._complete = True

    def _load(self, root: str | None) -> None:
        if root is None or root in self.index.roots:
            return
        for branch, rows in self._ask(lambda table: table.load(root)) or ():
            self.index.add(branch)
            for row in rows:
                self.index.add_row(row)

    def _ask(self, question: Callable[[Table], T]) -> T | None:
        """Ask the table. `None` while it cannot be asked: then memory is all there is, and `commit` repairs the
        table."""
        if self._table is None:
            return None
        try:
            return question(self._table)
        except TableBusy:
            return None
        except TableLost:
            self._is_lost, self._try_at = True, 0.0
            return None

    # ------------------------------------------------------------ from the logs

    def _restore(self, table: Table) -> None:
        if self._is_whole:
            return
        if self._restoring:
            ended = next(self._restoring, _END) is _END
            self._write(table)
            if not ended:
                return
            self._restoring = None
            self._load_recent(table)
        if not self.index.changed_branches:
            table.finish()
            self._is_whole = True

    def _restored(self) -> Iterator[None]:
        """Read sessions from the logs, and yield after every piece."""
        budget = RESTORE_BYTES
        for provider, name, lines in self._logs():
            if name in self.index.branches:
                continue
            scratch = Memory(fingerprints=self._fingerprints)
            for line in lines:
                budget -= len(line)
                if record := _record(line):
                    scratch.learn(provider, name, record)
                if budget <= 0:
                    yield
                    budget = RESTORE_BYTES
            self.uses.take_over(scratch.uses)
            if branch := scratch.index.branches.get(name):
                self._take_over(branch)

    def _take_over(self, branch: Branch) -> None:
        index = self.index
        if branch.name in index.branches:
            return  # it was loaded into memory meanwhile
        rows = list(branch.rows.values())
        if branch.root in index.roots:
            branch.rows, branch.threads = {}, {}
            index.add(branch)
            for row in rows:
                index.add_row(row)
        index.changed_branches[branch] = None
        index.changed_rows |= dict.fromkeys(rows)


_END = object()


# ---------------------------------------------------------------- records


def _record(line: bytes) -> Record | None:
    try:
        record = decode(line, "wire")
    except (ValueError, RecursionError):  # damage; the rest is read
        return None
    return record if isinstance(record, Record) else None


class _Endpoint(NamedTuple):
    method: str
    path: str
    websocket: bool


def _has_ended(provider: str, endpoint: _Endpoint | None, record: Response) -> bool:
    """Whether an answer has ended, although its record says that it has not."""
    dialect = dialect_of(provider, endpoint.path) if endpoint else None
    return is_complete(record, dialect, websocket=bool(endpoint and endpoint.websocket))


def _message(record: Response) -> object:
    return value(record.message) if isinstance(record.message, msgspec.Raw) else None


def _branch_of(provider: str, session: str, record: WireStart) -> Branch:
    return Branch(
        name=session,
        provider=provider,
        upstream=record.upstream,
        root=root_of(session),
        created_at=record.ts,
        last_activity=record.ts,
        identity=record.identity,
        agent=record.agent,
    )


def _row_of(branch: Branch, record: Request) -> CallRow | None:
    state = state_of(record.fingerprint)
    if state is None:
        return None
    thread, kind = record.thread or "main", record.kind or "main"
    return CallRow(branch, record.seq, thread, kind, state, retry_of=record.retry_of)
