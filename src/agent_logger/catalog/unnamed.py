"""Sessions that a client does not name on the wire: known again in its own files by what was said and billed, and when.

Gemini CLI and Qwen Code send no id. Without this their sessions would be there twice, and count twice.
"""

from collections.abc import Iterable, Iterator

from agent_logger.catalog.merge import utc
from agent_logger.catalog.same import said_in
from agent_logger.errors import SourceError
from agent_logger.formats.table import format_of
from agent_logger.session import SIDE, Session, Usage
from agent_logger.store.agent_sources import sources_of
from agent_logger.store.layout import agent_files

AGENTS = ("gemini-cli", "qwen-code")
NEAR_SECONDS = 60.0  # a file may be begun before the first call, and ended behind the last

Said = tuple[tuple[str, ...], Usage | None]


def own_name(session: Session, log: str) -> str | None:
    """What the client calls the session of a log that is only called by the log's name; none if that is not known."""
    if session.agent not in AGENTS or session.id != log or session.started is None:
        return None
    return name_among(session, _chats(session.agent, utc(session.started).timestamp()))


def name_among(session: Session, others: Iterable[Session]) -> str | None:
    """The id of the only one that tells the same."""
    names = {it.id for it in others if is_told_by(session, it)}
    return names.pop() if len(names) == 1 else None


def is_told_by(session: Session, other: Session) -> bool:
    """Whether all that was answered stands in the other, in this order, at the time; or all words do, for before 0.40
    a response without words was put to the one before it."""
    return _meet(session, other) and any(
        _stand_in(list(told(session)), told(other)) for told in (_said, _worded)
    )


def _stand_in(said: list[Said], told: Iterator[Said]) -> bool:
    """What is last may be missing: it is written down later."""
    known = [it for it in said if _is_next(it, told)]
    return bool(known) and known == said[: len(known)] and len(said) - len(known) <= 1


def _is_next(wanted: Said, told: Iterator[Said]) -> bool:
    """Takes what comes before it too."""
    return any(it == wanted for it in told)


def _said(session: Session) -> Iterator[Said]:
    for turn in session.turns:
        said = said_in(turn, hidden=True)
        if turn.thread != SIDE and turn.complete and any(said):
            yield said, turn.usage


def _worded(session: Session) -> Iterator[Said]:
    return ((said[:1], usage) for said, usage in _said(session) if said[0])


def _meet(one: Session, two: Session) -> bool:
    if not (one.started and one.ended and two.started and two.ended):
        return False
    begun = max(utc(one.started), utc(two.started)).timestamp()
    return begun - min(utc(one.ended), utc(two.ended)).timestamp() < NEAR_SECONDS


def _chats(agent: str, since: float) -> Iterator[Session]:
    form = format_of(agent)
    for path in agent_files(agent) if form else ():
        try:
            if form and path.stat().st_mtime > since - NEAR_SECONDS:
                yield from map(form.session_of, sources_of(agent, [path]))
        except (SourceError, OSError):
            continue
