"""Writes that are sent together: under load, those of one pass of the event loop.

A write to loopback wakes the process that reads there, and waking a process that sleeps takes longer than sending it a
kilobyte. So only the first write of a pass is sent at once; the others follow at the end of the pass, when the readers
are awake. A connection that is alone in its pass is never held back.
"""

import asyncio
from collections.abc import Callable

# Sending this many bytes takes longer than waking a process, and they should not collect in memory.
LARGE_BYTES = 16 << 10


class WriteBatch:
    """The writes of the current pass of the event loop, for all connections of a relay."""

    def __init__(self) -> None:
        self.begun = False  # whether something was written in this pass
        self.waiting: list[Outgoing] = []

    def begin(self) -> None:
        self.begun = True
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self.begun = False
        waiting, self.waiting = self.waiting, []
        for outgoing in waiting:
            outgoing.flush()


class Outgoing:
    """A transport, as far as the relay needs one. Whatever is called, earlier writes are sent first."""

    __slots__ = (
        "_batch",
        "_cut",
        "_held",
        "_transport",
        "get_extra_info",
        "is_closing",
        "pause_reading",
        "resume_reading",
    )

    def __init__(self, transport: asyncio.Transport, batch: WriteBatch) -> None:
        self._transport, self._batch = transport, batch
        self._held: list[bytes] = []
        # A TLS connection can end without saying so, which is how a cut looks there.
        self._cut: Callable[[], None] = getattr(transport, "cut", transport.close)
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def write(self, data: bytes) -> None:
        if len(data) > LARGE_BYTES:
            self.flush()
            self._transport.write(data)
        elif self._held:
            self._held.append(data)
        elif self._batch.begun:
            self._held = [data]
            self._batch.waiting.append(self)
        else:
            self._batch.begin()
            self._transport.write(data)

    def flush(self) -> None:
        if self._held:
            data, self._held = b"".join(self._held), []
            self._transport.write(data)

    def get_write_buffer_size(self) -> int:
        self.flush()
        return self._transport.get_write_buffer_size()

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def cut(self) -> None:
        """Close as a peer does that breaks off: what was written arrives, and then nothing says that it was all."""
        self.flush()
        self._cut()

    def release(self) -> asyncio.Transport:
        """Return the transport for somebody else to use."""
        self.flush()
        return self._transport

    def abort(self) -> None:
        self._held = []
        self._transport.abort()
