"""The line that the recorder sends to the proxy for each call that it has recorded.

The recorder knows what a call was; the proxy has the terminal, and the runs that wait for their calls. So lines travel
over the recorder's output, as JSON. A line that only a terminal would show is dropped when the pipe is full; a line of
a registered run waits.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

import msgspec

from agent_logger.model.session import Usage

LONGEST_PATH = 200
MOST_WAITING = 10_000  # lines, while nobody reads


class CallLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of the line for a call that has ended. A call without a session is not part of a conversation."""

    method: str
    path: str  # path without its query, which may have keys
    status: int | None = None
    bytes: int = 0  # size of the answer
    ttfb_ms: float | None = None
    total_ms: float | None = None
    reason: str | None = None
    session: str | None = None
    thread: str | None = None
    model: str | None = None
    input_tokens: int | None = None  # all that the model was given to read
    output_tokens: int | None = None
    forked_from: str | None = None
    retry_of: int | None = None
    rewrites: bool = False
    run: str = ""  # the registered run that the call belongs to
    kind: str | None = None
    # Whether the call is a message of a WebSocket, whose upgrade is a call of its own.
    is_message: bool = False
    client_session: str | None = None  # the client's id of the session
    ts: str | None = None  # when the call ended
    usage: Usage | None = None
    tier: str | None = None
    # Whether no part of a call to a model is kept as bytes alone, because it has an encoding or a form that is unknown.
    is_understood: bool = True
    message_id: str | None = None  # the vendor's id of the answer


Show = Callable[[CallLine], None]
_decode = msgspec.json.Decoder(CallLine).decode


class CallLines:
    """The recorder's end: lines are collected, and sent once their records are in the logs. Nothing waits for the
    pipe. `everything`: a terminal shows them; else only those of registered runs are sent."""

    def __init__(self, fd: int, *, everything: bool) -> None:
        self._fd, self._everything = fd, everything
        # Lines that wait, each with whether it may be dropped.
        self._lines: deque[tuple[bytes, bool]] = deque(maxlen=MOST_WAITING)
        self._rest = b""  # the rest of a line that was written in part
        os.set_blocking(fd, False)

    def add(self, line: CallLine) -> None:
        if line.run or self._everything:
            self._lines.append((msgspec.json.encode(line) + b"\n", not line.run))

    def flush(self) -> None:
        while self._rest or self._lines:
            data, droppable = (self._rest, False) if self._rest else self._lines[0]
            try:
                written = os.write(self._fd, data)
            except OSError:  # full, or nobody reads
                if not droppable:
                    return
                self._lines.popleft()
                continue
            if not self._rest:
                self._lines.popleft()
            self._rest = data[written:]


def receive(stream: BinaryIO, show: Show) -> None:
    """Show the lines that come, until the stream ends."""
    with stream:
        for line in stream:
            with suppress(ValueError):  # cut short where its writer was killed
                show(_decode(line))
