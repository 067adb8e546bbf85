"""`agent-logger status`: is it recording? what was lost?"""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from agent_logger import config
from agent_logger.cli import output

if TYPE_CHECKING:
    from agent_logger.capture.proxy.state import State

T = TypeVar("T")


class ProxyReport(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy that runs. `None` where it has not said it yet."""

    pid: int
    port: int
    log_dir: str
    started: str
    recording: bool
    calls: int | None
    sessions: int | None
    agents: dict[str, int]  # how many of the sessions are whose
    clients: int | None  # connections that are open now
    written: int | None
    lost: int | None
    lag_ms: float | None
    backlog_bytes: int | None
    degraded_since: str | None
    problem: str | None
    upstream_proxy: str | None
    free_bytes: int


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/status.json).")
@config.settings_options()
def command(settings: config.Settings, as_json: bool) -> int:
    """Is it recording? What was lost?

    Every proxy that runs, with what it has written, what it had to drop, and how far its recorder
    is behind. Exit code: 0 all of them record, 1 none runs, or one has a problem.
    """
    from agent_logger.capture.proxy.state import running

    reports = [_report(state) for state in running(settings.home)]
    if as_json:
        output.json(reports)
    elif not reports:
        output.echo("Nothing is being recorded. 'agent-logger' starts the proxy.")
    for report in reports if not as_json else []:
        _print(report)
    return 0 if reports and all(report.recording for report in reports) else 1


def _report(state: "State") -> ProxyReport:
    import shutil

    from agent_logger.capture.proxy.recorder.child import RecorderStatus
    from agent_logger.capture.proxy.server import RelayStatus
    from agent_logger.capture.proxy.spool.spool import spool_folder

    folder = spool_folder(Path(state.log_dir))
    recorder = _read(folder / "recorder.json", RecorderStatus)
    relay = _read(folder / "relay.json", RelayStatus)
    problem = (recorder and recorder.problem) or (relay and relay.spool.problem) or None
    dropped = relay.spool.dropped_frames if relay else 0
    return ProxyReport(
        pid=state.pid,
        port=state.port,
        log_dir=state.log_dir,
        started=state.started,
        recording=recorder is not None and problem is None,
        calls=recorder.calls if recorder else None,
        sessions=recorder.sessions if recorder else None,
        agents=recorder.agents if recorder else {},
        clients=relay.open_clients if relay else None,
        written=recorder.written if recorder else None,
        lost=max(recorder.lost, dropped) if recorder else None,
        lag_ms=recorder.lag_ms if recorder else None,
        backlog_bytes=recorder.backlog_bytes if recorder else None,
        degraded_since=recorder.degraded_since if recorder else None,
        problem=problem,
        upstream_proxy=state.upstream_proxy,
        free_bytes=shutil.disk_usage(state.log_dir).free,
    )


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _print(report: ProxyReport) -> None:
    state = "recording" if report.recording else f"NOT RECORDING: {report.problem or 'no recorder'}"
    rows = [
        ("proxy", f"http://127.0.0.1:{report.port} (process {report.pid}, since {report.started})"),
        ("state", state + (f", since {report.degraded_since}" if report.degraded_since else "")),
        ("log folder", f"{report.log_dir} ({report.free_bytes / 1e9:,.1f} GB free)"),
        ("calls", _number(report.calls)),
        ("sessions", _number(report.sessions) + _whose(report.agents)),
        ("clients", f"{_number(report.clients)} connected"),
        ("written", _number(report.written)),
        ("lost", _number(report.lost)),
        ("behind", f"{report.lag_ms or 0:,.0f} ms, {report.backlog_bytes or 0:,} bytes"),
        ("upstream proxy", report.upstream_proxy or "none"),
    ]
    for name, text in rows:
        output.echo(f"{name:15} {text}")


def _whose(agents: dict[str, int]) -> str:
    told = ", ".join(f"{count} {agent}" for agent, count in sorted(agents.items()))
    return f" ({told})" if told else ""


def _number(value: int | None) -> str:
    return "not known yet" if value is None else f"{value:,}"
