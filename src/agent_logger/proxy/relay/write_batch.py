"""Writes that are sent together: under load, those of one turn of the event loop.

A write to loopback wakes the process that reads there, and waking a process that sleeps takes longer than sending it a
kilobyte. So of all that becomes ready in one turn only the first is written at once; the rest follow in a row at its
end, when the readers are awake. A connection that is alone in its turn is never held back.
"""

import asyncio

LARGE_BYTES = 16 << 10  # to send so much takes longer than to wake anybody, and it is not to gather in memory


class WriteBatch:
    """The current turn of the event loop, for all connections of a relay."""

    def __init__(self) -> None:
        self.begun = False  # something was written in it
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
        "_held",
        "_transport",
        "_turn",
        "get_extra_info",
        "is_closing",
        "pause_reading",
        "resume_reading",
    )

    def __init__(self, transport: asyncio.Transport, turn: WriteBatch) -> None:
        self._transport, self._turn = transport, turn
        self._held: list[bytes] = []
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def write(self, data: bytes) -> None:
        if len(data) > LARGE_BYTES:
            self.flush()
            self._transport.write(data)
        elif self._held:
            self._held.append(data)
        elif self._turn.begun:
            self._held = [data]
            self._turn.waiting.append(self)
        else:
            self._turn.begin()
            self._transport.write(data)

    def flush(self) -> None:
        if self._held:
            data, self._held = b"".join(self._held), []
            self._transport.write(data)

    def unsent_bytes(self) -> int:
        self.flush()
        return self._transport.get_write_buffer_size()

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._held = []
        self._transport.abort()
