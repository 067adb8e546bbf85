"""`agent-logger start`: the main job."""

import click

from agent_logger import config
from agent_logger.cli import demo, output


@click.command()
@config.settings_options("port", "page_port", "log_dir", "allow_upstream", "redact", "workers")
@click.pass_context
def command(context: click.Context, settings: config.Settings) -> None:  # noqa: ARG001 (checked)
    """Start recording. The same as agent-logger without a command.

    This version has no proxy and no page yet, so it runs the demo.
    """
    output.note("This version has no proxy and no page yet, so here is the demo (agent-logger demo).\n")
    context.invoke(demo.command, once=True, sessions_dir=None, config_file=None)
