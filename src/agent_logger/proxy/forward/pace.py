"""How fast a run may open tunnels: those that come faster wait for their turn, since clients do not retry a refusal."""

TUNNELS_PER_SECOND = 64
MOST_WAIT_SECONDS = 30.0


class Pace:
    """Gives each new tunnel of a run its time. `relays`: how many processes share the run's pace."""

    def __init__(self, relays: int = 1) -> None:
        self._gap = relays / TUNNELS_PER_SECOND
        self._free_at = 0.0  # when all tunnels so far have used up what they were given

    def wait_seconds(self, now: float) -> float | None:
        """How long the next tunnel has to wait; `None` if that is too long. A second's worth may come at once."""
        free_at = max(self._free_at, now)
        wait = max(0.0, free_at + self._gap - now - 1.0)
        if wait > MOST_WAIT_SECONDS:
            return None
        self._free_at = free_at + self._gap
        return wait
