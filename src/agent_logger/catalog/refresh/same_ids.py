"""Different sessions with one id: an agent that numbers its sessions gives the same ids on every machine, and again
after its files were deleted.

Of sources with the same id, those that have a response in common are one session. The session of this machine keeps the
id; any other gets a mark behind it, which comes from its first response, so it is the same in every catalog.

Which session has the plain id changes when others come and go. What people do to a session, such as a label or its
removal, is therefore written down under a lasting name: the id with the mark of a response that the session has.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_logger.agents.registry import id_and_mark
from agent_logger.catalog.database import Database, json_list
from agent_logger.catalog.ledger.ledger import shared_key
from agent_logger.catalog.ledger.rows import micros_of
from agent_logger.catalog.ledger.stored_responses import decode_responses
from agent_logger.files.stored_text import hashed, storable
from agent_logger.home.homes import RemovedSessions
from agent_logger.model.responses import ModelResponse

MARK_BITS = 24


class _StoredSource(NamedTuple):
    number: int  # sources.id
    place: tuple[str, str | None]  # the home, and the import
    is_log: bool
    session: str
    responses: dict[int, int]  # the time of each response, by its key

    @property
    def begun(self) -> tuple[int, int]:
        """The time and the key of the first response."""
        return min(((time, key) for key, time in self.responses.items()), default=(micros_of(None), 0))


@dataclass(slots=True)
class _SameSession:
    """Sources of one session."""

    sources: list[_StoredSource] = field(default_factory=list)

    @property
    def keys(self) -> set[int]:
        return {key for source in self.sources for key in source.responses}

    @property
    def places(self) -> set[tuple[str, str | None]]:
        return {source.place for source in self.sources}

    @property
    def begun(self) -> tuple[int, int]:
        """The same of the agent's files, if there are any: a log may have earlier calls, or be found later."""
        files = [source for source in self.sources if not source.is_log]
        return min(source.begun for source in files or self.sources)

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """The session of this machine is before others, and what began last before what it followed."""
        time, key = self.begun
        return ("", None) not in self.places, all(imported for _, imported in self.places), -time, key

    def name(self, session_id: str) -> str:
        return _marked(session_id, self.begun[1])


def _marked(session_id: str, key: int) -> str:
    """Return an id with the mark of a response behind it; of no response, with that of none."""
    return f"{session_id}-{key % (1 << MARK_BITS):06x}"


def tell_apart(database: Database, ids: Iterable[str | None]) -> set[str]:
    """Give different sessions that have one of these ids different names. Returns the names of all sessions that a
    source was taken from or given to."""
    changed: set[str] = set()
    for session_id in sorted({name for name in ids if name}):
        sources = _sources(database, session_id)
        first, *others = sorted(_sessions(sources), key=lambda same: same.rank) or [_SameSession()]
        names = {source.number: session_id for source in first.sources}
        names |= {source.number: same.name(session_id) for same in others for source in same.sources}
        for source in sources:
            if source.session != names[source.number]:
                changed |= {source.session, names[source.number]}
                database.execute("UPDATE sources SET session = ? WHERE id = ?", (names[source.number], source.number))
    return changed


def _sources(database: Database, session_id: str, *, all_responses: bool = False) -> list[_StoredSource]:
    """Return the sources with this id; without responses if all are of one session anyway."""
    rows = database.execute(
        """
        SELECT sources.id, home, imported, agent IS NULL, session, responses
        FROM sources JOIN source_responses ON source = sources.id WHERE repeated_id = ? ORDER BY agent IS NULL, key
        """,
        (session_id,),
    ).fetchall()
    places = {(home, imported) for _, home, imported, *_ in rows}
    are_alone = not all_responses and len(places) < 2 and sum(not row[3] for row in rows) < 2
    return [
        _StoredSource(number, (home, imported), bool(is_log), session, {} if are_alone else _times(responses))
        for number, home, imported, is_log, session, responses in rows
    ]


