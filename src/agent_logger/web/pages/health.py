"""Health: what is recorded, lost, damaged and redacted, and how much disk space the logs use."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.discovery.own_logs import log_folders
from agent_logger.files.line_files import read_at
from agent_logger.home.last_runs import last_runs
from agent_logger.logs.disk_usage import FolderUsage, folder_usage, outermost
from agent_logger.proxy.status import ProxyReport, proxy_reports
from agent_logger.views.recorded_runs import captured_text, gaps, unread_text
from agent_logger.web.site import site_of
from agent_logger.web.verification import DamagedPlace

MOST_BYTES = 4_000  # bytes of a damaged line


@dataclass(frozen=True, slots=True)
class ShownRun:
    """The last run of an agent: what was recorded of it, and what was not."""

    agent: str
    ended: str | None
    captured: str
    gaps: Sequence[str]
    unread: str | None


@dataclass(frozen=True, slots=True)
class HealthReport:
    proxies: Sequence[ProxyReport]
    runs: Sequence[ShownRun]
    folders: Sequence[FolderUsage]
    home: FolderUsage | None


def health_report(home: Path) -> HealthReport:
    usages = [folder_usage(path) for path in outermost([home, *log_folders(home)]) if path != home]
    runs = [
        ShownRun(run.agent or "", run.ended, captured_text(run), list(gaps(run)), unread_text(run))
        for run in reversed(last_runs(home))
    ]
    return HealthReport(proxy_reports(home), runs, usages, folder_usage(home) if home.is_dir() else None)


async def health(request: Request) -> Response:
    site = site_of(request)
    site.verification_runs.begin()
    report = await site.pool.run(lambda: health_report(site.pool.home))
    template = "_verification.html" if "part" in request.query_params else "health.html"
    return site.render(request, template, report=report, verification=site.verification_runs, data_url="/api/v1/health")


async def damage(request: Request) -> Response:
    """Show one damaged place as it is. Only places that the last check-up found can be shown: the address contains no
    path."""
    site, number = site_of(request), request.path_params["number"]
    places = site.verification_runs.last_report.damage if site.verification_runs.last_report else []
    if number >= len(places):
        raise HTTPException(404, "The last check found no such damage.")
    text = await site.pool.run(lambda: damaged_text(places[number]))
    return site.render(
        request,
        "damage.html",
        damage=places[number],
        text=text,
        limit_bytes=MOST_BYTES,
        data_url="/api/v1/health/checkup",
    )


def damaged_text(place: DamagedPlace) -> str:
    """The bytes of a damaged place as text; bytes that are not UTF-8 are written as `\\xNN`."""
    data = read_at(Path(place.path), place.place.offset, min(place.place.length, MOST_BYTES))
    return data.decode("utf-8", "backslashreplace")
