"""`agent-logger push`: send what is shared to the hub."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.push.levels import ShareRules


@click.command()
@click.option("--once", is_flag=True, help="Send what is missing there, and stop.")
@click.option("--pause", "pauses", is_flag=True, help="Send nothing in the background until --resume.")
@click.option("--resume", "resumes", is_flag=True, help="Send in the background again.")
@settings_options()
def command(settings: config.Configuration, once: bool, pauses: bool, resumes: bool) -> int:
    """Send what is shared to the hub, every minute; with --once, now.

    'agent-logger start' and the service do this in the background. What the hub has is not sent again. Without the hub
    nothing on this machine fails: the next push continues. 'agent-logger share' sets what is shared.

    \b
    Examples:
      agent-logger push --once
      agent-logger push --pause
    """
    from agent_logger.push.levels import share_rules
    from agent_logger.push.machine import joined, pause
    from agent_logger.push.run import push_always, push_once

    if sum((once, pauses, resumes)) > 1:
        raise click.UsageError("give one of --once, --pause and --resume")
    joined(settings.home)
    if pauses or resumes:
        pause(settings.home, paused=pauses)
        _output.note("paused" if pauses else "resumed")
        return 0
    if not once:
        push_always(settings.home, lambda: _rules_now(settings), _output.note)
        return 0
    sent = push_once(settings.home, share_rules(settings.share, settings.file))
    _output.note(
        f"sent {pluralize(sent.objects, 'new object')} and {pluralize(sent.bytes, 'byte')}"
        f" in {pluralize(sent.ranges, 'range')}"
    )
    for session, reason in sent.refused:
        _output.note(f"not sent: {session}: {reason}")
    for session in sent.withdrawn:
        _output.note(f"withdrawn: {session}")
    return 1 if sent.refused else 0


def _rules_now(settings: config.Configuration) -> "ShareRules":
    """Return the rules as they are in the file now."""
    from agent_logger.push.levels import share_rules

    now = config.load({}, str(settings.file) if settings.file else None)
    return share_rules(now.share, now.file)
