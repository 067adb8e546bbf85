"""Notes in the audit who reads whose contents.

A page is many requests: the same person on the same route of the same session is noted once in ten minutes.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from agent_logger.catalog.summary import SessionSummary
from agent_logger.hub.people import People, Person

NOTED_SECONDS = 600.0
MOST_NOTED = 10_000  # that are remembered; what is forgotten is noted again


class ReadLog:
    def __init__(self, people: People, clock: Callable[[], float] = time.monotonic) -> None:
        self._people, self._clock = people, clock
        self._noted: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, person: Person, session: SessionSummary, route: str, peer: str) -> None:
        """Note that a person is about to read contents, if others than they have the session."""
        owners = [name for name in session.people if name != person.name]
        if owners and self._is_new((person.id, session.id, route)):
            for owner in owners:
                self._people.note_read(person, owner, session.id, route, peer)

    def _is_new(self, key: tuple[str, str, str]) -> bool:
        with self._lock:
            now = self._clock()
            if now - self._noted.get(key, float("-inf")) < NOTED_SECONDS:
                return False
            self._noted[key] = now
            self._noted.move_to_end(key)
            while len(self._noted) > MOST_NOTED:
                self._noted.popitem(last=False)
            return True
