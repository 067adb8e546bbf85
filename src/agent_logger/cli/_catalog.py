"""The catalog as commands use it: a progress bar while it is built, and a note if it cannot be stored."""

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_logger import config
from agent_logger.cli import _output

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.refresh.refresh import Progress

NOTHING_YET = (
    "No sessions yet. 'agent-logger run -- claude' records one;\n'agent-logger demo' shows how it looks."
)

# Bytes that nobody has read whole yet: so that they can be searched when somebody does.
WORTH_A_PROCESS = 20_000_000


# That are made before garbage is looked for: a list of many sessions is made of more than 700.
YOUNG_OBJECTS = 20_000


@contextmanager
def opened(settings: config.Configuration) -> "Iterator[Catalog]":
    """The catalog, up to date."""
    gc.set_threshold(YOUNG_OBJECTS)
    from agent_logger.catalog.catalog import Catalog

    know_chosen_folders(settings)
    with Catalog.open(settings.home) as catalog:
        with bar("reading sessions") as progress:
            catalog.refresh(progress)
        if catalog.problem:
            _output.note(f"the catalog is kept in memory for this command: {catalog.problem}")
        yield catalog
        if not catalog.problem:
            _start_due_work(catalog, settings)


def _start_due_work(catalog: "Catalog", settings: config.Configuration) -> None:
    if catalog.backlog > WORTH_A_PROCESS or catalog.is_sealing_due(settings.seal_after):
        from agent_logger.catalog.background import start

        start(settings.home, settings.seal_after)


def folders_of_logs(settings: config.Configuration) -> list[Path]:
    """The folders of logs: those in the settings, those ever written to, and the home; none inside another."""
    from agent_logger.home.facts import known_folders
    from agent_logger.logs.disk_usage import outermost

    chosen = (settings.log_dir, settings.sessions_dir, settings.home)
    return outermost([*chosen, *known_folders(settings.home)])


def know_chosen_folders(settings: config.Configuration) -> None:
    """Register the folders that the user chose: their logs are read, whoever wrote them, also on another machine."""
    from agent_logger.home.facts import register_log_folder

    for name, folder in (("log_dir", settings.log_dir), ("sessions_dir", settings.sessions_dir)):
        if not settings.is_default(name) and folder.is_dir():
            register_log_folder(settings.home, folder, warns=False)  # of the home, the catalog says the same


@contextmanager
def bar(label: str) -> "Iterator[Progress]":
    """A progress bar for work that reports how much it has done, of how much."""
    with ExitStack() as stack:
        done = 0
        advance: Callable[[int], None] | None = None

        def progress(now: int, total: int) -> None:
            nonlocal done, advance
            if advance is None:
                advance = stack.enter_context(_output.progress(label, total))
            advance(now - done)
            done = now

        yield progress