def _times(responses: bytes) -> dict[int, int]:
    return _times_by_key(decode_responses(responses))


def _times_by_key(responses: Iterable[ModelResponse]) -> dict[int, int]:
    return {hashed(key): micros_of(response.at) for response in responses if (key := shared_key(response))}


def _sessions(sources: Sequence[_StoredSource]) -> list[_SameSession]:
    """Return the sessions that these sources are of. The agents' files come first. What has no response that tells is
    of the session in the same place, or of the first."""
    sessions: list[_SameSession] = []
    for source in sorted(sources, key=lambda source: (source.is_log, not source.responses)):
        same = [session for session in sessions if not session.keys.isdisjoint(source.responses)]
        if not same and (source.is_log or not source.responses):
            beside = [session for session in sessions if source.place in session.places]
            same = beside[:1] or ([] if source.responses else sessions[:1])
        joined = _SameSession([source, *(each for session in same for each in session.sources)])
        sessions = [*(session for session in sessions if session not in same), joined]
    return sessions


# ---------------------------------------------------------------- lasting names


def lasting_names(database: Database, session: str) -> list[str]:
    """Return the lasting names of a session, one for each first response that a source of it has; the id itself if no
    other session can have it. The name of a session without responses changes with its first one."""
    query = "SELECT DISTINCT repeated_id FROM sources WHERE session = ? AND repeated_id IS NOT NULL"
    ids = [session_id for (session_id,) in database.execute(query, (storable(session),)).fetchall()]
    names: list[str] = []
    for session_id in ids:
        sources = [each for each in _sources(database, session_id, all_responses=True) if each.session == session]
        sources.sort(key=lambda source: (not source.responses, source.begun))
        names += (_marked(session_id, source.begun[1]) for source in sources)
    return list(dict.fromkeys(names)) or [session]


def has_responses(lasting_name: str) -> bool:
    """Whether a lasting name is of a session that has responses, so it stays."""
    parts = id_and_mark(lasting_name)
    return parts is not None and lasting_name != _marked(parts[0], 0)


def sessions_called(database: Database, names: Iterable[str]) -> dict[str, str]:
    """Return the session that each lasting name means, of those that exist."""
    session_of_name: dict[str, str] = {}
    for session_id, marked in _by_id(names).items():
        for source in _sources(database, session_id, all_responses=True):
            session_of_name |= dict.fromkeys(
                marked.intersection(_names_of(session_id, source.responses)), source.session
            )
    return session_of_name


def removed_name(removed: Collection[str], session_id: str, responses: Iterable[ModelResponse]) -> str | None:
    """Return the lasting name under which the session of these responses was removed; None if it was not. `removed`:
    what was removed from its home."""
    marked = _by_id(removed).get(session_id)
    names = _names_of(session_id, _times_by_key(responses)) if marked else ()
    return next((name for name in names if marked and name in marked), None)


def sources_of_removed(database: Database, removed: RemovedSessions) -> list[str]:
    """Return the keys of sources that were read before their session was removed under a lasting name."""
    keys: list[str] = []
    for home, names in removed.by_home.items():
        by_id = _by_id(names)
        rows = database.execute(
            """
            SELECT key, repeated_id, responses FROM sources JOIN source_responses ON source = sources.id
            WHERE home = ? AND repeated_id IN (SELECT value FROM json_each(?))
            """,
            (home, json_list(by_id)),
        ).fetchall()
        for key, session_id, responses in rows:
            if not by_id[session_id].isdisjoint(_names_of(session_id, _times(responses))):
                keys.append(key)
    return keys


def _names_of(session_id: str, keys: Collection[int]) -> Iterator[str]:
    """Yield every lasting name that responses with these keys give their session."""
    return (_marked(session_id, key) for key in keys or (0,))


def _by_id(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the lasting names among these, by the id before the mark."""
    by_id: dict[str, set[str]] = {}
    for name in names:
        if parts := id_and_mark(name):
            by_id.setdefault(parts[0], set()).add(name)
    return by_id
