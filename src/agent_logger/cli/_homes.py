"""The options that say which homes are read, and of which machine."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_logger import config
from agent_logger.home.homes import homes_of

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog

R = TypeVar("R")


def homes_option() -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add `--home`, and pass `homes`. To be placed below `settings_options`."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def with_homes(*, settings: config.Configuration, home_folders: tuple[str, ...], **rest: Any) -> R:
            return command(settings=settings, homes=homes_of(settings.home, home_folders), **rest)

        option = click.option(
            "--home",
            "home_folders",
            metavar="FOLDER",
            multiple=True,
            type=click.Path(readable=False),
            help="Read this home, such as ~/.agent-logger or a copy of another machine's, instead of your own. May be"
            " repeated.",
        )
        return option(with_homes)

    return decorate


def machine_option(what: str) -> Callable[[Any], Any]:
    """Add `--machine`. `what` is selected, for example "sessions"."""
    return click.option("--machine", metavar="NAME", help=f"Only {what} of this machine; see --home.")


def check_machine(catalog: "Catalog", name: str | None) -> None:
    """Raise `UsageError` if none of the homes is of a machine with this name."""
    if name and catalog.homes.key_of(name) is None:
        raise click.UsageError(f"no machine {name!r}; the homes are of {', '.join(catalog.machines.values())}")
