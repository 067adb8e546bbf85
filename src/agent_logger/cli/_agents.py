"""The option that selects an agent, by its name or another one that people use."""

from typing import TYPE_CHECKING, Any

import click

from agent_logger.agents.registry import AGENTS, canonical_name, names_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_logger.catalog.catalog import Catalog


def agent_option(what: str) -> "Callable[[Any], Any]":
    """Add `--agent`. `what` is selected, for example "sessions"."""
    return click.option(
        "--agent",
        callback=lambda _ctx, _option, name: canonical_name(name) if name else None,
        help=f"Only {what} of this agent: {names_text()}.",
    )


def check_agent(catalog: "Catalog", name: str | None) -> None:
    """Raise `UsageError` if no agent has this name: neither one that is known, nor one that has sessions."""
    from agent_logger.catalog.summary import Filter

    if name and all(agent.name != name for agent in AGENTS) and not catalog.count(Filter(agent=name)):
        raise click.UsageError(f"no agent {name!r}; known: {names_text()}")
