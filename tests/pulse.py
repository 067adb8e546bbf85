"""How long this machine stood still: a limit in seconds is for what we do, not for what others do beside us."""

import threading
import time
from typing import Self

BEAT = 0.002  # seconds


class Pulse:
    """A thread that does nothing but sleep. What its sleeps took too long, all of us had to wait."""

    def __init__(self) -> None:
        self._late, self._due = 0.0, float("inf")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def now(self) -> float:
        """Seconds, by a clock that stands still when the machine does."""
        now = time.monotonic()
        return now - self._late - max(0.0, now - self._due)

    def _beat(self) -> None:
        while not self._ended.is_set():
            self._due = time.monotonic() + BEAT
            time.sleep(BEAT)
            late = time.monotonic() - self._due
            if late > BEAT:
                self._late += late
