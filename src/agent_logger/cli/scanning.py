"""The catalog as commands use it: a bar while it is made, and a word when it cannot be kept."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from agent_logger import config
from agent_logger.cli import output

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.scan import Progress

NOTHING_YET = (
    "No sessions yet. 'agent-logger run -- claude' records one;\n'agent-logger demo' shows how it looks."
)


@contextmanager
def opened(settings: config.Settings) -> "Iterator[Catalog]":
    """Up to date."""
    from agent_logger.catalog.catalog import Catalog

    with Catalog.open(settings.home) as catalog:
        with bar("reading sessions") as progress:
            catalog.refresh(progress)
        if catalog.problem:
            output.note(f"the catalog cannot be kept ({catalog.problem}); answering from the files")
        yield catalog


@contextmanager
def bar(label: str) -> "Iterator[Progress]":
    """For what tells how much it has done, of how much."""
    with ExitStack() as shown:
        done = 0
        advance: Callable[[int], None] | None = None

        def progress(now: int, total: int) -> None:
            nonlocal done, advance
            if advance is None:
                advance = shown.enter_context(output.progress(label, total))
            advance(now - done)
            done = now

        yield progress
