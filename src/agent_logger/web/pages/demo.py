"""The button for who has nothing to look at yet: record the demo, here and now."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_logger.demo.recorded import record_demo
from agent_logger.home.facts import know_folder
from agent_logger.web.site import site_of

_one_at_a_time = asyncio.Lock()


async def demo(request: Request) -> Response:
    home = site_of(request).archive.home
    folder = home / "demo"

    def recorded() -> str:
        log = record_demo(folder)
        know_folder(home, folder)
        know_folder(home, folder / "logs")
        return log.stem

    archive = site_of(request).archive
    async with _one_at_a_time:
        log = await archive.do(recorded)
    await archive.keeper.seen()
    return JSONResponse({"log": log})
