"""`agent-logger start`: start recording, which is the main job."""

import contextlib
import subprocess
from collections.abc import Iterator

import click

from agent_logger import config
from agent_logger.cli import proxy
from agent_logger.cli._settings import settings_options

STOP_SECONDS = 10.0


@click.command()
@click.option("--no-page", is_flag=True, help="Start the proxy alone.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--no-link", is_flag=True, help="Do not print a link to the page; 'agent-logger view' prints one.")
@settings_options(*proxy.SETTINGS, "sessions_dir", "page_port")
def command(settings: config.Configuration, no_page: bool, no_open: bool, no_link: bool) -> None:
    """Start the proxy and the page. The same as no command.

    See 'agent-logger proxy --help' for how to send an agent through the proxy, and 'agent-logger view --help' for the
    page. They are separate processes: a problem with the page does not affect the proxy.
    If this machine has joined a hub, what is shared is pushed to it every minute.

    \b
    Examples:
      agent-logger
      agent-logger --port 9000 --no-page
    """
    from agent_logger.service.launchd import limit_log

    limit_log(settings.home)
    children: list[subprocess.Popen[str]] = []
    options = ["--no-open"] * no_open + ["--no-link"] * no_link
    try:
        proxy.serve(settings, lambda: children.extend(_children(settings, None if no_page else options)))
    finally:
        for child in children:
            _end(child)


def _children(settings: config.Configuration, page_options: list[str] | None) -> Iterator[subprocess.Popen[str]]:
    """Start the page, if it has options, and the pushes, if this machine has joined a hub."""
    from agent_logger.push.machine import membership

    if page_options is not None:
        yield _page(settings, page_options)
    if membership(settings.home):
        yield _pusher(settings)


def _pusher(settings: config.Configuration) -> subprocess.Popen[str]:
    from agent_logger.proxy.attended import attended

    file = ["--config", str(settings.file)] if settings.file else []
    return attended("push", *file, environment=_environment(settings))


def _page(settings: config.Configuration, options: list[str]) -> subprocess.Popen[str]:
    from agent_logger.proxy.attended import attended

    chosen = [] if settings.is_default("page_port") else ["--page-port", str(settings.page_port)]
    return attended("view", *options, *chosen, environment=_environment(settings))


def _environment(settings: config.Configuration) -> dict[str, str]:
    # The page reads what the proxy records, whoever else wrote to that folder.
    variables = {"AGENT_LOGGER_HOME": str(settings.home), "AGENT_LOGGER_LOG_DIR": str(settings.log_dir)}
    if not settings.is_default("sessions_dir"):
        variables["AGENT_LOGGER_SESSIONS_DIR"] = str(settings.sessions_dir)
    if settings.agent_folders:
        variables["AGENT_LOGGER_AGENT_FOLDERS"] = ",".join(map(str, settings.agent_folders))
    return config.child_environment(**variables)


def _end(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        assert child.stdin
        child.stdin.close()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
