"""Runs of the check-up, one after the other, each in its own process."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.web.verification import VerificationReport

GOOD_FOR_SECONDS = 300


class VerificationRuns:
    """The last check-up, and the one in progress. Nothing is read twice within some minutes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._task: asyncio.Task[None] | None = None
        self.last_report: VerificationReport | None = None
        self.at: datetime | None = None
        self.problem: str | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self) -> None:
        is_old = self.at is None or (datetime.now(UTC) - self.at).total_seconds() > GOOD_FOR_SECONDS
        if is_old and not self.is_running:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *platform.module_command("agent_logger.web.verification", str(self._home)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, error = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        try:
            self.last_report = msgspec.json.decode(output, type=VerificationReport)
            self.problem = None
        except ValueError:
            self.problem = (error.decode("utf-8", "replace").strip().splitlines() or ["the check printed nothing"])[-1]
        self.at = datetime.now(UTC)
