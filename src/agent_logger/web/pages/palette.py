"""The command palette: what can be opened by typing a part of its name: views, projects, sessions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import SessionSummary
from agent_logger.web import formatting
from agent_logger.web.filters import PERIODS, PageQuery
from agent_logger.web.site import Site, site_of

LONGEST_QUERY = 100
MOST_SESSIONS = 8
MOST_PROJECTS = 5


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    name: str
    href: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PaletteGroup:
    name: str
    entries: Sequence[PaletteEntry]


VIEWS = (
    PaletteEntry("Home", "/"),
    PaletteEntry("Sessions", "/sessions"),
    PaletteEntry("Live", "/live"),
    PaletteEntry("Health", "/health"),
    PaletteEntry("Most expensive sessions", "/sessions?order=cost"),
    *(
        PaletteEntry(f"Sessions: {period.label.lower()}", "/sessions" + PageQuery.of({"period": name}).query_string())
        for name, period in PERIODS.items()
        if name != "any"
    ),
    *(PaletteEntry(f"Cost by {by}", f"/?by={by}") for by in ("model", "project", "agent")),
    PaletteEntry("How the cost is computed", "/why"),
)
FIRST_VIEWS = 4  # that are listed before anything is typed


async def palette(request: Request) -> Response:
    """Draw the entries that have all typed words in them; before anything is typed, the most useful ones."""
    site = site_of(request)
    text = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
    sessions = await site.pool.query(lambda catalog: catalog.matching(text, limit=MOST_SESSIONS))
    choices = await site.pool.cached("choices", Catalog.choices)
    views = [view for view in VIEWS if view.href not in site.missing_views]
    groups = [
        PaletteGroup("Views", _matching(views if text else views[:FIRST_VIEWS], text)),
        PaletteGroup("Projects", _matching(_projects(choices.projects), text)[:MOST_PROJECTS]),
        PaletteGroup("Sessions", [_session(site, summary) for summary in sessions]),
    ]
    if text:
        search = PaletteEntry(f"Search all sessions for “{text}”", f"/search?{urlencode({'q': text})}")
        groups.append(PaletteGroup("Search", [search]))
    return site.render(request, "_palette.html", groups=[group for group in groups if group.entries])


def _projects(projects: Sequence[str]) -> list[PaletteEntry]:
    return [
        PaletteEntry(name, "/sessions" + PageQuery(project=project).query_string(), project)
        for project, name in formatting.folder_names(projects).items()
    ]


def _session(site: Site, summary: SessionSummary) -> PaletteEntry:
    detail = " · ".join(
        (
            formatting.folder(summary.project),
            formatting.short_time(summary.ended or summary.started),
            site.short_id(summary.id),
        )
    )
    return PaletteEntry(summary.title or summary.id, site.session_url(summary.id), detail)


def _matching(entries: Iterable[PaletteEntry], text: str) -> list[PaletteEntry]:
    words = text.lower().split()
    return [entry for entry in entries if all(word in f"{entry.name} {entry.detail}".lower() for word in words)]
