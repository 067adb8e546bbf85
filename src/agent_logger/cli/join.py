"""`agent-logger join`: join a team's hub."""

import sys

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options


@click.command()
@click.argument("url")
@click.argument("invite_from", metavar="[-]", required=False, type=click.Choice(["-"]))
@settings_options()
def command(settings: config.Configuration, url: str, invite_from: str | None) -> None:
    """Join the hub at URL with an invite, which is asked for, or read from stdin with -.

    Nothing is sent yet: 'agent-logger share' says what will be, 'agent-logger push' sends it, and so does
    'agent-logger start' from now on. What is shared by default is numbers: models, tokens and times, without a name of
    a project or anything that was said.

    \b
    Examples:
      agent-logger join https://hub.example.com
      agent-logger join http://127.0.0.1:8090 - < invite
    """
    from agent_logger.errors import AgentLoggerError
    from agent_logger.home.machine import note_machine, origin_of
    from agent_logger.push.client import HubClient, checked_address
    from agent_logger.push.machine import Membership, membership, note_membership
    from agent_logger.push.protocol import HubRefusalError

    address = checked_address(url)
    if member := membership(settings.home):
        raise click.UsageError(f"this machine has joined {member.url}; 'agent-logger leave' leaves it")
    invite = sys.stdin.readline().strip() if invite_from else click.prompt("Invite", hide_input=True, err=True).strip()
    note_machine(settings.home)
    client = HubClient(address)
    try:
        answer = client.join(invite, origin_of(settings.home).machine or "unnamed")
    except HubRefusalError as refused:
        raise AgentLoggerError(f"{address} refused: {refused}; ask for a new invite") from refused
    except OSError as error:
        raise AgentLoggerError(str(error)) from error
    finally:
        client.close()
    note_membership(
        settings.home,
        Membership(url=address, token=answer.token, device=answer.device, person=answer.person, machine=answer.machine),
    )
    _output.note(f"{answer.machine} joined {address} for {answer.person}. Nothing was sent yet.")
    _output.note("'agent-logger share --show' prints what would be sent, 'agent-logger push --once' sends it.")
