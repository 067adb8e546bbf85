"""The button that records the demo, for users who have no sessions yet."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_logger.demo.recorded import record_demo
from agent_logger.home.facts import register_log_folder
from agent_logger.web.site import site_of

_one_at_a_time = asyncio.Lock()


async def demo(request: Request) -> Response:
    home = site_of(request).pool.home
    folder = home / "demo"

    def record() -> str:
        log = record_demo(folder)
        register_log_folder(home, folder)
        register_log_folder(home, folder / "logs")
        return log.stem

    pool = site_of(request).pool
    async with _one_at_a_time:
        log = await pool.run(record)
    await pool.refresher.wait_for_refresh()
    return JSONResponse({"log": log})
