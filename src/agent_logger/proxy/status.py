"""The status of a proxy, put together from what its processes report: whether it records, and what was lost."""

import os
import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger.proxy.forward.traffic import HostTraffic
from agent_logger.proxy.recorder.status import FILE_NAME, RecorderStatus
from agent_logger.proxy.server import RelaysStatus
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.state import ProxyState, running

SILENT_SECONDS = 10.0  # a recorder that is alive writes its status every second
FULL_BYTES = 16 << 10

T = TypeVar("T")


class ProxyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a running proxy. A field is `None` until the proxy has reported it."""

    pid: int
    port: int
    log_dir: str
    started: str
    # The processes that move bytes, the proxy's own first, and the one that writes the logs.
    relay_pids: tuple[int, ...]
    recorder_pid: int | None
    recording: bool
    calls: int | None
    refused: int | None  # requests that went nowhere; they are no calls
    sessions: int | None
    agents: dict[str, int]  # the number of sessions by agent
    workers: int | None  # processes that are to share the port
    workers_listening: int | None  # fewer while one that died is being replaced
    workers_replaced: int | None
    clients: int | None  # connections that are open now, to all of them
    # Calls to models that are kept as bytes alone, because they have an encoding or a form that is unknown.
    not_understood: int | None
    written: int | None
    lost: int | None
    lag_ms: float | None
    backlog_bytes: int | None
    degraded_since: str | None
    problem: str | None
    upstream_proxy: str | None
    free_bytes: int
    # The forward door: tunnels that are open, requests that were asked for a token, and what passed, by host.
    open_tunnels: int | None
    without_token: int | None
    # Why the forward door can open no host, so that nothing is recorded through it.
    certificate_problem: str | None
    hosts: tuple[HostTraffic, ...]


def proxy_reports(home: Path) -> list[ProxyReport]:
    return [_report(state) for state in running(home)]


def _report(state: ProxyState) -> ProxyReport:
    folder = spool_folder(Path(state.log_dir))
    recorder = _alive(_read(folder / FILE_NAME, RecorderStatus))
    relays = _read(folder / "relay.json", RelaysStatus)
    if relays and relays.pid != state.pid:  # the file is of an earlier run
        relays = None
    spools = [relay.spool for relay in relays.relays] if relays else []
    free = _free_bytes(Path(state.log_dir))
    problems = [_problem(recorder) if recorder else None, *(spool.problem for spool in spools)]
    problem = next(filter(None, problems), None)
    if free < FULL_BYTES:
        problem = problem or "the disk is full"  # no process could report that: the report would be a file
    dropped = sum(spool.dropped_frames for spool in spools)
    return ProxyReport(
        pid=state.pid,
        port=state.port,
        log_dir=state.log_dir,
        started=state.started,
        relay_pids=tuple(relay.pid for relay in relays.relays) if relays else (),
        recorder_pid=recorder.pid if recorder else None,
        recording=recorder is not None and problem is None,
        calls=recorder.calls if recorder else None,
        refused=relays.refused if relays else None,
        sessions=recorder.sessions if recorder else None,
        agents=recorder.agents if recorder else {},
        workers=relays.workers if relays else None,
        workers_listening=len(relays.relays) if relays else None,
        workers_replaced=relays.replaced if relays else None,
        clients=sum(relay.open_clients for relay in relays.relays) if relays else None,
        not_understood=recorder.not_understood if recorder else None,
        written=recorder.written if recorder else None,
        lost=max(recorder.lost, dropped) if recorder else None,
        lag_ms=recorder.lag_ms if recorder else None,
        backlog_bytes=recorder.backlog_bytes if recorder else None,
        degraded_since=recorder.degraded_since if recorder else None,
        problem=problem,
        upstream_proxy=state.upstream_proxy,
        free_bytes=free,
        open_tunnels=relays.forward.open_tunnels if relays else None,
        without_token=relays.forward.without_token if relays else None,
        certificate_problem=relays.forward.certificate_problem if relays else None,
        hosts=relays.forward.hosts if relays else (),
    )


def _alive(recorder: RecorderStatus | None) -> RecorderStatus | None:
    """The status of the recorder; `None` if that process is dead or of an earlier run, so that its report is out of
    date."""
    if recorder is None:
        return None
    try:
        os.kill(recorder.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return recorder


def _problem(recorder: RecorderStatus) -> str | None:
    silent = abs(time.time() - datetime.fromisoformat(recorder.ts).timestamp()) > SILENT_SECONDS
    return recorder.problem or (f"the recorder has not reported since {recorder.ts}" if silent else None)


def _free_bytes(folder: Path) -> int:
    while not folder.is_dir():  # somebody removed it; what is left is where it will be made again
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError):
        return None
