"""`agent-logger status`: show whether it is recording, and what was lost."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize
from agent_logger.views.recorded_runs import names_text

if TYPE_CHECKING:
    from agent_logger.proxy.status import ProxyReport


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema status' describes it.")
@settings_options()
def command(settings: config.Configuration, as_json: bool) -> int:
    """Show whether the proxy is recording, and what was lost.

    Lists every running proxy: what it has written, what it had to drop, and its backlog. Exit code: 0 if all of them
    are recording, 1 if none is running or one has a problem.

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
        _output.echo("The proxy is not running. Start it with 'agent-logger'.")
    for report in reports if not as_json else []:
        _print(report)
    if not as_json:
        _print_hub(settings)
    return 0 if reports and all(report.recording for report in reports) else 1


def _print_hub(settings: config.Configuration) -> None:
    """Print how the last push to a hub went, if this machine has joined one."""
    from agent_logger.push.machine import is_paused, membership, status_of

    member, status = membership(settings.home), status_of(settings.home)
    if member is None:
        return
    _output.echo(f"{'hub':15} {member.url}, as {member.person}{' (paused)' * is_paused(settings.home)}")
    if status.at is None:
        _output.echo(f"{'pushed':15} nothing yet")
        return
    last = f"last complete push {_local(status.succeeded_at)}" if status.succeeded_at else "no push was complete yet"
    _output.echo(f"{'pushed':15} {pluralize(status.sessions, 'session')} shared; {last}")
    if status.error:
        waiting = f"; {pluralize(status.waiting, 'session')} waiting" if status.waiting else ""
        _output.echo(f"{'push failed':15} {_output.hidden(status.error)}{waiting}")


def _print(report: "ProxyReport") -> None:
    state = "recording" if report.recording else f"NOT RECORDING: {report.problem or 'the recorder is not running'}"
    rows = [
        ("proxy", f"http://127.0.0.1:{report.port} (process {report.pid}, since {_local(report.started)})"),
        ("state", state + (f", since {_local(report.degraded_since)}" if report.degraded_since else "")),
        ("log folder", f"{report.log_dir} ({report.free_bytes / 1e9:,.1f} GB free)"),
        ("calls", _number(report.calls)),
        *(
            [("certificate", f"{report.certificate_problem}; recorded hosts are tunnels")]
            if report.certificate_problem
            else []
        ),
        *([("not understood", _not_understood(report.not_understood))] if report.not_understood else []),
        *([("refused", _number(report.refused, "request"))] if report.refused else []),
        ("sessions", _number(report.sessions) + _counts_text(report.agents)),
        *([("workers", _workers(report))] if report.workers and report.workers > 1 else []),
        ("clients", f"{_number(report.clients)} connected"),
        ("written", _number(report.written, "record")),
        ("lost", _number(report.lost, "record")),
        ("backlog", f"{report.lag_ms or 0:,.0f} ms, {pluralize(report.backlog_bytes or 0, 'byte')}"),
        ("upstream proxy", report.upstream_proxy or "none"),
        *_forward_rows(report),
    ]
    for name, text in rows:
        _output.echo(f"{name:15} {text}")


def _not_understood(count: int) -> str:
    return f"{pluralize(count, 'call')} to models, kept as bytes: their encoding or form is unknown"


def _forward_rows(report: "ProxyReport") -> Iterator[tuple[str, str]]:
    """What went through the forward door since the proxy started."""
    opened = [host for host in report.hosts if host.opened]
    unread = [host for host in report.hosts if host.tunnels > host.tunnels_unopened]
    distrusted = [host for host in report.hosts if host.not_trusted]
    if not report.hosts and not report.without_token:
        return
    calls = pluralize(sum(host.calls for host in report.hosts), "call")
    yield "forward door", f"{calls} to {pluralize(len(opened), 'host')}, {report.open_tunnels or 0:,} tunnels open"
    if unread:
        yield "", f"{pluralize(len(unread), 'host')} reached unread: {names_text([host.host for host in unread])}"
    if distrusted:
        yield "", f"clients do not trust the certificate: {names_text([host.host for host in distrusted])}"
    if report.without_token:
        yield "", f"{pluralize(report.without_token, 'request')} without a token refused"


def _local(time: str) -> str:
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S}"


def _workers(report: "ProxyReport") -> str:
    count = report.workers_replaced
    replaced = f", {count:,} died and {'was' if count == 1 else 'were'} replaced" if count else ""
    return f"{report.workers_listening} of {report.workers} running{replaced}"


def _counts_text(agents: dict[str, int]) -> str:
    counts_text = ", ".join(f"{count} {agent}" for agent, count in sorted(agents.items()))
    return f" ({counts_text})" if counts_text else ""


def _number(value: int | None, noun: str = "") -> str:
    if value is None:
        return "not known yet"
    return pluralize(value, noun) if noun else f"{value:,}"
