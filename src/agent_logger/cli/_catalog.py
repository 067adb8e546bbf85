"""The catalog as commands use it: over which homes, a progress bar while it is built, a note if it cannot be stored."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.home.homes import Homes, folders_outside, homes_of

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.catalog.refresh.changes import Progress
    from agent_logger.logs.folder_origin import LogOrigin

R = TypeVar("R")

NOTHING_YET = "No sessions yet. 'agent-logger run -- claude' records one;\n'agent-logger demo' shows an example."


def note_nothing(catalog: "Catalog", text: str) -> None:
    """Say that there is nothing: `text`, or that there are no sessions at all, and which cannot be read."""
    if catalog.count():
        _output.note(text, lines=True)
        return
    if catalog.is_read_only:
        _output.note("The database has no sessions.")
        return
    from agent_logger.catalog.discovery.installed_agents import installed_agents

    _output.note(NOTHING_YET, lines=True)
    for reason in (reason for agent in installed_agents() for reason in agent.unreadable):
        _output.note(reason)


# If more bytes than this are not in the search index, a background process reads them.
MOST_NAMED = 3  # folders
WORTH_A_PROCESS = 20_000_000


# Why logs in the working folder are not read, by their origin.
WHY_UNREAD: "Mapping[LogOrigin, str]" = {
    "other": "another installation wrote its logs",
    "unproven": "nothing shows that this installation wrote its logs",
}

# New objects before the garbage collector runs: a long list of sessions has more than the default of 700.
YOUNG_OBJECTS = 20_000


@contextmanager
def open_catalog(settings: config.Configuration, homes: Homes | None = None) -> "Iterator[Catalog]":
    """The catalog of these homes, or of the own one, up to date."""
    gc.set_threshold(YOUNG_OBJECTS)
    from agent_logger.catalog.catalog import Catalog

    homes = homes or Homes(settings.home)
    if homes.has_own and not homes.database:
        register_folders(settings)
    with Catalog(homes) as catalog:
        with bar("reading sessions") as progress:
            catalog.refresh(progress)
        if catalog.problem:
            _output.note(f"the catalog cannot be written, so this command keeps it in memory: {catalog.problem}")
        yield catalog
        if not catalog.problem and not catalog.is_read_only:
            _start_due_work(catalog, settings)


def _note_outside(home: Path) -> None:
    """Say which recordings of another home are not in its folder."""
    if outside := folders_outside(home):
        names = ", ".join(map(str, outside[:MOST_NAMED])) + ", ..." * (len(outside) > MOST_NAMED)
        _output.note(f"not read, because outside of {home}: {names}")


def _start_due_work(catalog: "Catalog", settings: config.Configuration) -> None:
    if catalog.backlog > WORTH_A_PROCESS or catalog.is_sealing_due(settings.seal_after):
        from agent_logger.catalog.background import start

        start(catalog.homes, settings.seal_after)


def folders_of_logs(settings: config.Configuration) -> list[Path]:
    """The folders of logs: the home, and those that were ever written to or chosen; none inside another."""
    from agent_logger.home.facts import known_folders
    from agent_logger.logs.disk_usage import outermost

    register_folders(settings)
    return outermost([settings.home, *known_folders(settings.home)])


def register_folders(settings: config.Configuration) -> None:
    """Register the log folders in the settings whose logs are to be read: those that the user chose, and those in the
    working folder that this installation wrote. Other logs in the working folder are named on stderr."""
    from agent_logger.home.facts import register_log_folder

    for name, folder in (("log_dir", settings.log_dir), ("sessions_dir", settings.sessions_dir)):
        if not os.path.isdir(folder):
            continue
        origin = _origin_of(settings.home, folder) if settings.is_default(name) else "own"
        if origin == "own":
            # A problem with the home is reported by the catalog.
            register_log_folder(settings.home, folder, warns=False)
        elif origin:
            _note_unread(config.SETTINGS[name], origin)


def _origin_of(home: Path, folder: Path) -> "LogOrigin | None":
    """Return who wrote the logs in a folder that nobody chose: a repository may bring it along, or a link to any place.
    `None` if there is nothing to do or to say."""
    from agent_logger.home.facts import known_folders
    from agent_logger.home.layout import existing_key
    from agent_logger.logs.folder_origin import folder_origin

    if folder.is_symlink() or folder.resolve() in known_folders(home):
        return None
    return folder_origin(folder, existing_key(home))


def _note_unread(setting: config.Setting, origin: "LogOrigin") -> None:
    folder = setting.default
    _output.note(f"{folder} is not read: {WHY_UNREAD[origin]}")
    _output.note(f"To read it from now on: {setting.variable}={folder} agent-logger ls")


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


# ---------------------------------------------------------------- which homes


def homes_option(*, with_database: bool = False) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add `--home`, and `--database` for commands that only read the catalog, and pass `homes`. To be placed below
    `settings_options`."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def with_homes(
            *,
            settings: config.Configuration,
            home_folders: tuple[str, ...],
            database: str | None = None,
            **rest: Any,
        ) -> R:
            if database and home_folders:
                raise click.UsageError("--database and --home cannot be used together")
            homes = homes_of(settings.home, home_folders)._replace(database=database)
            for home in homes.others:
                _note_outside(home)
            return command(settings=settings, homes=homes, **rest)

        option = click.option(
            "--home",
            "home_folders",
            metavar="FOLDER",
            multiple=True,
            type=click.Path(readable=False),
            help="Read this home, such as ~/.agent-logger or a copy of another machine's, instead of your own. May be"
            " repeated.",
        )
        return option(_database_option(with_homes) if with_database else with_homes)

    return decorate


_database_option = click.option(
    "--database", metavar="URL", help="Read the catalog in this PostgreSQL database instead of your own."
)


def machine_option(what: str) -> Callable[[Any], Any]:
    """Add `--machine`. `what` is selected, for example "sessions"."""
    return click.option("--machine", metavar="NAME", help=f"Only {what} of this machine; see --home.")


def check_machine(catalog: "Catalog", name: str | None) -> None:
    """Raise `UsageError` if none of the homes is of a machine with this name."""
    from agent_logger.home.homes import keys_of

    if name and not keys_of(name, catalog.machines):
        raise click.UsageError(f"no machine {name!r}; the sessions are of {', '.join(catalog.machines.values())}")
