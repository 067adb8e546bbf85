"""`agent-logger status`: show whether it is recording, and what was lost."""

from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.proxy.status import ProxyReport


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/status.json).")
@settings_options()
def command(settings: config.Configuration, as_json: bool) -> int:
    """Show whether it is recording, and what was lost.

    Lists every running proxy, with what it has written, what it had to drop, and how far its recorder is behind. Exit
    code: 0 all of them record, 1 none is running, or one has a problem.

    \b
    Examples:
      agent-logger status
      agent-logger status --json | jq '.[].lost'
    """
    from agent_logger.proxy.status import proxy_reports

    reports = proxy_reports(settings.home)
    if as_json:
        _output.json(reports)
    elif not reports:
        _output.echo("Nothing is being recorded. 'agent-logger' starts the proxy.")
    for report in reports if not as_json else []:
        _print(report)
    return 0 if reports and all(report.recording for report in reports) else 1


def _print(report: "ProxyReport") -> None:
    state = "recording" if report.recording else f"NOT RECORDING: {report.problem or 'no recorder'}"
    rows = [
        ("proxy", f"http://127.0.0.1:{report.port} (process {report.pid}, since {report.started})"),
        ("state", state + (f", since {report.degraded_since}" if report.degraded_since else "")),
        ("log folder", f"{report.log_dir} ({report.free_bytes / 1e9:,.1f} GB free)"),
        ("calls", _number(report.calls)),
        *([("refused", _number(report.refused, " requests"))] if report.refused else []),
        ("sessions", _number(report.sessions) + _counts_text(report.agents)),
        *([("workers", _workers(report))] if report.workers and report.workers > 1 else []),
        ("clients", f"{_number(report.clients)} connected"),
        ("written", _number(report.written, " records")),
        ("lost", _number(report.lost, " records")),
        ("behind", f"{report.lag_ms or 0:,.0f} ms, {report.backlog_bytes or 0:,} bytes"),
        ("upstream proxy", report.upstream_proxy or "none"),
    ]
    for name, text in rows:
        _output.echo(f"{name:15} {text}")


def _workers(report: "ProxyReport") -> str:
    count = report.workers_replaced
    replaced = f", {count:,} died and {'was' if count == 1 else 'were'} replaced" if count else ""
    return f"{report.workers_listening} of {report.workers} listen{replaced}"


def _counts_text(agents: dict[str, int]) -> str:
    counts_text = ", ".join(f"{count} {agent}" for agent, count in sorted(agents.items()))
    return f" ({counts_text})" if counts_text else ""


def _number(value: int | None, unit: str = "") -> str:
    return "not known yet" if value is None else f"{value:,}{unit}"
