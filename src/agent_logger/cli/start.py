"""`agent-logger start`: start recording, which is the main job."""

import contextlib
import subprocess

import click

from agent_logger import config
from agent_logger.cli import proxy
from agent_logger.cli._settings import settings_options

STOP_SECONDS = 10.0


@click.command()
@click.option("--no-page", is_flag=True, help="Start the proxy alone.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@settings_options(*proxy.SETTINGS, "page_port")
def command(settings: config.Configuration, no_page: bool, no_open: bool) -> None:
    """Start recording: the proxy, and the page that shows it. The same as no command.

    'agent-logger proxy --help' explains how to send an agent through it, 'agent-logger view --help' what the page is.
    Each is a process of its own: a problem with the page does not harm the proxy.

    \b
    Examples:
      agent-logger
      agent-logger --port 9000 --no-page
    """
    pages: list[subprocess.Popen[str]] = []
    try:
        proxy.serve(settings, lambda: None if no_page else pages.append(_page(settings, opening=not no_open)))
    finally:
        for page in pages:
            _end(page)


def _page(settings: config.Configuration, *, opening: bool) -> subprocess.Popen[str]:
    from agent_logger.proxy.attended import attended

    arguments = ["view"] if opening else ["view", "--no-open"]
    if not settings.is_default("page_port"):
        arguments += ["--page-port", str(settings.page_port)]
    return attended(*arguments, environment=config.child_environment(AGENT_LOGGER_HOME=str(settings.home)))


def _end(page: subprocess.Popen[str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        assert page.stdin
        page.stdin.close()
    try:
        page.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        page.kill()
        page.wait()
