"""Is it recording, and what was lost: what the processes of a proxy say of themselves, put together."""

import shutil
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger.capture.proxy.recorder.child import RecorderStatus
from agent_logger.capture.proxy.server import RelayStatus
from agent_logger.capture.proxy.spool.spool import spool_folder
from agent_logger.capture.proxy.state import State, running

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


def proxy_reports(home: Path) -> list[ProxyReport]:
    return [_report(state) for state in running(home)]


def _report(state: State) -> ProxyReport:
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
