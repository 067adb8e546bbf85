"""`agent-logger leave`: leave the hub."""

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options()
def command(settings: config.Configuration, yes: bool) -> int:
    """Leave the hub: this machine pushes no more, and its token ends.

    What was pushed stays on the hub; 'agent-logger share --level none' and a push delete it before.

    \b
    Examples:
      agent-logger leave
    """
    from agent_logger.push.client import HubClient
    from agent_logger.push.machine import forget_membership, joined
    from agent_logger.push.protocol import HubRefusalError

    member = joined(settings.home)
    if not _output.confirm(f"Leave {member.url}? What was pushed stays there.", yes=yes):
        return 1
    client = HubClient(member.url, member.token)
    try:
        client.leave()
    except (OSError, HubRefusalError) as error:
        _output.note(f"{error}; the hub was not told, so its admin should revoke this machine")
    finally:
        client.close()
    forget_membership(settings.home)
    _output.note(f"left {member.url}")
    return 0
