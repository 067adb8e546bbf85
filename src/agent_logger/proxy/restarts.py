"""The pause before a process that has ended is started anew."""

import time

FIRST_SECONDS, LAST_SECONDS = 0.1, 10.0
STEADY_SECONDS = 30.0  # one that lived so long is replaced at once


class Restarts:
    """Of one process: the pause doubles for as long as it does not live for long."""

    def __init__(self) -> None:
        self._pause_seconds = FIRST_SECONDS
        self._began = 0.0  # monotonic

    def begin(self) -> None:
        """It is being started."""
        self._began = time.monotonic()

    def pause_seconds(self) -> float:
        """It has ended."""
        lived = time.monotonic() - self._began
        doubled = min(2 * self._pause_seconds, LAST_SECONDS)
        self._pause_seconds = FIRST_SECONDS if lived > STEADY_SECONDS else doubled
        return self._pause_seconds
