"""`agent-logger ca`: show the certificate of the forward door, or renew it."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.proxy.forward.ca_report import CaReport


@click.command()
@click.option("--renew", is_flag=True, help="Make a new key. The old one still signs for a day, for agents that run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema ca' describes it.")
@settings_options("record_hosts")
def command(settings: config.Configuration, renew: bool, as_json: bool) -> None:
    """Show the certificate that the forward door opens recorded hosts with.

    Each installation has its own certificate authority in ~/.agent-logger/ca, made when it is first needed, valid for a
    year and renewed a month before it expires. It permits the recorded hosts and no other name or address. No trust
    store has it: only agents that agent-logger starts trust it. To remove it, stop the proxy and delete the folder.

    The certificate is issued again, with the same key, if a host was added to the setting record_hosts. Hosts that were
    removed from the setting stay in it until --renew.

    \b
    Examples:
      agent-logger ca
      agent-logger ca --renew
      agent-logger ca --json | jq -r .current.certificate
    """
    from agent_logger.proxy.forward.ca_report import report
    from agent_logger.proxy.forward.certificates import Authority
    from agent_logger.proxy.forward.hosts import RecordedHosts

    authority = Authority(settings.home, RecordedHosts.configured(settings.record_hosts))
    if renew:
        authority.renew()
    result = report(settings.home, authority)
    for notice in result.notices:
        _output.note(f"agent-logger: {notice}")
    if as_json:
        _output.json(result)
        return
    if renew:
        _output.note("A new key was made.")
    _print(result)


def _print(report: "CaReport") -> None:
    current, previous = report.current, report.previous
    _output.echo(current.name)
    _output.echo(f"  fingerprint  {current.fingerprint}")
    _output.echo(f"  valid        {current.valid_from[:10]} to {current.expires[:10]}")
    _output.echo(f"  certificate  {current.certificate}")
    _output.echo(f"  key          {current.key}")
    if previous:
        _output.echo()
        _output.echo(f"{previous.name}, replaced; its key signs until {report.previous_until} for agents that run")
        _output.echo(f"  fingerprint  {previous.fingerprint}")
    _output.echo()
    _output.echo("Recorded hosts:")
    for host in report.hosts:
        _output.echo(f"  {host}")
    if unrecorded := _unrecorded(report):
        _output.echo()
        _output.echo("The certificate also permits hosts that are not recorded; --renew removes them:")
        for host in unrecorded:
            _output.echo(f"  {host}")


def _unrecorded(report: "CaReport") -> list[str]:
    """Return what the certificate permits for hosts that were recorded before."""
    from agent_logger.proxy.forward.hosts import are_permitted

    recorded = [name.removeprefix("*.") for name in report.hosts]
    return [name for name in report.current.permits if not are_permitted((name,), recorded)]
