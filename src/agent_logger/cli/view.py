"""`agent-logger view`: open the page alone."""

import sys

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import homes_option, register_folders
from agent_logger.cli._settings import settings_options
from agent_logger.home.homes import Homes


@click.command()
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--no-link", is_flag=True, help="Do not print a link, for output that others may read.")
@settings_options("page_port")
@homes_option(with_database=True)
def command(settings: config.Configuration, homes: Homes, no_open: bool, no_link: bool) -> None:
    """Open the page, which shows what the agents did, in a browser.

    The page listens on 127.0.0.1 and is for you alone: the command prints a link that works once and signs in the
    browser that opens it. The page only reads the logs and the agents' own files. If your page is already running, you
    get a link to that one. With --home, the page shows the sessions of these homes; its health page is about your own.

    \b
    Examples:
      agent-logger view
      agent-logger view --no-open --page-port 9001
      agent-logger view --home ~/homes/laptop --home ~/.agent-logger
    """
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.web.server import PageOptions, link_to_running, run

    def show(link: str) -> None:
        if not no_link:
            _print_link(link, opening=not no_open)

    if homes.has_own and not homes.database:
        register_folders(settings)
    if settings.is_default("page_port") and (link := link_to_running(homes)):
        _output.note("The page is already running.")
        show(link)
        return
    if homes.database:
        Catalog(homes).close()  # what is wrong with it is said here, and not on each page
    options = PageOptions(
        port=settings.page_port,
        port_is_chosen=not settings.is_default("page_port"),
        homes=homes,
        seal_after_seconds=settings.seal_after,
    )
    run(options, show)


def _print_link(link: str, *, opening: bool) -> None:
    _output.note(f"Open the page: {link}")
    _output.note("The link works once, within ten minutes; 'agent-logger view' prints a new one.")
    if opening and sys.stderr.isatty():
        import webbrowser

        webbrowser.open(link)
