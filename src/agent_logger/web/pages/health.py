"""Health: what is recorded, what was lost, what is damaged, what was taken out, and what it takes on the disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agent_logger.catalog.discovery.own_logs import log_folders
from agent_logger.files.line_files import read_at
from agent_logger.logs.disk_usage import FolderUsage, folder_usage, outermost
from agent_logger.proxy.status import ProxyReport, proxy_reports
from agent_logger.web.site import site_of
from agent_logger.web.verification import DamagedPlace

MOST_SHOWN = 4_000  # bytes of a damaged line


@dataclass(frozen=True, slots=True)
class Health:
    proxies: Sequence[ProxyReport]
    folders: Sequence[FolderUsage]
    home: FolderUsage | None


def look(home: Path) -> Health:
    usages = [folder_usage(it) for it in outermost([home, *log_folders(home)]) if it != home]
    return Health(proxy_reports(home), usages, folder_usage(home) if home.is_dir() else None)


async def health(request: Request) -> Response:
    site = site_of(request)
    site.checkups.begin()
    found = await site.archive.do(lambda: look(site.archive.home))
    template = "_checkup.html" if "part" in request.query_params else "health.html"
    return site.render(request, template, found=found, checkups=site.checkups, data="/api/v1/health")


async def damage(request: Request) -> Response:
    """One damaged place, as it is. Only those that the last check-up found: an address is no path."""
    site, number = site_of(request), request.path_params["number"]
    found = site.checkups.last.damage if site.checkups.last else []
    if number >= len(found):
        raise HTTPException(404, "The last check-up found no such damage.")
    shown = await site.archive.do(lambda: damaged_text(found[number]))
    return site.render(
        request, "damage.html", it=found[number], text=shown, most=MOST_SHOWN, data="/api/v1/health/checkup"
    )


def damaged_text(it: DamagedPlace) -> str:
    """What is no UTF-8 in it is written as `\\xNN`."""
    data = read_at(Path(it.path), it.place.offset, min(it.place.length, MOST_SHOWN))
    return data.decode("utf-8", "backslashreplace")
