"""The search index, as searching and filling see it: in SQLite (`index.py`), or in PostgreSQL (`postgres/texts.py`).

Both find the same texts. Texts stay in the files; the index holds their words, and says where a text is.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from agent_logger.catalog.search.query import Term
from agent_logger.catalog.search.texts import NO_TURN, Text


class IndexedSession(NamedTuple):
    """A session to be indexed. Relatives are sessions that may have the same texts, as forks have."""

    session: str
    stamp: str
    texts: Sequence[Text]  # all, or those from a turn on
    relatives: Sequence[str] = ()
    since: tuple[int, int] = (0, NO_TURN)  # the numbers of its exchange and its own
    mark: bytes | None = None  # the place where reading can continue


class TextPosition(NamedTuple):
    session: str
    exchange: int
    turn: int


class IndexHit(NamedTuple):
    """A text that an index has found, and where it is: in one session, or in forks of it too."""

    places: tuple[TextPosition, ...]
    kind: int
    at: int
    until: int
    error: bool
    hash: int
    rank: float


class Scope(NamedTuple):
    """Where texts are searched for."""

    sessions: str | None = None  # a JSON list of them; none: in all
    since: int | None = None  # milliseconds since 1970
    until: int | None = None  # the same, and no longer included
    error: bool = False  # only in tool calls that failed


class TextIndex(Protocol):
    def stamps(self) -> dict[str, str]:
        """Return the stamp that each session had when it was indexed."""

    def marks(self) -> dict[str, bytes]:
        """Return where sessions that can be read incrementally continue."""

    def complete_state(self) -> str | None:
        """Return the state of the catalog whose texts are all in the index."""

    def store_complete_state(self, state: str) -> None: ...

    def claim(self, session: str, /) -> bool:
        """Return whether this process is to index the session: no other one is doing so, or has just done so. The claim
        ends with `index`, or with the process."""

    def index(self, entries: Sequence[IndexedSession], gone: Iterable[str] = ()) -> None:
        """Index these sessions, and forget those that are gone; all at once, or nothing of it."""

    def erase(self, sessions: Iterable[str]) -> None:
        """Remove every word of these sessions. Others may have to be indexed again."""

    def matches(self, terms: Sequence[Term], scope: Scope, limit: int) -> list[IndexHit]:
        """Return the texts that have all terms, the best first; and of equals the newer one."""

    def failed_calls(self, scope: Scope, limit: int) -> list[IndexHit]:
        """Return tool calls that failed, the newest first."""

    def first_turns(self, session: str, exchanges: Iterable[int]) -> dict[int, int]:
        """Return the first turn of these exchanges of a session, where an exchange has one."""
