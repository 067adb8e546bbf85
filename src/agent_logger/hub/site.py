"""The site of a hub: the local page's views, as one person may see them."""

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any, Self

from starlette.requests import Request

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Ownership, SessionSummary
from agent_logger.files.stored_text import storable
from agent_logger.hub.people import PageReader, People, Person
from agent_logger.hub.read_log import ReadLog
from agent_logger.hub.roles import SessionScope
from agent_logger.web.catalog_pool import CatalogPool, PoolReader
from agent_logger.web.site import THEME_COOKIE, THEMES, Site

NEXT_STEPS: Mapping[int, str] = {
    401: "Ask an admin of this hub for a link: 'agent-logger hub token NAME' prints one that works once.",
    403: "An admin of this hub can change your role.",
    404: "It may have been withdrawn, or is not shared with you.",
    429: "Try again in a minute.",
    500: "This is a bug in agent-logger. Please report it, with the output of 'agent-logger hub serve'.",
    503: "Try again in a moment.",
}

VIEWS = (("/", "Home"), ("/team", "Team"), ("/sessions", "Sessions"), ("/reads", "Reads"))


class HubSite(Site):
    zone = UTC  # of days, where a request names none
    helps_setup = False
    missing_views = frozenset({"/health"})
    next_steps = NEXT_STEPS

    def __init__(self, pool: CatalogPool, people: People) -> None:
        super().__init__(pool)
        self.people = people
        self.reads = ReadLog(people)
        self.reader: PageReader | None = None

    async def for_reader(self, reader: PageReader, scope: SessionScope, route: str | None, peer: str) -> Self:
        """Return the site as a person sees it. `route`: what is noted of reads; none are, if it shows no contents."""
        site = copy.copy(self)
        owner = await self._ownership(reader.person) if scope is SessionScope.OWN else None
        site.reader, site.pool = reader, self.pool.for_reader(PoolReader(owner, self._note(reader.person, route, peer)))
        return site

    def _note(self, person: Person, route: str | None, peer: str) -> Callable[[Sequence[SessionSummary]], None]:
        def note(sessions: Sequence[SessionSummary]) -> None:
            for session in sessions if route else ():
                self.reads.note(person, session, route or "", peer)

        return note

    async def _ownership(self, person: Person) -> Ownership:
        homes = self.pool.homes.below
        devices = await self.pool.run(lambda: self.people.device_ids(person))
        keys = frozenset(storable(str(homes / device)) for device in devices) if homes else frozenset[str]()

        def first_shared(catalog: Catalog) -> frozenset[str]:
            return frozenset(name for name in catalog.shared_sessions(keys) if self.people.is_first(name, person))

        shared = await self.pool.cached(("shared", keys), first_shared)
        return Ownership(homes=keys, shared=shared)

    def _frame(self, request: Request) -> dict[str, Any]:
        theme = request.cookies.get(THEME_COOKIE, "")
        return {
            "theme": theme if theme in THEMES else "auto",
            "proxy": None,
            "catalog_problem": self.pool.refresher.problem,
            "data_url": None,
            "views": VIEWS if self.reader else (),
            "is_hub": True,
            "reader": self.reader,
            "is_framed": self.is_framed,
        }
