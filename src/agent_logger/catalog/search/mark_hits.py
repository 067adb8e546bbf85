"""Searches labels and notes: they are few, and read from the facts each time."""

import re
from collections.abc import Iterator, Mapping

from agent_logger.catalog.database import Database
from agent_logger.catalog.queries import headings
from agent_logger.catalog.search.query import Query
from agent_logger.catalog.summary import Hit, SessionHeading
from agent_logger.home.marks import Marks, marked_sessions


def mark_hits(catalog: Database, marks: Mapping[str, Marks], query: Query) -> Iterator[Hit]:
    """Yield the sessions whose label or note has the words, the one last active first. Without words, those with the
    label or pin that is asked for."""
    if not query.can_match_marks or not (query.words or query.label or query.pinned):
        return
    words = [re.compile(word, re.IGNORECASE) for word in query.words]
    marked = list(marked_sessions(marks, label=query.label, pinned=query.pinned))
    by_session = headings(catalog, marked)
    for session in sorted(by_session, key=lambda name: str(by_session[name].ended), reverse=True):
        heading = by_session[session]
        if _is_within(heading, query) and (hit := _hit(session, heading, marks[session], words)):
            yield hit


def _is_within(heading: SessionHeading, query: Query) -> bool:
    project, milliseconds = (heading.project or "").lower(), heading.ended.timestamp() * 1000 if heading.ended else 0
    return (
        (query.project or "").lower() in project
        and (query.agent is None or query.agent == heading.agent)
        and (query.since is None or milliseconds >= query.since)
        and (query.until is None or milliseconds < query.until)
    )


def _hit(session: str, heading: SessionHeading, marks: Marks, words: list[re.Pattern[str]]) -> Hit | None:
    texts = {"note": marks.note or "", "label": ", ".join(marks.labels)}
    for kind, text in texts.items():
        places = [place.span() for word in words for place in word.finditer(text)]
        if text and all(word.search(text) for word in words):
            return Hit(
                session=session,
                title=heading.title,
                exchange=0,
                turn=None,
                kind=kind,
                at=heading.ended,
                snippet=text,
                marks=_apart(places),
                forks=(),
            )
    return None


def _apart(places: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The places in order, without those that overlap one before."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if start < end and (not apart or start >= apart[-1][1]):
            apart.append((start, end))
    return tuple(apart)
