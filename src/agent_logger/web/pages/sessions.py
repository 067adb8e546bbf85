"""The list of sessions, and the search in all of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.search.search import Coverage
from agent_logger.catalog.summary import Hit
from agent_logger.web import formatting
from agent_logger.web.filters import PERIODS, PageQuery
from agent_logger.web.site import site_of

MORE_CONDITIONS = ("min_cost", "witness", "live", "pinned")  # besides times; these are less often needed
HITS = 24
LONGEST_QUERY = 200
LAST_WORD = re.compile(r"(?:^|\s)\w{3,}$")  # long enough to be searched as a prefix too


async def sessions(request: Request) -> Response:
    """Draw the list; with `part`, the rows alone, for a browser that has the page already."""
    site, query = site_of(request), PageQuery.of(request.query_params)
    version = await site.pool.version()
    rows = await site.pool.query(query.page_of)
    session_count = await site.pool.query(lambda catalog: catalog.count(query.filter()))
    choices = await site.pool.cached("choices", Catalog.choices)
    folders = formatting.folder_names(choices.projects)
    template = "_session_rows.html" if "part" in request.query_params else "sessions.html"
    return site.render(
        request,
        template,
        catalog_version=version,
        query=query,
        rows=rows[: query.limit],
        has_more=len(rows) > query.limit,
        session_count=session_count,
        choices=choices,
        periods=PERIODS,
        period_text=_period_text,
        project_text=lambda project: folders.get(project, project),
        same_text=lambda name: name,
        more_conditions=sum(name in query.conditions for name in MORE_CONDITIONS) + (query.period is None),
        data_url=f"/api/v1/sessions{query.query_string(offset=query.offset)}",
    )


def _period_text(query: PageQuery) -> str:
    """A time that has no name: `2026-11-05`, `from 2026-11-05`, `2026-11-05 to 2026-11-07`."""
    first, last = query.first_day, query.last_day
    if first == last:
        return first
    return f"{first} to {last}" if first and last else f"from {first}" if first else f"until {last}"


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
    await site.pool.query(lambda catalog: site.pool.note_reads(catalog, {hit.session for hit in hits}))
    template = "_hits.html" if "part" in request.query_params else "search.html"
    return site.render(
        request,
        template,
        search_text=words,
        problem=problem,
        results=by_session(hits),
        hit_place=hit_place,
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
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.session, []).append(hit)
    return [SessionHits(session, group[0].title, group) for session, group in groups.items()]


def hit_place(hit: Hit) -> str:
    """The part of the address that names the turn with the hit."""
    return f"#exchange-{hit.exchange}" if hit.turn is None else f"#turn-{hit.turn}"


def snippet_html(hit: Hit) -> Markup:
    """The snippet with the matches marked."""
    at, markup = 0, Markup()
    for start, end in hit.marks:
        markup += Markup("{}<mark>{}</mark>").format(
            formatting.plain(hit.snippet[at:start]), formatting.plain(hit.snippet[start:end])
        )
        at = end
    return markup + formatting.plain(hit.snippet[at:])
