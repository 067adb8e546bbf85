"""What the fake API saw."""

import threading
import time
from dataclasses import dataclass, field
from typing import Literal

from agent_logger.demo.http import Headers


@dataclass
class Call:
    """One request and what became of it; on a WebSocket, one message and its answer."""

    transport: Literal["http", "websocket"]
    method: str
    path: str  # with the query, as received
    headers: Headers  # as received: order, case, duplicates
    body: bytes  # as received, not decoded
    lane: str | None = None  # None if no turn was played
    turn: int | None = None
    status: int | None = None  # None while nothing was sent
    complete: bool = False  # the answer was sent to its proper end
    sent: bytearray = field(default_factory=bytearray)  # the answer's body, as sent
    ended: bool = False
    began: float = field(default_factory=time.time)  # seconds of the epoch
    seconds: float = 0.0  # until it ended
    connection: int = 0  # the client's port
    answer_headers: Headers = ()


class CallLog:
    """Filled by the server's thread, read by the test's."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._changed = threading.Condition()

    def begin(self, call: Call) -> None:
        with self._changed:
            self.calls.append(call)

    def end(self, call: Call) -> None:
        with self._changed:
            call.ended, call.seconds = True, time.time() - call.began
            self._changed.notify_all()

    def wait(self, count: int, seconds: float) -> list[Call]:
        with self._changed:
            if not self._changed.wait_for(lambda: self._ended() >= count, seconds):
                raise TimeoutError(f"{self._ended()} of {count} calls ended within {seconds} s: {self.calls}")
            return list(self.calls)

    def settled(self, seconds: float) -> list[Call]:
        with self._changed:
            self._changed.wait_for(lambda: self._ended() == len(self.calls), seconds)
            return list(self.calls)

    def _ended(self) -> int:
        return sum(call.ended for call in self.calls)
