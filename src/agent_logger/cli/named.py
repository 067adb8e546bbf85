"""The session that is meant by an ID."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.errors import SourceError

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.sessions import Place
    from agent_logger.session import Session

MOST_CANDIDATES = 10


def session_called(settings: config.Settings, wanted: str) -> "Session":
    """From all who saw it."""
    from agent_logger.catalog.sessions import joined

    places = places_called(settings, wanted)
    return joined(places) or places[0].read()  # what cannot be read says why


def places_called(settings: config.Settings, wanted: str) -> "list[Place]":
    """Where it is; there is one at the least."""
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.sessions import called

    with Catalog.open(settings.home) as catalog:
        if found := catalog.places(wanted):
            return found
        # Or it is the path of a log that nobody was told of.
        if not catalog.called(wanted) and (found := called(settings.home, wanted)):
            return found
        return catalog.places(one_called(catalog, wanted))


def one_called(catalog: "Catalog", wanted: str) -> str:
    """Its id."""
    names = catalog.called(wanted)
    if not names:
        raise SourceError(f"no session {wanted!r}; 'agent-logger ls' lists them")
    if len(names) > 1:
        told = names[:MOST_CANDIDATES] + ["..."] * (len(names) > MOST_CANDIDATES)
        raise click.UsageError(f"{wanted!r} may be any of {', '.join(told)}; say more of it, or the path")
    return names[0]
