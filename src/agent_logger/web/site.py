"""What all pages share: the catalogs, the templates, and how an answer is rendered."""

import hashlib
from collections.abc import Mapping
from datetime import tzinfo
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agent_logger import __version__
from agent_logger.agents.registry import AGENTS, resume_command
from agent_logger.catalog.ledger.unlisted import UNLISTED_CALLS
from agent_logger.home.homes import OWN
from agent_logger.proxy.status import proxy_reports
from agent_logger.views.endings import exchange_ending, turn_ending
from agent_logger.views.figures import not_itemised_text
from agent_logger.views.lists import failure_of
from agent_logger.web import charts, formatting
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.in_flight import InFlightTurns
from agent_logger.web.verification_runs import VerificationRuns

HERE = Path(__file__).parent
TINTS = 8  # colours for agents, in page.css
PIECES_CSS = Path(str(files("agent_logger.views.html") / "style.css"))


def _digest() -> str:
    """The digest of all static files. It is part of their address, so that a browser may cache them for ever."""
    paths = [*sorted((HERE / "static").iterdir()), PIECES_CSS]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


STATIC = f"/static/{_digest()}"
CONVERSATION_MARK = "<!-- the conversation -->"
THEMES = ("light", "dark")
VIEWS = (("/", "Home"), ("/sessions", "Sessions"), ("/live", "Live"), ("/health", "Health"))
# Not a secret: without it, the page would be drawn once in the wrong colours.
SITE_OF_REQUEST = "agent_logger.site"  # in the scope of a request
THEME_COOKIE = "agent_logger_theme"


class Site:
    is_framed = False  # in a frame without scripts
    zone: tzinfo | None = None  # of days, where a request names none; none: this machine's
    helps_setup = True  # for users who have no sessions yet
    missing_views: frozenset[str] = frozenset()
    next_steps: Mapping[int, str] = MappingProxyType({})  # by status, where they are not those of the local page

    def __init__(self, pool: CatalogPool) -> None:
        self.pool = pool
        self.verification_runs = VerificationRuns(pool.home)
        self.in_flight = InFlightTurns()
        self._templates = _environment()
        self._templates.globals |= {
            "session_url": self.session_url,
            "short_id": self.short_id,
            "own_machine": pool.homes.machines.get(OWN),
        }

    @property
    def several_machines(self) -> bool:
        return len(self.pool.homes.folders) > 1

    @property
    def several_people(self) -> bool:
        return len(set(filter(None, self.pool.homes.people.values()))) > 1

    def render(self, request: Request, template: str, /, **values: Any) -> Response:
        """Render a template. `data_url` is the address of the same data for programs. Parts of a page, whose names
        begin with `_`, have no frame."""
        frame = {} if template.startswith("_") else self._frame(request)
        dimensions = {"several_machines": self.several_machines, "several_people": self.several_people}
        text = self._templates.get_template(template).render(
            {"path": request.url.path, "search_text": "", **dimensions, **frame, **values}
        )
        return HTMLResponse(text, values.get("status", 200))

    def session_url(self, session_id: str, rest: str = "") -> str:
        """The address of a session, as short as it can be."""
        return self.pool.refresher.addresses.url(session_id, rest)

    def short_id(self, session_id: str) -> str:
        return self.pool.refresher.addresses.short_id(session_id)

    def _frame(self, request: Request) -> dict[str, Any]:
        theme = request.cookies.get(THEME_COOKIE, "")
        return {
            "theme": theme if theme in THEMES else "auto",
            "proxy": min(proxy_reports(self.pool.home), key=lambda report: report.recording, default=None),  # the worst
            "catalog_problem": self.pool.refresher.problem,
            "data_url": None,
            "views": VIEWS,
            "is_hub": False,
            "reader": None,
            "is_framed": False,
        }

    def render_around(self, request: Request, template: str, /, **values: Any) -> tuple[bytes, bytes]:
        """Render a page in two halves around the place of `{{ conversation }}`, because what comes between takes
        longer."""
        text = self.render(request, template, conversation=Markup(CONVERSATION_MARK), **values).body
        before, _, after = bytes(text).partition(CONVERSATION_MARK.encode())
        return before, after


def site_of(request: Request) -> Site:
    """The site as the reader of this request sees it, where readers differ; else that of the application."""
    site: Site = request.scope.get(SITE_OF_REQUEST) or request.app.state.site
    return site


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=formatting.visible,
    )
    environment.filters["not_itemised"] = not_itemised_text
    environment.filters |= {
        name: getattr(formatting, name)
        for name in (
            "money",
            "change",
            "count",
            "noun",
            "pluralize",
            "size",
            "duration",
            "short_time",
            "exact_time",
            "clock_time",
            "folder",
            "model",
        )
    }
    environment.globals |= {
        "version": __version__,
        "static": STATIC,
        "charts": charts,
        "seconds_between": formatting.between,
        "share": formatting.share,
        "icon": _icon,
        "turn_ending": turn_ending,
        "exchange_ending": exchange_ending,
        "failure_of": failure_of,
        "resume_command": resume_command,
        "tint_class": _tint_class,
        "unlisted_calls_note": UNLISTED_CALLS,
    }
    return environment


def _tint_class(agent: str | None) -> str:
    """Return the class of the agent's colour; agents that are not known have none."""
    positions = {row.name: position for position, row in enumerate(AGENTS)}
    return f" tint-{positions[agent] % TINTS}" if agent in positions else ""


def _icon(name: str) -> Markup:
    return Markup('<svg class="icon" aria-hidden="true"><use href="{}/icons.svg#{}"/></svg>').format(STATIC, name)
