"""`agent-logger withdraw`: take a session back from the hub."""

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize


@click.command()
@click.argument("session", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options()
def command(settings: config.Configuration, session: str, yes: bool) -> int:
    """Withdraw a session from the hub, for good: what all your machines have pushed of it is deleted there.

    The session stays on this machine, and is never pushed again by any of your machines. If another person has pushed
    the same session, that copy stays, and the person is named.

    \b
    Examples:
      agent-logger withdraw 9e3842d3
    """
    from agent_logger.cli._catalog import open_catalog
    from agent_logger.push.machine import joined
    from agent_logger.push.run import withdraw

    member = joined(settings.home)
    with open_catalog(settings) as catalog:
        names = catalog.resolve(session)
    if len(names) > 1:
        raise click.UsageError(f"{session!r} is ambiguous ({', '.join(names)}): use a longer prefix")
    name = names[0] if names else session  # of a session that is gone here the whole id
    if not _output.confirm(f"Withdraw {name} from {member.url} for good?", yes=yes):
        return 1
    objects, others = withdraw(settings.home, name)
    _output.note(f"withdrew {name}: {pluralize(objects, 'object')} deleted on the hub")
    for person in others:
        _output.note(f"{person} has pushed this session, too: that copy stays")
    return 0
