"""Different sessions with one id: an agent that numbers its sessions gives the same ids on every machine, and again
after its files were deleted.

Of sources with the same id, those that have a response in common are one session. The session of this machine keeps the
id; any other gets a mark behind it, which comes from its first response, so it is the same in every catalog.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_logger.catalog.database import Database
from agent_logger.catalog.ledger.ledger import shared_key
from agent_logger.catalog.ledger.rows import micros_of
from agent_logger.catalog.ledger.stored_responses import decode_responses
from agent_logger.files.stored_text import hashed

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
        return f"{session_id}-{self.begun[1] % (1 << MARK_BITS):06x}"


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


def _sources(database: Database, session_id: str) -> list[_StoredSource]:
    rows = database.execute(
        """
        SELECT sources.id, home, imported, agent IS NULL, session, responses
        FROM sources JOIN source_responses ON source = sources.id WHERE repeated_id = ? ORDER BY agent IS NULL, key
        """,
        (session_id,),
    ).fetchall()
    are_alone = len({(home, imported) for _, home, imported, *_ in rows}) < 2 and sum(not row[3] for row in rows) < 2
    return [
        _StoredSource(number, (home, imported), bool(is_log), session, {} if are_alone else _times(responses))
        for number, home, imported, is_log, session, responses in rows
    ]


def _times(responses: bytes) -> dict[int, int]:
    decoded = decode_responses(responses)
    return {hashed(key): micros_of(response.at) for response in decoded if (key := shared_key(response))}


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
