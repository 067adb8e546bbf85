"""The catalog: every session, from everything that was found on this machine, as queries.

Commands, the page, and programs that build on this use it. It is derived from the files and keeps up with them: a query
is answered from what was on the disk no more than a second before. Its database may be deleted at any time.
"""

import copy
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, tzinfo
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from msgspec.structs import replace

from agent_logger.agents.registry import id_and_mark
from agent_logger.catalog import queries, source_queries
from agent_logger.catalog.database import Database
from agent_logger.catalog.engine import Engine
from agent_logger.catalog.folders_of_catalogs import catalog_folder, delete_catalogs_of_several_homes
from agent_logger.catalog.queries import NEED_DETAILS, Order
from agent_logger.catalog.refresh.changes import Progress, changes
from agent_logger.catalog.refresh.refresh import RefreshReport
from agent_logger.catalog.sqlite.recovery import SqliteEngine
from agent_logger.catalog.summary import (
    Filter,
    Hit,
    Ownership,
    SessionChoices,
    SessionHeading,
    SessionSummary,
    Uncounted,
)
from agent_logger.errors import StoreError
from agent_logger.home.homes import FROM_IMPORT, OWN, Homes, homes_of, keys_of
from agent_logger.home.marks import Marks, marked_sessions, read_marks, session_labelled

# A query imports what it needs: most need little, and are made by commands that end at once.
if TYPE_CHECKING:
    from agent_logger.catalog.discovery.sessions import SessionLocation
    from agent_logger.catalog.joining.calls import CallDetail, WireCall
    from agent_logger.catalog.ledger.blocks import UsageBlock
    from agent_logger.catalog.ledger.rows import LedgerRow
    from agent_logger.catalog.ledger.totals import By, Total
    from agent_logger.catalog.removal import OwnFiles
    from agent_logger.catalog.search.query import Query
    from agent_logger.catalog.search.search import Coverage, Searched
    from agent_logger.catalog.tree import SessionNode
    from agent_logger.files.sources import Source
    from agent_logger.model.origin import ImportOrigin
    from agent_logger.model.session import Session

FRESH_SECONDS = 1.0
LAST = "last"  # as a name, the session last active
SHORT_ID = 8  # characters, where they are enough
MOST_CHOICES = 200  # of a pick list
DETAILS_AT_ONCE = 8  # sessions
MOST_LOOKS = 3
MOST_ASKED = 1 << 31  # sessions or hits; SQLite has no infinite numbers
INDEX_SECONDS = 1.0  # time that a search spends on adding what is missing from the index

T = TypeVar("T")


