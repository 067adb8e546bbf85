"""Searches all sessions, and keeps the index up to date with them."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from agent_logger.agents.databases.reading import databases_kept_open
from agent_logger.catalog.database import Database, json_list
from agent_logger.catalog.details import (
    ReadDetails,
    load_details,
    load_session,
    load_tail,
    load_whole,
    store_details,
)
from agent_logger.catalog.queries import PROJECT, OutdatedSession, owner_terms, where_clause
from agent_logger.catalog.refresh.changes import Progress, state
from agent_logger.catalog.refresh.incremental import Mark, SessionTail
from agent_logger.catalog.search import query
from agent_logger.catalog.search.mark_hits import mark_hits
from agent_logger.catalog.search.snippets import Snippet, in_files, in_texts
from agent_logger.catalog.search.text_index import IndexedSession, IndexHit, Scope, TextIndex, TextPosition
from agent_logger.catalog.search.texts import INPUT, NO_TURN, TEXT, THINKING, TOOL, Text, texts_of
from agent_logger.catalog.source_queries import sources_of
from agent_logger.catalog.summary import Hit, Ownership
from agent_logger.files.stored_text import storable
from agent_logger.home.homes import keys_of
from agent_logger.home.marks import Marks, marked_sessions

MOST_ROUNDS = 10  # as long as other processes find more to read
BATCH_BYTES = 24_000_000  # of texts that are indexed at once
SESSION_BYTES = 2_000  # that a session takes beside its texts: there may be very many with next to none
MOST_COUNTED = 10_000  # hits
KIND = {INPUT: "input", TEXT: "text", THINKING: "thinking", TOOL: "tool_use"}


class Coverage(NamedTuple):
    """How much of all sessions the index covers, in bytes of files."""

    done: int
    total: int

    @property
    def is_whole(self) -> bool:
        return self.done >= self.total


def outdated_sessions(catalog: Database, texts: TextIndex, *, details: bool = False) -> list[OutdatedSession]:
    """Return sessions whose files are newer than the index, the one last active first; and, with `details`, those whose
    details are not known."""
    stamps = texts.stamps()
    rows = catalog.execute("SELECT id, stamp, size, details_stamp FROM sessions ORDER BY last_active DESC, id")
    return [
        OutdatedSession(name, stamp, size, details_stamp)
        for name, stamp, size, details_stamp in rows
        if stamps.get(name) != stamp or (details and details_stamp != stamp)
    ]


def coverage(catalog: Database, texts: TextIndex) -> Coverage:
    (total,) = catalog.execute("SELECT coalesce(sum(size), 0) FROM sessions").fetchone()
    if texts.complete_state() == state(catalog):
        return Coverage(total, total)
    return Coverage(total - sum(source.size for source in outdated_sessions(catalog, texts)), total)


def index(
    catalog: Database,
    texts: TextIndex,
    progress: Progress | None = None,
    seconds: float = float("inf"),
) -> bool:
    """Index what is outdated, and read its details. Returns whether all of it could be done in that time."""
    until = time.monotonic() + seconds
    for _ in range(MOST_ROUNDS):
        if texts.complete_state() == state(catalog):
            return True
        if not _index_outdated(catalog, texts, progress, until):
            return False
        before = state(catalog)
        # Dropped shards may have included other sessions, and another process may have found more meanwhile.
        if not outdated_sessions(catalog, texts, details=True):
            texts.store_complete_state(before)
    return texts.complete_state() == state(catalog)


@databases_kept_open()
def _index_outdated(catalog: Database, texts: TextIndex, progress: Progress | None, until: float) -> bool:
    left = outdated_sessions(catalog, texts, details=True)
    total, done = sum(source.size for source in left), 0
    batch = _Batch(catalog, texts)
    for number, source in enumerate(left, 1):
        if texts.claim(source.id):
            batch.add(source)
        done += source.size
        late = time.monotonic() > until
        if batch.size > BATCH_BYTES or late or number == len(left):
            batch.write()
            if progress:
                progress(done, total)
        if late and number < len(left):
            return False
    _drop_gone(catalog, texts)
    return True


def _drop_gone(catalog: Database, texts: TextIndex) -> None:
    there = {name for (name,) in catalog.execute("SELECT id FROM sessions")}
    if gone := texts.stamps().keys() - there:
        texts.index([], gone)


def relatives(catalog: Database) -> dict[str, list[str]]:
    """Return the relatives of each session that has some: sessions that have responses in common with it, as forks
    have."""
    families: dict[str, list[str]] = {}
    rows = catalog.execute(
        """
        SELECT family, id FROM sessions
        WHERE family IN (SELECT family FROM sessions GROUP BY family HAVING count(*) > 1)
        """
    )
    for family, name in rows:
        families.setdefault(family, []).append(name)
    return {name: [other for other in names if other != name] for names in families.values() for name in names}


def tail_texts(tail: SessionTail) -> list[Text]:
    """Return the texts with the numbers that they have in the whole session."""
    return [
        replace(
            text,
            exchange=text.exchange + tail.exchange - 1,
            turn=text.turn if text.turn == NO_TURN else text.turn + tail.turn,
        )
        for text in texts_of(tail.session)
    ]


class _Batch:
    """Sessions that have been read, and are written together."""

    def __init__(self, catalog: Database, texts: TextIndex) -> None:
        self._catalog, self._texts = catalog, texts
        self._relatives = relatives(catalog)
        self._marks = texts.marks()
        self._details: list[ReadDetails] = []
        self._entries: list[IndexedSession] = []
        self.size = 0

    def add(self, source: OutdatedSession) -> None:
        mark = self._marks.get(source.id)
        tail = load_tail(self._catalog, source.id, mark) if mark else None
        if tail:
            self._details.append(load_details(self._catalog, source))
            self._put(source, tail_texts(tail), (tail.exchange, tail.turn), tail.mark)
            return
        session, details = load_whole(self._catalog, source)
        self._details.append(details)
        self._put(source, texts_of(session) if session else [], (0, NO_TURN), details.mark)

    def _put(self, source: OutdatedSession, texts: Sequence[Text], since: tuple[int, int], mark: Mark | None) -> None:
        encoded = msgspec.json.encode(mark) if mark else None
        entry = IndexedSession(source.id, source.stamp, texts, self._relatives.get(source.id, ()), since, encoded)
        self._entries.append(entry)
        self.size += SESSION_BYTES + sum(len(text.text) for text in texts)

    def write(self) -> None:
        store_details(self._catalog, self._details)
        self._texts.index(self._entries)
        self._details, self._entries, self.size = [], [], 0


# ---------------------------------------------------------------- searching


class Searched(NamedTuple):
    """What is searched: the catalog, its index, what people say of sessions, and the machines that have them."""

    catalog: Database
    texts: TextIndex
    marks: Mapping[str, Marks]
    machines: Mapping[str, str]  # names by their keys
    people: Mapping[str, str | None]  # likewise
    owner: Ownership | None = None  # to whose sessions everything is limited; none: all


def search(searched: Searched, search_query: query.Query, limit: int) -> list[Hit]:
    """Search, the best hit first: by the words, and of equals the newer one. Notes and labels come before all."""
    marks = list(mark_hits(searched.catalog, _marks_within(searched, search_query), search_query))
    words = [re.compile(word, re.IGNORECASE) for word in search_query.words]
    hits = _index_hits(searched, search_query, limit)
    return list(islice(chain(marks, _hits(searched, hits, words, limit)), limit))


def count_hits(searched: Searched, search_query: query.Query) -> int:
    """Count the hits, up to `MOST_COUNTED` of them."""
    hits = _index_hits(searched, search_query, MOST_COUNTED)
    marks = mark_hits(searched.catalog, _marks_within(searched, search_query), search_query)
    merged = _merge_copies(hits, _sessions(searched.catalog, hits))
    return sum(1 for _ in islice(chain(marks, merged), MOST_COUNTED))


def _index_hits(searched: Searched, search_query: query.Query, limit: int) -> list[IndexHit]:
    sessions = _sessions_within(searched, search_query)
    scope = Scope(sessions, search_query.since, search_query.until, search_query.error)
    if search_query.match:
        return searched.texts.matches(search_query.match, scope, limit)
    return searched.texts.failed_calls(scope, limit) if search_query.error else []


def _sessions_within(searched: Searched, search_query: query.Query) -> str | None:
    """Return the sessions that the query is limited to, as JSON; None: all."""
    names: set[str] | None = None
    if search_query.project is not None or search_query.agent is not None:
        rows = searched.catalog.execute(
            f"SELECT id FROM sessions WHERE instr(folded({PROJECT}), ?) > 0 AND ? IN ('', folded(agent))",
            (storable(search_query.project or "").lower(), storable(search_query.agent or "").lower()),
        )
        names = {name for (name,) in rows}
    if (of_homes := _sessions_of_homes(searched, search_query)) is not None:
        names = of_homes if names is None else names & of_homes
    if search_query.label is not None or search_query.pinned:
        marked = set(marked_sessions(searched.marks, label=search_query.label, pinned=search_query.pinned))
        names = marked if names is None else names & marked
    return None if names is None else json_list(names)


def _marks_within(searched: Searched, search_query: query.Query) -> Mapping[str, Marks]:
    if (names := _sessions_of_homes(searched, search_query)) is None:
        return searched.marks
    return {session: marks for session, marks in searched.marks.items() if session in names}


def _sessions_of_homes(searched: Searched, search_query: query.Query) -> set[str] | None:
    """Return the sessions of the machine and the person that the query names, and of the owner to whom all is limited;
    None: all."""
    names: set[str] | None = None
    for name, keyed in ((search_query.machine, searched.machines), (search_query.person, searched.people)):
        if name is not None:
            rows = searched.catalog.execute(
                "SELECT DISTINCT session FROM sources WHERE machine IN (SELECT value FROM json_each(?))",
                (json_list(keys_of(name, keyed)),),
            )
            sessions = {session for (session,) in rows}
            names = sessions if names is None else names & sessions
    if searched.owner is not None:
        where, values = where_clause(owner_terms("sessions.id", searched.owner))
        owned = {name for (name,) in searched.catalog.execute(f"SELECT id FROM sessions WHERE {where}", values)}
        names = owned if names is None else names & owned
    return names


def _hits(searched: Searched, hits: Sequence[IndexHit], words: Sequence[re.Pattern[str]], limit: int) -> Iterator[Hit]:
    sessions = _sessions(searched.catalog, hits)
    merged = list(islice(_merge_copies(hits, sessions), limit))
    snippets = _snippets(searched.catalog, [(hit, places[0]) for hit, places in merged], words)
    for (hit, places), snippet in zip(merged, snippets, strict=True):
        place, *forks = places
        is_typed = place.turn == NO_TURN
        answers = searched.texts.first_turns(place.session, [place.exchange]) if is_typed else {}
        yield Hit(
            session=place.session,
            forks=tuple(fork.session for fork in forks),
            title=sessions[place.session].title if place.session in sessions else None,
            exchange=place.exchange,
            turn=None if is_typed else place.turn,
            answer=answers.get(place.exchange),
            kind=KIND[hit.kind],
            at=datetime.fromtimestamp(hit.at / 1000, UTC) if hit.at else None,
            snippet=snippet.text,
            marks=snippet.marks,
        )


class _Session(NamedTuple):
    title: str | None
    family: str
    place: int  # the place in its family


def _sessions(catalog: Database, hits: Sequence[IndexHit]) -> dict[str, _Session]:
    names = json_list({place.session for hit in hits for place in hit.places})
    rows = catalog.execute(
        """
        SELECT id, title, family, family_position FROM sessions
        WHERE id IN (SELECT value FROM json_each(?))
        """,
        (names,),
    )
    return {name: _Session(*values) for name, *values in rows}


def _merge_copies(
    hits: Sequence[IndexHit], sessions: Mapping[str, _Session]
) -> Iterator[tuple[IndexHit, list[TextPosition]]]:
    """Yield each text with its places in a family, beginning with the session that the others were forked from. The
    rows of an index reflect what was found first, and sessions may have become relatives, or unrelated, since."""
    in_family = {name: session.place for name, session in sessions.items()}
    groups: dict[tuple[object, ...], tuple[IndexHit, dict[str, list[TextPosition]]]] = {}
    for hit in hits:
        for place in hit.places:
            session = sessions.get(place.session)
            key = (session.family if session else place.session, hit.hash, hit.at, hit.kind)
            groups.setdefault(key, (hit, {}))[1].setdefault(place.session, []).append(place)
    for hit, by_session in groups.values():
        for number in range(max(map(len, by_session.values()))):
            places = [sorted(own_places)[number] for own_places in by_session.values() if number < len(own_places)]
            yield hit, sorted(places, key=lambda place: (in_family.get(place.session, 0), place))


def _snippets(
    catalog: Database,
    located: Sequence[tuple[IndexHit, TextPosition]],
    words: Sequence[re.Pattern[str]],
) -> list[Snippet]:
    """Return the snippet of each hit. The files of a session are read once for all its hits, whatever their order."""
    numbers_by_session: dict[str, list[int]] = {}
    for number, (_, place) in enumerate(located):
        numbers_by_session.setdefault(place.session, []).append(number)
    snippets: dict[int, Snippet] = {}
    for name, numbers in numbers_by_session.items():
        texts = _SessionTexts(catalog, name, words)
        snippets |= {number: texts.snippet(*located[number]) for number in numbers}
    return [snippets[number] for number in range(len(located))]


class _SessionTexts:
    """The texts of one session, in its files; the session is read as a whole only for a hit that needs this."""

    def __init__(self, catalog: Database, name: str, words: Sequence[re.Pattern[str]]) -> None:
        self._catalog, self._name, self._words = catalog, name, words
        agents_own = (source for source in sources_of(catalog, name) if source.agent)
        self._files = [Path(path) for source in agents_own for path in (source.path, *(source.others or ()))]

    def snippet(self, hit: IndexHit, place: TextPosition) -> Snippet:
        if hit.at and (snippet := in_files(hit, self._files, self._words)):
            return snippet
        return in_texts(hit, place, self._texts, self._words) or Snippet("", ())

    @cached_property
    def _texts(self) -> Sequence[Text]:
        session = load_session(self._catalog, self._name)
        return texts_of(session) if session else ()
