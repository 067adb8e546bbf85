"""`agent-logger doctor`: is all well, and if not, what to do."""

import click

from agent_logger import config
from agent_logger.cli import output

MARKS = {"ok": "ok", "note": "-", "wrong": "WRONG"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/doctor.json).")
@config.settings_options()
def command(settings: config.Settings, as_json: bool) -> int:
    """Is all well? If not, what to do.

    Looks at the proxy, at known log folders and damage in them, at which agents are set up and which run unseen,
    at hooks, and at what agents will delete and when; --json lists those sessions. Changes nothing. Exit code: 0
    nothing is wrong, 1 something is.

    \b
    Examples:
      agent-logger doctor
      agent-logger doctor --json | jq '.doomed[].path'
    """
    from agent_logger.capture.proxy.status import proxy_reports
    from agent_logger.cli.checks import examine

    examined = examine(settings.home, proxy_reports(settings.home))
    if as_json:
        output.json(examined)
    else:
        for it in examined.findings:
            output.echo(f"{MARKS[it.mark]:6}{it.check:12}{it.found}")
            if it.next:
                output.echo(f"{'':18}> {it.next}")
    return 1 if any(it.mark == "wrong" for it in examined.findings) else 0