class Catalog:
    """Answers queries about all sessions: `with Catalog.open() as catalog: ...`

    A catalog belongs to one thread; another thread opens its own. Any number of them, in any number of processes, may
    be open at once. `problem` says why the catalog is in memory alone, if it is. To call `refresh` in another thread
    and never wait for it here, pass an infinite `fresh_seconds`.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | Homes,
        fresh_seconds: float = FRESH_SECONDS,
        engine: Engine | None = None,
    ) -> None:
        self.homes = home if isinstance(home, Homes) else Homes(Path(home).expanduser())
        self._folder = catalog_folder(self.homes)
        self._databases = engine or self._engine()
        if not self._databases.is_written:
            fresh_seconds = float("inf")
        self._fresh_seconds = fresh_seconds
        self._unsealed_since = float("inf")  # the time that the last refresh reported
        self._refreshed = float("-inf") if fresh_seconds < float("inf") else 0.0
        self._owner: Ownership | None = None

    @classmethod
    def open(cls, home: str | os.PathLike[str] | None = None, *, homes: Sequence[str | os.PathLike[str]] = ()) -> Self:
        """Open the catalog of this user's home, or another one, over all agents' files that it knows of. With `homes`,
        it is over these instead, of which only the first argument is ever written to; agents' files belong to that one.
        Raises `ConfigError` if one of them is no home."""
        from agent_logger import config

        return cls(homes_of(Path(home or config.home()).expanduser(), homes))

    def _engine(self) -> Engine:
        if not self.homes.database:
            return SqliteEngine(self.homes, self._folder)
        from agent_logger.catalog.postgres.engine import PostgresEngine

        return PostgresEngine(self.homes.database)

    @property
    def is_read_only(self) -> bool:
        """Whether other processes take in what changes in the files, into a database that this catalog only reads."""
        return not self._databases.is_written

    @property
    def problem(self) -> str | None:
        """Why the catalog is in memory alone; None if it is not."""
        return self._databases.problem

    @property
    def home(self) -> Path:
        """The own home: marks are written to it, and the catalog lies in it."""
        return self.homes.own

    @property
    def machines(self) -> dict[str, str]:
        """The names of machines, by key: that of the home that each writes to, or one for what was imported from it."""
        names = dict(self._home_machines if self.homes.below is None else self.homes.machines)
        taken = {name.lower() for name in names.values()}
        for key in self._query(queries.import_machines):
            name = key.removeprefix(FROM_IMPORT) or "imported"
            names[key] = f"{name} (imported)" if name.lower() in taken else name
        return names

    @cached_property
    def _home_machines(self) -> dict[str, str]:
        return self.homes.machines

    def owned_by(self, owner: Ownership) -> Self:
        """Return this catalog with one person's sessions alone: whatever is asked, the others do not exist. It is valid
        for as long as this one is open."""
        limited = copy.copy(self)
        limited._owner = owner
        return limited

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the databases. What the catalog knows stays there for the next one."""
        self._databases.close()

    # ------------------------------------------------------------ keeping up

    def refresh(self, progress: Progress | None = None) -> RefreshReport:
        """Take in what has changed since the last refresh by any process. Queries do so by themselves."""
        done = self._databases.refresh(progress)
        self._refreshed, self._unsealed_since = time.monotonic(), done.unsealed_since
        return done

    @property
    def version(self) -> int:
        """A number that changes with every change in the catalog. Looks at no files: `refresh` does."""
        return self._databases.run(changes)

    def read_details(self, sessions: Iterable[str] | None = None, progress: Progress | None = None) -> bool:
        """Read titles, exchanges and tools of all sessions, or of these, where they are not known yet. Returns whether
        any were not."""
        left = self._query(lambda database: queries.outdated_sessions(database, sessions))
        if not left or not self._databases.is_written:
            return False
        from agent_logger.catalog.details import read_details

        total, done = sum(source.size for source in left), 0
        for start in range(0, len(left), DETAILS_AT_ONCE):
            batch = left[start : start + DETAILS_AT_ONCE]
            self._databases.run(partial(read_details, batch=batch))
            done += sum(source.size for source in batch)
            if progress:
                progress(done, total)
        return True

    def index(self, progress: Progress | None = None, *, seconds: float = float("inf")) -> bool:
        """Add to the search index what is missing from it, the session last active first; for no longer than `seconds`,
        if they are given. Returns whether the index is complete then. If another process is filling the index, this one
        leaves it to that."""
        from agent_logger.catalog.search.search import index

        self._query(lambda _: None)
        with self._databases.indexing() as mine:
            if not mine:
                return self.coverage.is_whole
            if seconds == float("inf"):
                self._index_on_all_cores(progress)
                self._count_damaged_lines(None)
            return self._databases.run_with_texts(lambda database, texts: index(database, texts, progress, seconds))

    def _index_on_all_cores(self, progress: Progress | None) -> None:
        from agent_logger.catalog.search.parallel import index_new_sessions

        self._databases.run_with_texts(
            lambda database, texts: index_new_sessions(self._folder, database, texts, progress)
        )

    def is_sealing_due(self, after_seconds: float | None) -> bool:
        """Whether there may be parts of logs that were not touched for so long, as the last refresh saw."""
        from agent_logger.catalog.sealing import is_due

        if not self.homes.are_own_alone:  # logs of another home are never changed
            return False
        return self._databases.run(lambda database: is_due(database, self._unsealed_since, after_seconds))

    def seal(self, after_seconds: float | None, *, seconds: float = float("inf")) -> int:
        """Seal the parts of our logs that were not touched for so long (None: never), wherever they are; for no longer
        than `seconds`, if they are given. Returns how many were sealed."""
        from agent_logger.catalog.sealing import seal

        if not self.homes.are_own_alone:
            return 0
        return self._databases.run(lambda database: seal(database, self.home, after_seconds, seconds))

    @property
    def backlog(self) -> int:
        """The bytes of sessions that were only read for their cost. Looks at no files."""
        return self._databases.run(queries.backlog)

    @property
    def coverage(self) -> "Coverage":
        """How much of all sessions the search index covers."""
        from agent_logger.catalog.search.search import coverage

        return self._databases.run_with_texts(coverage)

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
        conditions = self._conditions(where)
        limit = MOST_ASKED if limit is None else min(limit, MOST_ASKED)
        offset = min(offset, MOST_ASKED)
        self._read_conditions(conditions, needs_details=order in NEED_DETAILS)
        ids: list[str] = []
        for _ in range(MOST_LOOKS):  # reading details may show that others were active later
            ids = self._query(lambda database: queries.session_ids(database, conditions, order, limit, offset))
            if not self.read_details(ids):
                break
        self._count_damaged_lines(ids)
        self._note_closed_logs(ids)
        return self._with_marks(self._summaries(ids))

    def _summaries(self, ids: Sequence[str]) -> list[SessionSummary]:
        machines, people = self.machines, self.homes.people
        return self._query(lambda database: queries.summaries(database, ids, machines, people))

    def shared_sessions(self, homes: Iterable[str]) -> list[str]:
        """Return the sessions that are in these homes, named by their keys, and in others too."""
        return self._query(lambda database: queries.shared_sessions(database, list(homes)))

    def _visible(self, ids: Iterable[str]) -> list[str]:
        """Return those of the sessions that are this catalog's, if it is limited."""
        if self._owner is None:
            return list(ids)
        names = list(ids)
        where = Filter(sessions=frozenset(names), owner=self._owner)
        within = set(self._query(lambda database: queries.session_ids(database, where, "active", MOST_ASKED, 0)))
        return [name for name in names if name in within]

    def count(self, where: Filter | None = None) -> int:
        """Return how many sessions there are."""
        conditions = self._conditions(where)
        self._read_conditions(conditions)
        return self._query(lambda database: queries.count_sessions(database, conditions))

    def choices(self, most: int = MOST_CHOICES) -> SessionChoices:
        """Return the agents, projects and models of all sessions, the one last active first, at most so many of each;
        all labels, and all machines."""
        labels = tuple(sorted({label for marks in self.marks().values() for label in marks.labels}))
        homes = self.homes.folders if self._owner is None else self._owner.homes
        machines = tuple(name for home, name in self.machines.items() if home in homes)
        people = tuple(sorted({name for home, name in self.homes.people.items() if name and home in homes}))
        chosen = self._query(lambda database: queries.choices(database, most, self._owner))
        return replace(chosen, labels=labels, machines=machines, people=people)

    def matching(self, text: str, *, limit: int) -> list[SessionSummary]:
        """Return sessions with all words of the text in the title, the project or the id, the one last active first.
        Reads no files: a title that was not read yet is not found."""
        words = text.split()
        return self._summaries(self._query(lambda database: queries.matching_ids(database, words, limit, self._owner)))

    def summary(self, session_id: str) -> SessionSummary | None:
        """Return a session in short; None if there is no session of that id."""
        if not self._visible([session_id]):
            return None
        self.read_details([session_id])
        self._count_damaged_lines([session_id])
        self._note_closed_logs([session_id])
        return next(iter(self._with_marks(self._summaries([session_id]))), None)

    def resolve(self, given: str) -> list[str]:
        """Return the ids of the sessions that are meant: the one with that id, log name or path; the one that last got
        that label; all whose id or name begins so; for `last`, the one last active."""
        labelled = (session_labelled(folder, given) for folder in self._marked_homes)
        name = next(filter(None, labelled), given)
        name = self._current_ids([name]).get(name, name) if id_and_mark(name) else name
        matching = self._visible(self._query(lambda database: queries.resolve(database, name)))
        return [session.id for session in self.sessions(limit=1)] if given == LAST and not matching else matching

    def headings(self, session_ids: Iterable[str]) -> dict[str, SessionHeading]:
        """Return what a person knows each session by."""
        ids = self._visible(session_ids)
        self.read_details(ids)
        return self._query(lambda database: queries.headings(database, ids))

    def short_ids(self, session_ids: Iterable[str] | None = None) -> dict[str, str]:
        """Return a unique beginning of each id, or of those of all sessions: eight characters, or as many as tell it
        from all others."""
        if session_ids is None:
            beginnings = self._query(lambda database: queries.all_beginnings(database, SHORT_ID))
        else:
            beginnings = self._query(lambda database: queries.beginnings(database, session_ids, SHORT_ID))
        return {name: beginnings[name] for name in self._visible(beginnings)} if self._owner else beginnings

    def session(self, session_id: str) -> "Session | None":
        """Return a session from all its witnesses. It is named by the client's id, the name of a log, or a unique
        beginning."""
        name = self._only(session_id)
        return self.read(name) if name else None

    def _only(self, given: str) -> str | None:
        """Return the id of the session that is meant, if there is exactly one."""
        names = self.resolve(given)
        return names[0] if len(names) == 1 else None

    def read(self, session_id: str) -> "Session | None":
        """Return the session with exactly this id from all its witnesses; None if its files cannot be read."""
        from agent_logger.catalog.details import load_session
        from agent_logger.catalog.live.liveness import in_flight, mark_interrupted

        is_visible = bool(self._visible([session_id]))
        session = self._query(lambda database: load_session(database, session_id)) if is_visible else None
        if session is None:
            return None
        if files := self.damaged_files(session_id).get(session_id):
            session = replace(session, damaged_lines=sum(files.values()))
        if origins := self._origins(session_id):
            session = replace(session, imported=origins)
        if not in_flight(session):
            return session
        summary = self.summary(session_id)
        return session if summary and summary.live else mark_interrupted(session)

    def _origins(self, session_id: str) -> "list[ImportOrigin]":
        """Return the imports that a session is from."""
        from agent_logger.archive.imported import origin_of

        imports = dict.fromkeys(
            (source.home, source.imported) for source in self.sources(session_id) if source.imported
        )
        origins = (origin_of(self.homes.folders[home], name) for home, name in imports)
        return [origin for origin in origins if origin]

    def damaged_files(self, *session_ids: str) -> dict[str, dict[Path, int]]:
        """Return how many damaged lines are in which file, for each of these sessions that has any; `verify` shows
        them."""
        names = self._visible(session_ids)
        self._count_damaged_lines(names)
        return self._databases.run(lambda database: source_queries.damaged_files(database, names))

    def _count_damaged_lines(self, session_ids: Sequence[str] | None) -> None:
        if not self._databases.is_written:
            return
        if self._query(lambda database: source_queries.sources_to_count(database, session_ids)):
            self._databases.count_damaged_lines(session_ids)

    def _read_conditions(self, conditions: Filter, *, needs_details: bool = False) -> None:
        """Read what the conditions are about: titles, or which sessions are live, which the details of those show that
        may be."""
        if conditions.title or needs_details:
            self.read_details()
        elif conditions.live:
            self._note_closed_logs(None)
            self.read_details(self._query(queries.live_candidates))

    def _note_closed_logs(self, session_ids: Sequence[str] | None) -> None:
        if not self._databases.is_written:
            return
        if self._query(lambda database: source_queries.open_logs(database, session_ids)):
            from agent_logger.catalog.live.closed_logs import note_closed_logs

            self._databases.run(lambda database: note_closed_logs(database, session_ids))

    def calls(self, session_id: str) -> "list[WireCall]":
        """Return the session's calls, as the wire saw them, in the order of time; none if it did not."""
        from agent_logger.catalog.joining.calls import calls_of

        return calls_of(self.logs(session_id))

    def call(self, session_id: str, call: str, *, since: str | None = None) -> "CallDetail | None":
        """Return a call of the session in full, by its id, or the beginning of it, and what changed in it since the
        call before in its thread, or since another."""
        from agent_logger.catalog.joining.calls import call_detail

        return call_detail(self.calls(session_id), call, since)

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

        name = self._only(session_id)
        details = TreeDetails(self.summary, self.session, lambda name: branches_of(self.logs(name)))
        return tree(name, self._query(queries.parents), details) if name else None

    def places(self, session_id: str) -> "list[SessionLocation]":
        """Return where each witness has the session; empty unless exactly one session is meant."""
        from agent_logger.catalog.discovery.sessions import place_of

        name = self._only(session_id)
        return list(map(place_of, self.sources(name))) if name else []

    def sources(self, session_id: str) -> "list[Source]":
        """Return the session with exactly this id as each witness has it, not opened."""
        visible = self._visible([session_id])
        return self._query(partial(source_queries.sources_of, session=session_id)) if visible else []

    def titles_beside(self, session_id: str) -> dict[str, str]:
        """Return titles in files beside those of the session, which may be its own, by the line that each ends at."""
        visible = self._visible([session_id])
        return self._query(partial(source_queries.summaries_beside, session=session_id)) if visible else {}

    def forks(self, session_id: str) -> list[str]:
        """Return the sessions that were forked from this one, the one that began first at the beginning."""
        parents = self._query(queries.parents)
        return self._visible(name for name, parent in parents.items() if parent == session_id)

    def stamps(self) -> dict[str, tuple[str, int]]:
        """Return the stamp of each session, which changes with its files, and the size of these."""
        stamps = self._query(queries.stamps)
        return {name: stamps[name] for name in self._visible(stamps)} if self._owner else stamps

    def logs(self, session_id: str) -> list[Path]:
        """Return our logs of the session, each by its first part; of several homes, with their copies."""
        return [place.path for place in self.places(session_id) if place.is_log]

    def ledger(self, where: Filter | None = None, *, session: str | None = None) -> "Iterator[LedgerRow]":
        """Yield every response of a model once, in the order of time; those of one session only, if it is given."""
        from agent_logger.catalog.usage_queries import ledger_rows

        conditions = self._conditions(where)
        return iter(self._query(lambda database: list(ledger_rows(database, conditions, session))))

    def counted_elsewhere(self, session: str) -> "list[LedgerRow]":
        """Return the responses of a session that do not count in it: a session that it was forked from had them
        first."""
        from agent_logger.catalog.usage_queries import counted_elsewhere

        rows = self._query(lambda database: list(counted_elsewhere(database, session)))
        visible = set(self._visible({session, *(row.session for row in rows)}))
        return [row for row in rows if session in visible and row.session in visible]

    def uncounted(self, session: str, where: Filter | None = None) -> list[Uncounted]:
        """Return what a session contains that is in no sum, each with the reason. Only the times of the filter
        apply."""
        from agent_logger.catalog.ledger.uncounted import uncounted

        conditions, logs = where or Filter(), set(self.logs(session))
        rows, elsewhere = list(self.ledger(session=session)), self.counted_elsewhere(session)
        calls = [call for call in self.calls(session) if call.log in logs]
        omitted = uncounted(rows, elsewhere, self.session(session), calls)
        return [uncounted for uncounted in omitted if queries.is_within(uncounted.at, conditions)]

    def usage(
        self, by: "By" = "day", where: Filter | None = None, *, zone: tzinfo | None = None
    ) -> "dict[str | None, Total]":
        """Return totals by day (`2026-11-15`), ISO week (`2026-W46`) or month, in their order; by session, model,
        project, agent, machine, person or tool, the most expensive first. What belongs to none is last, under `None`.
        Days are those of `zone`, or of this machine. What several machines have counts for the one that had it first,
        or else for that of the own home; a person is one of a hub.

        By tool, the cost of a response is divided among the tools that it called.
        """
        from agent_logger.catalog.usage_queries import usage

        if by == "tool":
            self.read_details()
        conditions = self._conditions(where)
        totals = self._query(lambda database: usage(database, by, conditions, zone))
        return self._by_name(totals, by)

    def _by_name(self, totals: "dict[str | None, Total]", by: "By") -> "dict[str | None, Total]":
        """Return what is by home by machine or person."""
        from agent_logger.catalog.ledger.totals import in_order, sum_of

        if by not in ("machine", "person"):
            return totals
        names = self.machines if by == "machine" else self.homes.people
        groups: dict[str | None, list[Total]] = {}
        for home, total in totals.items():
            groups.setdefault(names.get(home or OWN, home), []).append(total)
        return in_order({name: sum_of(group) for name, group in groups.items()}, by)

    def usage_over_time(
        self, step: "By", by: "By", where: Filter | None = None, *, zone: tzinfo | None = None
    ) -> "dict[str | None, dict[str | None, Total]]":
        """Return totals by day, week or month (`step`), and within each by model, project, agent, machine or
        person, in no order."""
        from agent_logger.catalog.usage_queries import usage_over_time

        conditions = self._conditions(where)
        over_time = self._query(lambda database: usage_over_time(database, step, by, conditions, zone))
        return {moment: self._by_name(totals, by) for moment, totals in over_time.items()}

    def total(self, where: Filter | None = None) -> "Total":
        """Return the tokens, the cost and the number of responses of all sessions, or of those that match."""
        from agent_logger.catalog.usage_queries import total_usage

        conditions = self._conditions(where)
        return self._query(lambda database: total_usage(database, conditions))

    def usage_blocks(self, where: Filter | None = None) -> "list[UsageBlock]":
        """Return totals by blocks of five hours, in the order of time. Blocks are those of one agent's plan: name the
        agent in the filter. The times of the filter select whole blocks."""
        from agent_logger.catalog.usage_queries import usage_blocks

        conditions = self._conditions(where)
        always = replace(conditions, since=None, until=None)
        blocks = self._query(lambda database: usage_blocks(database, always))
        return [block for block in blocks if queries.overlaps(block.start, block.last, conditions)]

    def active_block(self, now: datetime) -> "UsageBlock | None":
        """Return the block that is not over yet, of the agent whose plans have blocks; None if there is none."""
        from agent_logger.agents.registry import block_limited_agent
        from agent_logger.catalog.usage_queries import active_block

        conditions = Filter(agent=block_limited_agent())
        return self._query(lambda database: active_block(database, conditions, now))

    def unpriced_models(self, where: Filter | None = None) -> dict[str | None, int]:
        """Return how many responses of which models have no price; `None` is a model that is not known."""
        from agent_logger.catalog.usage_queries import unpriced_models

        conditions = self._conditions(where)
        return self._query(lambda database: unpriced_models(database, conditions))

    def sessions_with_unlisted_calls(self, where: Filter | None = None) -> int:
        """Return how many of the sessions in the total have only their agents' files as witnesses, which leave out
        calls outside the conversation."""
        from agent_logger.catalog.usage_queries import sessions_with_unlisted_calls

        conditions = self._conditions(where)
        return self._query(lambda database: sessions_with_unlisted_calls(database, conditions))

    def search(
        self, words: str, *, limit: int = 20, since: date | None = None, until: date | None = None
    ) -> Sequence[Hit]:
        """Search, the best hit first: words, `"phrases"`, `begin*`, `tool:Bash`, `file:login.py`, `is:error`,
        `project:`, `agent:`, `machine:`, `person:`, `label:`, `is:pinned`. `since` and `until` are as in a `Filter`.

        What the index does not cover yet is not found: `coverage` says how much it does. Raises `ValueError` if a field
        such as `tool:` has no value.
        """
        from agent_logger.catalog.search.search import search

        limit = min(limit, MOST_ASKED)
        self._add_to_index()
        before = self._databases.texts
        hits = self._search(words, since, until, partial(search, limit=limit))
        if self._databases.texts is before:
            return hits
        self._add_to_index()  # it was damaged or deleted, and started again
        return self._search(words, since, until, partial(search, limit=limit))

    def _add_to_index(self) -> None:
        if self._databases.is_written:
            self.index(seconds=INDEX_SECONDS)

    def count_hits(self, words: str, *, since: date | None = None, until: date | None = None) -> int:
        """Return how many hits there are in the index as it is, up to 10,000."""
        from agent_logger.catalog.search.search import count_hits

        return self._search(words, since, until, count_hits)

    def _search(self, words: str, since: date | None, until: date | None, work: "Callable[[Searched, Query], T]") -> T:
        from agent_logger.catalog.search.query import read
        from agent_logger.catalog.search.search import Searched

        query, marks, machines = read(words), self.marks(), self.machines
        query.since = queries.since(since) // 1000 if since else None
        query.until = queries.until(until) // 1000 if until else None
        people = self.homes.people
        return self._databases.run_with_texts(
            lambda database, texts: work(Searched(database, texts, marks, machines, people, self._owner), query)
        )

    # ------------------------------------------------------------ marks

    def marks(self) -> dict[str, Marks]:
        """Return the labels, pins and notes that people put on sessions, by session."""
        by_session: dict[str, Marks] = {}
        keys = {folder: key for key, folder in self.homes.folders.items()}
        for folder in self._marked_homes:
            marks = read_marks(folder, partial(self._current_ids, home=keys.get(folder, "")))
            for name, more in marks.items():
                by_session[name] = by_session[name].joined(more) if name in by_session else more
        visible = set(self._visible(by_session)) if self._owner else by_session.keys()
        return {name: marks for name, marks in by_session.items() if marks != Marks() and name in visible}

    def _current_ids(self, names: Iterable[str], home: str = "") -> dict[str, str]:
        return self._query(lambda database: queries.current_ids(database, names, home))

    @property
    def _marked_homes(self) -> list[Path]:
        """The homes whose marks are shown; those in the own home come first."""
        return list(dict.fromkeys([self.home, *self.homes.folders.values()]))

    def mark(
        self,
        session_id: str,
        *,
        labels: Iterable[str] = (),
        without_labels: Iterable[str] = (),
        pinned: bool | None = None,
        note: str | None = None,
    ) -> Marks:
        """Change the marks of the session with exactly this id, and return them. An empty note removes it; what looks
        like a key in a note is not written. Raises `OSError`."""
        from agent_logger.home.marks import change_marks

        change_marks(self.home, self._names(session_id), labels, without_labels, pinned, note)
        return self.marks().get(session_id, Marks())

    def _names(self, session_id: str) -> list[str]:
        """Return the name that marks of the session are to be under, and the others that they are under."""
        from agent_logger.catalog.refresh.same_ids import has_responses, lasting_names

        lasting = self._query(partial(lasting_names, session=session_id))[0]
        names = list(read_marks(self.home))
        ids = self._current_ids(names)
        marked = (name for name in names if ids.get(name) == session_id)
        return list(dict.fromkeys([lasting if has_responses(lasting) else session_id, *marked]))

    def _with_marks(self, summaries: list[SessionSummary]) -> list[SessionSummary]:
        marks = self.marks()
        return [
            replace(summary, labels=own.labels, pinned=own.pinned, note=own.note)
            if (own := marks.get(summary.id))
            else summary
            for summary in summaries
        ]

    def _conditions(self, where: Filter | None) -> Filter:
        """Return the filter with the sessions that its label and pin mean, in the limits of this catalog."""
        where = where or Filter()
        if self._owner is not None:
            where = replace(where, owner=self._owner)
        if where.machine:
            where = replace(where, homes=keys_of(where.machine, self.machines))
        if where.person:
            keys = keys_of(where.person, self.homes.people)
            where = replace(where, homes=keys if where.homes is None else keys & where.homes)
        if not (where.label or where.pinned):
            return where
        marked = marked_sessions(self.marks(), label=where.label, pinned=where.pinned)
        return replace(where, sessions=frozenset(marked) if where.sessions is None else where.sessions & set(marked))

    # ------------------------------------------------------------ removing

    def files_of_ours(self, *session_ids: str) -> "Sequence[OwnFiles]":
        """Return what we have written of sessions: logs, copies of agents' files, events of hooks."""
        from agent_logger.catalog.removal import own_files

        sources = {
            session_id: self._query(partial(source_queries.sources_of, session=session_id))
            for session_id in dict.fromkeys(session_ids)
        }
        return own_files(self.home, sources)

    def branches(self, *session_ids: str) -> dict[str, str]:
        """Return the other sessions whose beginning is in a log of these, or of such a branch, each with the session it
        continues from: without that session's log they would lose their beginning."""
        from agent_logger.catalog.removal import branches_of

        return branches_of(session_ids, self._query(source_queries.own_logs))

    def remove(self, *session_ids: str) -> "Sequence[OwnFiles]":
        """Delete what we have written of sessions, and do not show them any more, even if their agent still has them.
        Returns what was deleted. Raises `StoreError` if one of them is being recorded, or has `branches` that are to
        stay; and `OSError`."""
        from agent_logger.catalog.refresh.same_ids import lasting_names
        from agent_logger.catalog.removal import remove_files

        if branches := self.branches(*session_ids):
            parents, names = ", ".join(dict.fromkeys(branches.values())), ", ".join(branches)
            raise StoreError(
                f"{names} would lose the part before the fork, which is in the log of {parents}; remove them together"
            )
        if not self.homes.are_own_alone:
            raise StoreError("sessions of several homes cannot be removed; remove them from the home that they are in")
        ours = self.files_of_ours(*session_ids)
        lasting = {
            session_id: self._query(partial(lasting_names, session=session_id))
            for session_id in dict.fromkeys(session_ids)
        }
        remove_files(self.home, lasting, ours)
        self._databases.run_with_texts(lambda _, texts: texts.erase(session_ids))
        delete_catalogs_of_several_homes(self.home)
        self.refresh()
        return ours

    def _query(self, question: Callable[[Database], T]) -> T:
        if time.monotonic() - self._refreshed > self._fresh_seconds:
            self.refresh()
        return self._databases.run(question)
