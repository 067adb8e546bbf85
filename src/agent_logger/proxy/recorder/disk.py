"""A disk that may fail: what is written is written again until the disk takes it."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from agent_logger import platform
from agent_logger.clock import CLOCK
from agent_logger.proxy.recorder.pipe import Pipe

GIVE_UP_SECONDS = 10.0  # how long a recorder that is to finish waits for a failing disk
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.01, 0.5

Work = Literal["write", "checkpoint"]


class GaveUpError(BaseException):
    """The disk still fails when the recorder is asked to finish. What is on the spool stays there.

    This is no fault of a call, so code that gives up a call for an `Exception` must not catch it.
    """


class _Trouble(NamedTuple):
    problem: str
    since: str


class Troubles(dict[Work, _Trouble]):
    """What fails now. Each trouble stays until the same work is done."""

    def add(self, work: Work, problem: str = "") -> None:
        before = self.get(work)
        self[work] = _Trouble(problem or (before.problem if before else ""), before.since if before else CLOCK.now())

    @property
    def since(self) -> str | None:
        return min((trouble.since for trouble in self.values()), default=None)

    @property
    def problem(self) -> str | None:
        return next((trouble.problem or "cannot write to the disk" for trouble in self.values()), None)


class PatientDisk:
    """A disk whose operations take as long as the disk fails. They raise `GaveUpError` when the pipe has ended."""

    def __init__(self, log_dir: Path, pipe: Pipe, troubles: Troubles, meanwhile: Callable[[], None]) -> None:
        """Make a disk. `meanwhile` is called between attempts."""
        self._log_dir, self._pipe, self._troubles, self._meanwhile = log_dir, pipe, troubles, meanwhile
        self._give_up_at: float | None = None

    def insist(self, work: Callable[[], bool]) -> None:
        """Repeat work until it returns `True`."""
        if work():
            return
        delay = FIRST_RETRY_SECONDS
        self._troubles.add("write")
        while not work():
            self._pipe.drain()
            self._meanwhile()
            if self._pipe.ended:
                now = time.monotonic()
                self._give_up_at = self._give_up_at or now + GIVE_UP_SECONDS
                if now > self._give_up_at:
                    raise GaveUpError
            time.sleep(delay)
            delay = min(2 * delay, LAST_RETRY_SECONDS)
        self._troubles.pop("write", None)

    def create(self, path: Path) -> platform.Held:
        """Create a file for a large body."""
        created: list[platform.Held] = []

        def create() -> None:
            path.unlink(missing_ok=True)
            created.append(platform.open_file(path, create=True, top=self._log_dir))

        self._insist_on(create)
        return created[0]

    def write(self, held: platform.Held, data: bytes) -> None:
        left = memoryview(data)

        def write() -> None:
            nonlocal left
            while left:
                left = left[os.write(held.fd, left) :]

        self._insist_on(write)

    def _insist_on(self, work: Callable[[], None]) -> None:
        def is_done() -> bool:
            try:
                work()
            except OSError as error:
                self._troubles.add("write", str(error))
                return False
            return True

        self.insist(is_done)
