"""Forks as a tree with links, and two branches side by side from where they diverged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.model.session import Exchange, Turn
from agent_logger.views.outline import NumberedTurn
from agent_logger.web.addresses import session_url
from agent_logger.web.pages.session import SessionRenderer, render_view, session_not_found, session_view_of
from agent_logger.web.pages.session_view import SessionView
from agent_logger.web.site import site_of


async def tree(request: Request) -> Response:
    site, view = site_of(request), await session_view_of(request)
    root = await site.pool.query(lambda catalog: catalog.tree(view.summary.id))
    if root is None:
        raise session_not_found(view.summary.id)
    return await render_view(
        request,
        view,
        "tree.html",
        root=root,
        first_turns=_first_turns(view.turns),
        data_url=f"/api/v1{session_url(view.summary.id)}/tree",
    )


def _first_turns(turns: Sequence[Turn]) -> dict[str, int]:
    """The number of each thread's first turn."""
    first_turns: dict[str, int] = {}
    for number, turn in enumerate(turns, 1):
        first_turns.setdefault(turn.thread, number)
    return first_turns


# ---------------------------------------------------------------- side by side


@dataclass(frozen=True, slots=True)
class Column:
    """A session of two that are compared, from where it diverged from the other."""

    view: SessionView
    renderer: SessionRenderer
    chapters: Sequence[tuple[Exchange, Sequence[NumberedTurn]]]


async def comparison(request: Request) -> Response:
    one, other = await session_view_of(request), await session_view_of(request, "other")
    shared = shared_turns(one, other)
    site = site_of(request)
    columns = [
        Column(view, SessionRenderer(view, site.session_url(view.summary.id)), list(turns_after(view, shared)))
        for view in (one, other)
    ]
    return await render_view(
        request,
        one,
        "comparison.html",
        columns=columns,
        shared_count=shared,
        is_related=other.summary.id in (one.summary.parent, None) or one.summary.id == other.summary.parent,
        data_url=f"/api/v1{session_url(one.summary.id)}/beside/{quote(other.summary.id, safe='')}",
    )


def shared_turns(one: SessionView, other: SessionView) -> int:
    """How many turns at the beginning are the same, by their ids, which a fork copies."""
    pairs = ((turn.message_id, other_turn.message_id) for turn, other_turn in zip(one.turns, other.turns, strict=False))
    return sum(1 for _ in takewhile(lambda ids: ids[0] is not None and ids[0] == ids[1], pairs))


def turns_after(view: SessionView, shared: int) -> Iterable[tuple[Exchange, Sequence[NumberedTurn]]]:
    for chapter in view.chapters:
        turns = [turn for turn in chapter.turns if turn.number >= shared]
        if turns or (not chapter.turns and chapter is view.chapters[-1]):
            yield chapter.exchange, turns
