"""The pause before a process that has ended is started again."""

import time

FIRST_SECONDS, LAST_SECONDS = 0.1, 10.0
STEADY_SECONDS = 30.0  # a process that lived this long is replaced at once


class Restarts:
    """The pauses between restarts of one process: the pause doubles as long as the process keeps dying early."""

    def __init__(self) -> None:
        self._pause_seconds = FIRST_SECONDS
        self._began = 0.0  # monotonic

    def begin(self) -> None:
        """Note that the process is being started."""
        self._began = time.monotonic()

    def pause_seconds(self) -> float:
        """The pause to make after the process has ended."""
        lived = time.monotonic() - self._began
        doubled = min(2 * self._pause_seconds, LAST_SECONDS)
        self._pause_seconds = FIRST_SECONDS if lived > STEADY_SECONDS else doubled
        return self._pause_seconds
