"""What the time is, and ids made from it.

Wall time is for people. Durations come from the monotonic clock, and order from the place in a log,
so a clock that is set back while we run changes neither.
"""

import os
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple


def timestamp(seconds: float) -> str:
    """UTC in ISO 8601 with milliseconds, the form of every log."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock(NamedTuple):
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def now(self) -> str:
        return timestamp(self.wall())

    def uuid7(self) -> str:
        """Return a UUIDv7. It sorts by time where the clock is right, and is unique by its 74 random bits where it is
        not."""
        milliseconds = max(0, int(self.wall() * 1000)) & (1 << 48) - 1
        random = int.from_bytes(os.urandom(10))
        high = milliseconds << 16 | 0x7000 | random >> 68
        return str(uuid.UUID(int=high << 64 | 2 << 62 | random & (1 << 62) - 1))


CLOCK = Clock()
