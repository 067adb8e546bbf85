"""The list of sessions, and the search in all of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from agent_logger.agents.registry import located
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.search.search import Coverage
from agent_logger.catalog.summary import Hit, SessionSummary
from agent_logger.web import formatting
from agent_logger.web.filters import PageQuery
from agent_logger.web.site import session_url, site_of

AGENT_NAMES = tuple(agent.name for agent, _ in located())
HITS = 24
LONGEST_QUERY = 200
LAST_WORD = re.compile(r"(?:^|\s)\w{3,}$")  # a last word that is long enough to tell something apart


async def sessions(request: Request) -> Response:
    """Draw the list; with `part`, the rows alone, for a browser that has the page already."""
    site, query = site_of(request), PageQuery.of(request.query_params)
    version = await site.pool.version()
    rows = await site.pool.query(lambda catalog: _page(catalog, query))
    template = "_session_rows.html" if "part" in request.query_params else "sessions.html"
    return site.render(
        request,
        template,
        catalog_version=version,
        query=query,
        rows=rows[: query.limit],
        has_more=len(rows) > query.limit,
        agents=AGENT_NAMES,
        data_url=f"/api/v1/sessions{query.query_string(offset=query.offset)}",
    )


def _page(catalog: Catalog, query: PageQuery) -> list[SessionSummary]:
    return catalog.sessions(query.filter(), limit=query.limit + 1, offset=query.offset, order=query.order)


# ---------------------------------------------------------------- search


@dataclass(frozen=True, slots=True)
class SessionHits:
    """The hits in one session, the best first."""

    session: str
    title: str | None
    hits: Sequence[Hit]


async def search(request: Request) -> Response:
    site = site_of(request)
    words = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
    hits, problem, coverage = await site.pool.query(lambda catalog: _search(catalog, words))
    template = "_hits.html" if "part" in request.query_params else "search.html"
    return site.render(
        request,
        template,
        search_text=words,
        problem=problem,
        results=by_session(hits),
        hit_url=hit_url,
        snippet_html=snippet_html,
        coverage=coverage,
        data_url=f"/api/v1/search?{urlencode({'q': words})}" if words else None,
    )


def _search(catalog: Catalog, words: str) -> tuple[Sequence[Hit], str | None, Coverage]:
    """The hits, or the reason why the words cannot be searched for."""
    try:
        return (_hits(catalog, words) if words else []), None, catalog.coverage
    except ValueError as error:
        return [], str(error), catalog.coverage


def _hits(catalog: Catalog, words: str) -> list[Hit]:
    """The hits. If few places have the last word as it is, also those with words that begin so: the user may still be
    typing."""
    by_place = {_place(hit): hit for hit in catalog.search(words, limit=HITS)}
    if len(by_place) < HITS and LAST_WORD.search(words) and words.count('"') % 2 == 0:
        for hit in catalog.search(f"{words}*", limit=HITS):
            by_place.setdefault(_place(hit), hit)
    return list(by_place.values())[:HITS]


def _place(hit: Hit) -> tuple[object, ...]:
    return hit.session, hit.exchange, hit.turn, hit.kind, hit.at


def by_session(hits: Iterable[Hit]) -> list[SessionHits]:
    """Sessions in the order of their best hit."""
    order: dict[str, int] = {}
    for hit in hits:
        order.setdefault(hit.session, len(order))
    ordered = sorted(hits, key=lambda hit: order[hit.session])
    groups = groupby(ordered, key=lambda hit: hit.session)
    return [
        SessionHits(session, (hits_of_session := list(hits))[0].title, hits_of_session)
        for session, hits in groups
    ]


def hit_url(hit: Hit) -> str:
    """The address of the turn with the hit."""
    place = f"#exchange-{hit.exchange}" if hit.turn is None else f"#turn-{hit.turn}"
    return session_url(hit.session, place)


def snippet_html(hit: Hit) -> Markup:
    """The snippet with the matches marked."""
    at, markup = 0, Markup()
    for start, end in hit.marks:
        markup += Markup("{}<mark>{}</mark>").format(
            formatting.plain(hit.snippet[at:start]), formatting.plain(hit.snippet[start:end])
        )
        at = end
    return markup + formatting.plain(hit.snippet[at:])
