"""Run a command as if we were not there: output passes through byte for byte, signals reach it, its end is our end.

What passes through is recorded after it was passed on.
"""

import os
import select
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from agent_logger.model.records import Exit
from agent_logger.recording.run.child import Child, in_foreground
from agent_logger.recording.run.events import Event
from agent_logger.recording.run.recording import RunRecording

FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# Signals that the terminal sends to all processes in its foreground.
BY_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def pass_on(
    child: Child,
    recording: RunRecording,
    *,
    show: Callable[[list[Event]], None] | None = None,
    overheard: "Overheard | None" = None,
    identify: Callable[[], None] = lambda: None,
) -> Exit:
    """Pass on and record the child's output until the child has ended.

    With `show`, events go to `show` and the output is not passed on. `identify` is called when the child has ended and
    before the recording ends: what it notes may say which session the child ran.
    """

    def printed(chunk: bytes) -> None:
        if show is None:
            write(1, chunk)
        if overheard:
            overheard.settle()
        events = recording.out(chunk)
        if show:
            show(events)

    def complained(chunk: bytes) -> None:
        write(2, chunk)
        recording.err(chunk)

    exited = child.pump(printed, complained)
    identify()
    events = recording.ended(exited)
    if show:
        show(events)
    return exited


def write(descriptor: int, data: bytes) -> None:
    """Write all the bytes, however slowly the other side reads. Raises `BrokenPipeError` if nobody reads."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # somebody we share it with made it so
            select.select([], [descriptor], [])
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk, a terminal that is gone: as the child would see it
            raise BrokenPipeError(error.errno, error.strerror) from error


class Overheard:
    """What passes through us to the child's standard input: its prompt, or a part of it; or messages, one per line."""

    MOST_BYTES = 8 << 20

    def __init__(self, prompt: str | None, *, is_messages: bool) -> None:
        self.recording: RunRecording | None = None
        self._prompt, self._is_messages = prompt, is_messages
        self._held = bytearray()
        self._is_settled = False

    def hear(self, chunk: bytes) -> None:
        """Take a chunk of the input; an empty chunk is the end of the input."""
        if self._is_settled and not self._is_messages:
            return
        self._held += chunk
        if self._is_messages:
            *lines, rest = bytes(self._held).split(b"\n")
            self._held = bytearray(rest)
            for line in filter(bytes.strip, lines):
                if self.recording:
                    self.recording.note(line)
        elif not chunk or len(self._held) > self.MOST_BYTES:
            self.settle()

    def settle(self) -> None:
        """Record what was read so far as the prompt: the child has begun to answer, so this is what it was asked."""
        if self._is_settled or self._is_messages or not self.recording:
            return
        self._is_settled = True
        parts = [self._prompt, self._held[: self.MOST_BYTES].decode("utf-8", "replace").strip()]
        if text := "\n".join(filter(None, parts)):
            self.recording.prompt(text)
        self._held.clear()


class Signals:
    """Pass signals that arrive within the `with` block to the child. Signals that we were started to ignore stay
    ignored, by the child and by us."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def reach(self, child: Child) -> Child:
        self._child = child
        for number in self._early:
            child.send(number)
        return child

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if number in BY_TERMINAL and in_foreground():
            return  # the terminal sent it to the child already
        if self._child:
            self._child.send(number)
        else:
            self._early.append(number)

    def __enter__(self) -> Self:
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
