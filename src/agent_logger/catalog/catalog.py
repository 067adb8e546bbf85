"""The catalog: every session, from everything that was found on this machine, as queries.

Commands, the page, and programs that build on this use it. It is derived from the files and keeps up with them: a query
is answered from what was on the disk no more than a second before. Its database may be deleted at any time.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from msgspec.structs import replace

from agent_logger.catalog import queries
from agent_logger.catalog.database import (
    DAMAGED,
    UnusableError,
    discard,
    is_damage,
    is_file,
    is_same_file,
    open_database,
    open_in_memory,
)
from agent_logger.catalog.queries import NEED_DETAILS, Order
from agent_logger.catalog.refresh.refresh import Progress, RefreshReport, changes, refresh
from agent_logger.catalog.schema import CATALOG, TEXT_INDEX
from agent_logger.catalog.summary import Filter, Hit, SessionSummary, Uncounted
from agent_logger.errors import StoreError
from agent_logger.home.facts import session_labelled

# A query imports what it needs: most need little, and are made by commands that end at once.
if TYPE_CHECKING:
    from agent_logger.catalog.discovery.sessions import SessionLocation
    from agent_logger.catalog.joining.calls import CallDetail, WireCall
    from agent_logger.catalog.ledger.ledger import LedgerRow
    from agent_logger.catalog.ledger.totals import By, Total
    from agent_logger.catalog.removal import OwnFiles
    from agent_logger.catalog.search.search import Coverage
    from agent_logger.catalog.tree import SessionNode
    from agent_logger.model.session import Session

FRESH_SECONDS = 1.0
SHORT_ID = 8  # characters, where they are enough
DETAILS_AT_ONCE = 8  # sessions
MOST_LOOKS = 3
MOST_ASKED = 1 << 31  # sessions or hits; SQLite has no infinite numbers
INDEX_SECONDS = 1.0  # that a search spends on adding what is missing from the index

T = TypeVar("T")


class Catalog:
    """Answers queries about all sessions: `with Catalog.open() as catalog: ...`

    A catalog belongs to one thread; another thread opens its own. Any number of them, in any number of processes, may
    be open at once. `problem` says why the catalog is in memory alone, if it is. To call `refresh` in another thread
    and never wait for it here, pass an infinite `fresh_seconds`.
    """

    def __init__(self, home: Path, fresh_seconds: float = FRESH_SECONDS) -> None:
        self.home = home
        self._fresh_seconds = fresh_seconds
        self.problem: str | None = None
        self._path = home / "catalog.db"
        self._text_path = home / "catalog-text.db"
        self._open: sqlite3.Connection | None = None
        self._texts: sqlite3.Connection | None = None
        self._unsealed_since = float("inf")  # as the last refresh saw it
        self._refreshed = float("-inf") if fresh_seconds < float("inf") else 0.0

    @classmethod
    def open(cls, home: Path | None = None) -> Self:
        """Open the catalog of this user's home, or another one, over all agents' files that it knows of."""
        from agent_logger import config

        return cls(home or config.home())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for database in (self._open, self._texts):
            if database:
                database.close()
        self._open = self._texts = None

    # ------------------------------------------------------------ keeping up

    def refresh(self, progress: Progress | None = None) -> RefreshReport:
        """Take in what has changed since the last refresh by any process. Queries do so by themselves."""
        done = self._with_recovery(lambda database: refresh(database, self.home, progress))
        self._refreshed, self._unsealed_since = time.monotonic(), done.unsealed_since
        return done

    @property
    def version(self) -> int:
        """A number that changes with every change in the catalog. Looks at no files: `refresh` does."""
        return self._with_recovery(changes)

    def read_details(self, sessions: Iterable[str] | None = None, progress: Progress | None = None) -> bool:
        """Read titles, exchanges and tools of all sessions, or of these, where they are not known yet. Returns whether
        any were not."""
        left = self._query(lambda database: queries.outdated_sessions(database, sessions))
        if not left:
            return False
        from agent_logger.catalog.details import read_details

        total, done = sum(source.size for source in left), 0
        for start in range(0, len(left), DETAILS_AT_ONCE):
            batch = left[start : start + DETAILS_AT_ONCE]
            self._with_recovery(partial(read_details, batch=batch))
            done += sum(source.size for source in batch)
            if progress:
                progress(done, total)
        return True

    def index(self, progress: Progress | None = None, *, seconds: float = float("inf")) -> bool:
        """Add to the search index what is missing from it, the session last active first; for no longer than `seconds`,
        if they are given. Returns whether the index is complete then. If another process is filling the index, this one
        leaves it to that."""
        from agent_logger.catalog.background import indexing
        from agent_logger.catalog.search.search import index

        self._query(lambda _: None)
        with indexing(self.home) as mine:
            if not mine:
                return self.coverage.is_whole
            if seconds == float("inf"):
                self._count_damaged_lines(None)
            return self._with_texts(lambda database, texts: index(database, texts, progress, seconds))

    def is_sealing_due(self, after_seconds: float | None) -> bool:
        """Whether there may be parts of logs that were not touched for so long, as the last refresh saw."""
        from agent_logger.catalog.sealing import is_due

        return self._with_recovery(lambda database: is_due(database, self._unsealed_since, after_seconds))

    def seal(self, after_seconds: float | None, *, seconds: float = float("inf")) -> int:
        """Seal the parts of our logs that were not touched for so long (None: never), wherever they are; for no longer
        than `seconds`, if they are given. Returns how many were sealed."""
        from agent_logger.catalog.sealing import seal

        return self._with_recovery(lambda database: seal(database, self.home, after_seconds, seconds))

    @property
    def backlog(self) -> int:
        """The bytes of sessions that were only read for their cost. Looks at no files."""
        return self._with_recovery(queries.backlog)

    @property
    def coverage(self) -> "Coverage":
        """How much of all sessions the search index covers."""
        from agent_logger.catalog.search.search import coverage

        return self._with_texts(coverage)

    # ------------------------------------------------------------ questions

    def sessions(
        self,
        where: Filter | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        order: Order = "active",
    ) -> list[SessionSummary]:
        """Return sessions, the one last active first, or in another order, always from the most to the least."""
        conditions = where or Filter()
        limit = MOST_ASKED if limit is None else min(limit, MOST_ASKED)
        offset = min(offset, MOST_ASKED)
        if conditions.title or order in NEED_DETAILS:
            self.read_details()
        elif conditions.live:
            self._read_live_details()
        ids: list[str] = []
        for _ in range(MOST_LOOKS):  # reading details may show that others were active later
            ids = self._query(
                lambda database: queries.session_ids(database, conditions, order, limit, offset)
            )
            if not self.read_details(ids):
                break
        self._count_damaged_lines(ids)
        self._note_closed_logs(ids)
        return self._query(lambda database: queries.summaries(database, ids))

    def count(self, where: Filter | None = None) -> int:
        """Return how many sessions there are."""
        conditions = where or Filter()
        if conditions.title:
            self.read_details()
        elif conditions.live:
            self._read_live_details()
        return self._query(lambda database: queries.count_sessions(database, conditions))

    def summary(self, session_id: str) -> SessionSummary | None:
        self.read_details([session_id])
        self._count_damaged_lines([session_id])
        self._note_closed_logs([session_id])
        return next(iter(self._query(lambda database: queries.summaries(database, [session_id]))), None)

    def resolve(self, given: str) -> list[str]:
        """Return the ids of the sessions that are meant: the one with that id, log name or path; the one that last got
        that label; else all whose id or name begins so."""
        name = session_labelled(self.home, given) or given
        return self._query(lambda database: queries.resolve(database, name))

    def short_ids(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Return a unique beginning of each id: eight characters, or as many as tell it from all others."""
        return self._query(lambda database: queries.beginnings(database, session_ids, SHORT_ID))

    def session(self, session_id: str) -> "Session | None":
        """Return a session from all its witnesses. It is named by the client's id, the name of a log, or a unique
        beginning."""
        from agent_logger.catalog.details import load_session
        from agent_logger.catalog.live.liveness import in_flight, mark_interrupted

        names = self.resolve(session_id)
        session = self._query(lambda database: load_session(database, names[0])) if len(names) == 1 else None
        if session is None:
            return None
        if files := self.damaged_files(names[0]).get(names[0]):
            session = replace(session, damaged_lines=sum(files.values()))
        if not in_flight(session):
            return session
        summary = self.summary(names[0])
        return session if summary and summary.live else mark_interrupted(session)

    def damaged_files(self, *session_ids: str) -> dict[str, dict[Path, int]]:
        """Return how many damaged lines are in which file, for each of these sessions that has any; `verify` shows
        them."""
        self._count_damaged_lines(session_ids)
        return self._with_recovery(lambda database: queries.damaged_files(database, session_ids))

    def _count_damaged_lines(self, session_ids: Sequence[str] | None) -> None:
        if self._query(lambda database: queries.sources_to_count(database, session_ids)):
            from agent_logger.catalog.refresh.damage import count_damaged_lines

            self._with_recovery(lambda database: count_damaged_lines(database, session_ids))

    def _read_live_details(self) -> None:
        """Read the details of all sessions that may be live, so that they show whether they are."""
        self._note_closed_logs(None)
        self.read_details(self._query(queries.live_candidates))

    def _note_closed_logs(self, session_ids: Sequence[str] | None) -> None:
        if self._query(lambda database: queries.open_logs(database, session_ids)):
            from agent_logger.catalog.live.closed_logs import note_closed_logs

            self._with_recovery(lambda database: note_closed_logs(database, session_ids))

    def calls(self, session_id: str) -> "list[WireCall]":
        """Return the session's calls, as the wire saw them, in the order of time; none if it did not."""
        from agent_logger.catalog.joining.calls import calls_of

        return calls_of(self._logs(session_id))

    def call(self, session_id: str, call: str) -> "CallDetail | None":
        """Return a call of the session in full, by its id, or the beginning of it."""
        from agent_logger.catalog.joining.calls import call_detail

        return call_detail(self.calls(session_id), call)

    def calls_by_turn(self, session_id: str) -> "dict[int | None, list[WireCall]]":
        """Return the calls under the turns they were made for, by the turn's place in `Session.turns`; `None`: there is
        no turn."""
        from agent_logger.catalog.joining.calls_by_turn import calls_by_turn

        session = self.session(session_id)
        return calls_by_turn(session, self.calls(session_id)) if session else {}

    def tree(self, session_id: str) -> "SessionNode | None":
        """Return the session's sub-agents and branches, and the sessions it was forked from or that were forked from
        it."""
        from agent_logger.catalog.tree import TreeDetails, branches_of, tree

        names = self.resolve(session_id)
        details = TreeDetails(self.summary, self.session, lambda name: branches_of(self._logs(name)))
        return tree(names[0], self._query(queries.parents), details) if len(names) == 1 else None

    def places(self, session_id: str) -> "list[SessionLocation]":
        """Return where each witness has the session; empty unless exactly one session is meant."""
        from agent_logger.catalog.discovery.sessions import place_of

        names = self.resolve(session_id)
        if len(names) != 1:
            return []
        return [place_of(source) for source in self._query(partial(queries.sources_of, session=names[0]))]

    def _logs(self, session_id: str) -> list[Path]:
        return [
            place.path for place in self.places(session_id) if place.agent is None and not place.is_of_hooks
        ]

    def ledger(self, where: Filter | None = None, *, session: str | None = None) -> "Iterator[LedgerRow]":
        """Yield every response of a model once, in the order of time; those of one session only, if it is given."""
        from agent_logger.catalog.usage_queries import ledger_rows

        conditions = where or Filter()
        return iter(self._query(lambda database: list(ledger_rows(database, conditions, session))))

    def counted_elsewhere(self, session: str) -> "list[LedgerRow]":
        """Return the responses of a session that do not count in it: a session that it was forked from had them
        first."""
        from agent_logger.catalog.usage_queries import counted_elsewhere

        return self._query(lambda database: list(counted_elsewhere(database, session)))

    def uncounted(self, session: str, where: Filter | None = None) -> list[Uncounted]:
        """Return what a session contains that is in no sum, each with the reason. Only the times of the filter
        apply."""
        from agent_logger.catalog.ledger.uncounted import uncounted

        conditions, logs = where or Filter(), set(self._logs(session))
        rows, elsewhere = list(self.ledger(session=session)), self.counted_elsewhere(session)
        calls = [call for call in self.calls(session) if call.log in logs]
        omitted = uncounted(rows, elsewhere, self.session(session), calls)
        return [uncounted for uncounted in omitted if queries.is_within(uncounted.at, conditions)]

    def usage(
        self, by: "By" = "day", where: Filter | None = None, *, zone: tzinfo | None = None
    ) -> "dict[str | None, Total]":
        """Return totals by day (`2026-11-15`), ISO week (`2026-W46`) or month, in their order; by session, model,
        project, agent or tool, the most expensive first. What belongs to none is last, under `None`. Days are those of
        `zone`, or of this machine.

        By tool, the cost of a response is divided among the tools that it called.
        """
        from agent_logger.catalog.usage_queries import usage

        if by == "tool":
            self.read_details()
        return self._query(lambda database: usage(database, by, where or Filter(), zone))

    def total(self, where: Filter | None = None) -> "Total":
        from agent_logger.catalog.usage_queries import total_usage

        return self._query(lambda database: total_usage(database, where or Filter()))

    def sessions_with_unlisted_calls(self, where: Filter | None = None) -> int:
        """Return how many of the sessions in the total have only their agents' files as witnesses, which leave out
        calls outside the conversation."""
        from agent_logger.catalog.usage_queries import sessions_with_unlisted_calls

        return self._query(lambda database: sessions_with_unlisted_calls(database, where or Filter()))

    def search(self, words: str, *, limit: int = 20) -> Sequence[Hit]:
        """Search, the best hit first: words, `"phrases"`, `begin*`, `tool:Bash`, `file:login.py`, `is:error`,
        `project:`, `agent:`.

        What the index does not cover yet is not found: `coverage` says how much it does. Raises `ValueError` if a field
        such as `tool:` has no value.
        """
        from agent_logger.catalog.search.query import read
        from agent_logger.catalog.search.search import search

        query, limit = read(words), min(limit, MOST_ASKED)
        self.index(seconds=INDEX_SECONDS)
        before = self._texts
        hits = self._with_texts(lambda database, texts: search(database, texts, query, limit))
        if self._texts is before:
            return hits
        self.index(seconds=INDEX_SECONDS)  # it was damaged or deleted, and started again
        return self._with_texts(lambda database, texts: search(database, texts, query, limit))

    # ------------------------------------------------------------ removing

    def files_of_ours(self, *session_ids: str) -> "Sequence[OwnFiles]":
        """Return what we have written of sessions: logs, copies of agents' files, events of hooks."""
        from agent_logger.catalog.removal import own_files

        sources = {
            session_id: self._query(partial(queries.sources_of, session=session_id))
            for session_id in dict.fromkeys(session_ids)
        }
        return own_files(self.home, sources)

    def branches(self, *session_ids: str) -> dict[str, str]:
        """Return the other sessions whose beginning is in a log of these, or of such a branch, each with the session it
        continues from: without that session's log they would lose their beginning."""
        from agent_logger.catalog.removal import WireLog, branches_of

        rows = self._query(queries.logs_and_forks)
        logs = [(WireLog(session, Path(path)), forked) for session, path, forked in rows]
        return branches_of(session_ids, (log for log, _ in logs), (log for log, forked in logs if forked))

    def remove(self, *session_ids: str) -> "Sequence[OwnFiles]":
        """Delete what we have written of sessions, and do not show them any more, even if their agent still has them.
        Returns what was deleted. Raises `StoreError` if one of them is being recorded, or has `branches` that are to
        stay; and `OSError`."""
        from agent_logger.catalog.removal import remove_files
        from agent_logger.catalog.search.index import erase

        self._refuse_if_branches_stay(session_ids)
        ours = self.files_of_ours(*session_ids)
        remove_files(self.home, session_ids, ours)
        self._with_texts(lambda _, texts: erase(texts, session_ids))
        self.refresh()
        return ours

    def _refuse_if_branches_stay(self, session_ids: Sequence[str]) -> None:
        if branches := self.branches(*session_ids):
            parents, names = ", ".join(dict.fromkeys(branches.values())), ", ".join(branches)
            raise StoreError(
                f"{names} would lose what {parents} recorded before the fork; remove them together"
            )

    # ------------------------------------------------------------ the database, whatever happens to it

    def _query(self, question: Callable[[sqlite3.Connection], T]) -> T:
        if time.monotonic() - self._refreshed > self._fresh_seconds:
            self.refresh()
        return self._with_recovery(question)

    def _with_recovery(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query, and run it again with another database if this one fails: a new one, else one in memory."""
        try:
            return work(self._database())
        except DAMAGED as error:
            if self._open and not is_file(self._open):
                raise
            self._recover(error)
        return work(self._database())

    def _with_texts(self, work: Callable[[sqlite3.Connection, sqlite3.Connection], T]) -> T:
        """Run a query that needs the search index too, with recovery. The index is replaced if another catalog does not
        help."""
        try:
            return self._with_recovery(lambda database: work(database, self._text_database()))
        except DAMAGED as error:
            if self._texts is None or self.problem:
                raise
            self._recover_texts(self._texts, error)
        return self._with_recovery(lambda database: work(database, self._text_database()))

    def _text_database(self) -> sqlite3.Connection:
        if self._texts and not self.problem and not is_same_file(self._texts, self._text_path):
            self._texts.close()
            self._texts = None
        if self._texts is None:
            try:
                if self.problem:
                    raise UnusableError(self.problem)
                self._texts = open_database(self._text_path, TEXT_INDEX)
            except UnusableError as error:
                self._texts, self.problem = open_in_memory(TEXT_INDEX), str(error)
        return self._texts

    def _database(self) -> sqlite3.Connection:
        if self._open and not self.problem and not is_same_file(self._open, self._path):
            self.close()  # the file was deleted
        if self._open is None:
            try:
                self._open = open_database(self._path, CATALOG)
            except UnusableError as error:
                self._open, self.problem = open_in_memory(CATALOG), str(error)
            queries.prepare(self._open)
        return self._open

    def _recover(self, error: Exception) -> None:
        damaged = self._open
        self.close()
        if not (
            damaged and is_damage(error) and discard(damaged, self._path)
        ):  # full, locked, not to be written to
            self._open, self.problem = open_in_memory(CATALOG), f"{self._path}: {error}"
            queries.prepare(self._open)
        refresh(self._database(), self.home)

    def _recover_texts(self, texts: sqlite3.Connection, error: Exception) -> None:
        texts.close()
        is_gone = is_damage(error) and discard(texts, self._text_path)
        self._texts = None if is_gone else open_in_memory(TEXT_INDEX)
