"""Forks as a tree one can walk, and two branches side by side from where they parted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import SessionSummary
from agent_logger.export.outline import AgentAtWork, Chapter, NumberedTurn
from agent_logger.session import Exchange
from agent_logger.web.book import Book
from agent_logger.web.session import Drawing, book_of
from agent_logger.web.site import session_url, site_of

DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    summary: SessionSummary | None  # none: the parent is known by name only
    children: Sequence["Node"]


async def tree(request: Request) -> Response:
    site, book = site_of(request), await book_of(request)
    root = await site.archive.ask(lambda catalog: _tree(catalog, book.summary))
    agents = [agent for chapter in book.chapters for agent in _agents(chapter)]
    return site.render(
        request,
        "tree.html",
        book=book,
        it=book.summary,
        drawing=Drawing(book),
        root=root,
        agents=agents,
        data=f"/api/v1{session_url(book.summary.id)}/tree",
    )


def _tree(catalog: Catalog, summary: SessionSummary) -> Node:
    return node_of(catalog.sessions(), summary)


def node_of(sessions: Iterable[SessionSummary], summary: SessionSummary) -> Node:
    """The tree that a session is part of, from its first ancestor down."""
    known = {it.id: it for it in sessions}
    known[summary.id] = summary
    children: dict[str, list[str]] = {}
    for it in known.values():
        if it.parent and it.parent != it.id:
            children.setdefault(it.parent, []).append(it.id)
    return _node(_root(summary.id, known), known, children, 0)


def _root(session_id: str, known: Mapping[str, SessionSummary]) -> str:
    seen = {session_id}
    while (it := known.get(session_id)) and it.parent and it.parent not in seen:
        seen.add(it.parent)
        session_id = it.parent
    return session_id


def _node(
    session_id: str, known: Mapping[str, SessionSummary], children: Mapping[str, Sequence[str]], depth: int
) -> Node:
    below = children.get(session_id, ()) if depth < DEEPEST else ()
    return Node(
        session_id, known.get(session_id), [_node(it, known, children, depth + 1) for it in sorted(below)]
    )


def _agents(chapter: Chapter) -> list[AgentAtWork]:
    found = list(chapter.agents)
    for turn in chapter.turns:
        found += [agent for agents in turn.agents.values() for agent in agents]
    return found


# ---------------------------------------------------------------- side by side


@dataclass(frozen=True, slots=True)
class Column:
    """One of two sessions, from where it parted from the other."""

    book: Book
    drawing: Drawing
    chapters: Sequence[tuple[Exchange, Sequence[NumberedTurn]]]


async def beside(request: Request) -> Response:
    site, one = site_of(request), await book_of(request)
    other = await site.archive.book(request.path_params["other"])
    if other is None:
        raise HTTPException(404, f"There is no session {request.path_params['other']}.")
    shared = _shared(one, other)
    columns = [Column(book, Drawing(book), list(_behind(book, shared))) for book in (one, other)]
    return await site.archive.do(
        lambda: site.render(
            request,
            "beside.html",
            book=one,
            it=one.summary,
            drawing=columns[0].drawing,
            columns=columns,
            shared=shared,
        )
    )


def _shared(one: Book, other: Book) -> int:
    """How many turns at the beginning are the same: by their ids, which a fork copies."""
    pairs = zip(one.turns, other.turns, strict=False)
    same = 0
    for mine, others in pairs:
        if mine.message_id is None or mine.message_id != others.message_id:
            break
        same += 1
    return same


def _behind(book: Book, shared: int) -> Iterable[tuple[Exchange, Sequence[NumberedTurn]]]:
    for chapter in book.chapters:
        turns = [it for it in chapter.turns if it.number >= shared]
        if turns or (not chapter.turns and chapter is book.chapters[-1]):
            yield chapter.exchange, turns
