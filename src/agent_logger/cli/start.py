"""`agent-logger start`: the main job."""

import click

from agent_logger import config
from agent_logger.cli import proxy


@click.command()
@config.settings_options(*proxy.SETTINGS)
def command(settings: config.Settings) -> None:
    """Start recording: the proxy, until there is a page. The same as no command.

    'agent-logger proxy --help' says how an agent is sent through it.
    """
    proxy.serve(settings)
