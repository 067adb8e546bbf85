"""`agent-logger view`: open the page alone."""

import sys

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import know_chosen_folders
from agent_logger.cli._settings import settings_options


@click.command()
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@settings_options("page_port")
def command(settings: config.Configuration, no_open: bool) -> None:
    """Open the page that shows what the agents did, in a browser.

    The page listens on 127.0.0.1 and is for you alone: the command prints a link that works once, and the browser that
    opens it is let in. Everything on the page is read from the logs and the agents' own files, and nothing is written
    to them. If your page runs already, you get a link to that one.

    \b
    Examples:
      agent-logger view
      agent-logger view --no-open --page-port 9001
    """
    from agent_logger.web.server import PageOptions, link_to_running, run

    know_chosen_folders(settings)
    if settings.is_default("page_port") and (link := link_to_running(settings.home)):
        _output.note("The page runs already.")
        _say(link, opening=not no_open)
        return
    options = PageOptions(
        port=settings.page_port,
        port_is_chosen=not settings.is_default("page_port"),
        home=settings.home,
        seal_after_seconds=settings.seal_after,
    )
    run(options, lambda link: _say(link, opening=not no_open))


def _say(link: str, *, opening: bool) -> None:
    _output.note(f"The page: {link} (works once, for ten minutes; 'agent-logger view' makes another)")
    if opening and sys.stderr.isatty():
        import webbrowser

        webbrowser.open(link)
