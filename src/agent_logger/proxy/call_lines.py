"""The line that the terminal shows for each call of the proxy.

The recorder knows what a call was; the proxy has the terminal. So lines travel over the recorder's output, as JSON. A
terminal that does not take output loses lines, never a record.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

import msgspec

LONGEST_PATH = 200


class CallLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of the line for a call that has ended. A call without a session is not part of a conversation."""

    method: str
    path: str  # without its query, where keys may stand
    status: int | None = None
    bytes: int = 0  # of the answer
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


Show = Callable[[CallLine], None]
_decode = msgspec.json.Decoder(CallLine).decode


def send_to(fd: int) -> Show:
    """Make a `Show` that writes to a pipe, and never waits for it."""
    os.set_blocking(fd, False)

    def send(line: CallLine) -> None:
        with suppress(OSError):  # full, or nobody reads
            os.write(fd, msgspec.json.encode(line) + b"\n")

    return send


def receive(stream: BinaryIO, show: Show) -> None:
    """Show the lines that come, until the stream ends."""
    with stream:
        for line in stream:
            with suppress(msgspec.MsgspecError):  # cut short where the pipe was full
                show(_decode(line))
