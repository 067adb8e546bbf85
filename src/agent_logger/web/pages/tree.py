"""Forks as a tree one can walk, and two branches side by side from where they parted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.model.session import Exchange, Turn
from agent_logger.views.outline import NumberedTurn
from agent_logger.web.pages.session import Drawing, book_of, no_session
from agent_logger.web.pages.session_view import Book
from agent_logger.web.site import session_url, site_of


async def tree(request: Request) -> Response:
    site, book = site_of(request), await book_of(request)
    root = await site.archive.query(lambda catalog: catalog.tree(book.summary.id))
    if root is None:
        raise no_session(book.summary.id)
    return site.render(
        request,
        "tree.html",
        book=book,
        it=book.summary,
        drawing=Drawing(book),
        root=root,
        first_turns=_first_turns(book.turns),
        data=f"/api/v1{session_url(book.summary.id)}/tree",
    )


def _first_turns(turns: Sequence[Turn]) -> dict[str, int]:
    """By thread, the number of its first turn."""
    first_of: dict[str, int] = {}
    for number, turn in enumerate(turns, 1):
        first_of.setdefault(turn.thread, number)
    return first_of


# ---------------------------------------------------------------- side by side


@dataclass(frozen=True, slots=True)
class Column:
    """One of two sessions, from where it parted from the other."""

    book: Book
    drawing: Drawing
    chapters: Sequence[tuple[Exchange, Sequence[NumberedTurn]]]


async def beside(request: Request) -> Response:
    site, one, other = site_of(request), await book_of(request), await book_of(request, "other")
    shared = shared_turns(one, other)
    columns = [Column(book, Drawing(book), list(behind(book, shared))) for book in (one, other)]
    return await site.archive.run(
        lambda: site.render(
            request,
            "beside.html",
            book=one,
            it=one.summary,
            drawing=columns[0].drawing,
            columns=columns,
            shared=shared,
            related=other.summary.id in (one.summary.parent, None) or one.summary.id == other.summary.parent,
            data=f"/api/v1{session_url(one.summary.id)}/beside/{quote(other.summary.id, safe='')}",
        )
    )


def shared_turns(one: Book, other: Book) -> int:
    """How many turns at the beginning are the same: by their ids, which a fork copies."""
    pairs = zip(one.turns, other.turns, strict=False)
    same = 0
    for mine, others in pairs:
        if mine.message_id is None or mine.message_id != others.message_id:
            break
        same += 1
    return same


def behind(book: Book, shared: int) -> Iterable[tuple[Exchange, Sequence[NumberedTurn]]]:
    for chapter in book.chapters:
        turns = [turn for turn in chapter.turns if turn.number >= shared]
        if turns or (not chapter.turns and chapter is book.chapters[-1]):
            yield chapter.exchange, turns
