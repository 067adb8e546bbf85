"""Requests that we answer ourselves. Anybody on this machine can make as many as they like, and so can a web page.

So they have a budget of their own: within it each is reported, by the first bytes of its head; all others are counted,
and the counts are reported now and then. Neither ever takes room that a call needs.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from agent_logger.model.redaction.redactor import credentials_in_any_form
from agent_logger.proxy.relay.masks import Credentials, Masker
from agent_logger.proxy.spool.frames import AnyFrame, Refusal, RefusalsFrame

PER_MINUTE, PER_DAY = 100, 1000  # reported one by one, by all relays of a proxy together
# Bytes of a head that are reported. Half of them are recorded; the rest shows whether a key is cut in two there.
REPORTED_BYTES = 2048
SUMMARY_SECONDS = 10.0  # between counts
_MINUTE, _DAY = 60.0, 86_400.0


class SpareTap(Protocol):
    def put_if_room(self, frame: AnyFrame) -> bool:
        """Record a frame as `Tap.put` does, if it may be left out: `False`, and nothing is done, where calls may need
        the room."""


class _Allowance:
    """A budget: so many per period of time, then none until the period is over."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._left, self._until = most, 0.0

    def has(self, now: float) -> bool:
        if now >= self._until:
            self._left, self._until = self._most, now + self._seconds
        return self._left > 0

    def spend(self) -> None:
        self._left -= 1


class RefusalReports:
    """The frames that the tap gets of refused requests. `relays`: how many share the budget."""

    def __init__(
        self,
        tap: SpareTap,
        credentials: Credentials,
        next_call: Callable[[], tuple[int, str]],
        relays: int = 1,
    ) -> None:
        self.total = 0
        self._tap, self._credentials, self._next_call = tap, credentials, next_call
        self._allowances = [
            _Allowance(max(1, PER_MINUTE // relays), _MINUTE),
            _Allowance(max(1, PER_DAY // relays), _DAY),
        ]
        self._counts: Counter[int] = Counter()  # the number of refusals by status
        self._counted_since_ns = 0
        self._summary_at = 0.0

    def add(self, connection: int, status: int, reason: str, data: bytes) -> None:
        self.total += 1
        now = time.monotonic()
        if all(allowance.has(now) for allowance in self._allowances) and self._report(connection, status, reason, data):
            for allowance in self._allowances:
                allowance.spend()
            return
        if not self._counts:
            self._counted_since_ns = time.monotonic_ns()
        self._counts[status] += 1

    def _report(self, connection: int, status: int, reason: str, data: bytes) -> bool:
        end = data.find(b"\r\n\r\n")
        whole = end + 4 if end >= 0 else len(data)
        head = data[: min(whole, REPORTED_BYTES)]
        masker = Masker(self._credentials)
        masker.search_for(credentials_in_any_form(head))  # a refused request need not be HTTP
        masked, masks = masker.head(head, head.partition(b"\n")[0])
        call, name = self._next_call()
        ns = time.monotonic_ns()
        return self._tap.put_if_room(
            Refusal(call, ns, name, connection, status, reason, masked, masks, head_bytes=whole)
        )

    def sweep(self, *, now: bool = False) -> None:
        """Report the counts, if that is due."""
        if not self._counts or (time.monotonic() < self._summary_at and not now):
            return
        call, _ = self._next_call()
        counts = tuple(sorted(self._counts.items()))
        if self._tap.put_if_room(RefusalsFrame(call, time.monotonic_ns(), self._counted_since_ns, counts)):
            self._counts.clear()
            self._summary_at = time.monotonic() + SUMMARY_SECONDS
