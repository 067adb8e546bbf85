"""A child process and its pipes: what it prints as it comes, how it ended, and nothing of it left behind.

One loop reads both outputs and feeds the input, so neither side can wait for the other for ever. A child that is
to end is asked before it is made to; whoever leaves the `with` leaves no process and no zombie.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

from agent_logger.records import Exit

READ_BYTES = 256 << 10
LOOK_SECONDS = 0.1  # how often to look whether the child has ended, or is to end, while nothing comes
LINGER_SECONDS = 1.0  # for the output of a child that has ended, while its own children hold it open
PATIENCE_SECONDS = 3.0  # between the steps of ending it
STEPS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

Sink = Callable[[bytes], None]


class Child:
    """`given` is written to its standard input, which then ends; `None`: it reads ours. Without `piped` it writes to
    our outputs. After `timeout` seconds it is to end, and `timed_out` says so."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        given: bytes | None = b"",
        piped: bool = True,
        timeout: float | None = None,
    ) -> None:
        output = subprocess.PIPE if piped else None
        source = None if given is None else subprocess.PIPE if given else subprocess.DEVNULL
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=source, stdout=output, stderr=output, bufsize=0
        )
        self._given = memoryview(given or b"")
        self.timed_out = False
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._is_to_end = False
        self._step = 0
        self._next_step = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: int) -> None:
        """Any thread may."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def end(self, *, after: float = 0.0) -> None:
        """Have it end: it is interrupted, then terminated, then killed. Any thread may ask; `pump` does it."""
        if not self._is_to_end:
            self._next_step = time.monotonic() + after
            self._is_to_end = True

    def pump(self, out: Sink, err: Sink) -> Exit:
        """Until it has ended. A sink that raises `BrokenPipeError` gets no more, and the child is told so in turn."""
        with selectors.DefaultSelector() as selector:
            self._register(selector, out, err)
            silent_since = time.monotonic()
            while selector.get_map():
                ready = selector.select(LOOK_SECONDS)
                for key, _ in ready:
                    key.data(selector, key.fileobj)
                now = time.monotonic()
                if ready:
                    silent_since = now
                elif self._process.poll() is not None and now - silent_since > LINGER_SECONDS:
                    break
                self._keep_ending(now)
        return self.wait()

    def wait(self) -> Exit:
        while True:
            try:
                return exit_of(self._process.wait(LOOK_SECONDS))
            except subprocess.TimeoutExpired:
                self._keep_ending(time.monotonic())

    def wait_in_terminal(self) -> Exit:
        """As a shell would: when it stops itself, so do we, for the shell waits for us."""
        while True:
            _, status = os.waitpid(self._process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return exit_of(self._process.returncode)
            os.kill(os.getpid(), signal.SIGSTOP)
            self.send(signal.SIGCONT)

    # ------------------------------------------------------------ pipes

    def _register(self, selector: selectors.BaseSelector, out: Sink, err: Sink) -> None:
        for stream, sink in ((self._process.stdout, out), (self._process.stderr, err)):
            if stream and not stream.closed:
                selector.register(stream, selectors.EVENT_READ, _reader(sink))
        if self._process.stdin and not self._process.stdin.closed:
            os.set_blocking(self._process.stdin.fileno(), False)
            selector.register(self._process.stdin, selectors.EVENT_WRITE, self._write)

    def _write(self, selector: selectors.BaseSelector, stream: IO[bytes]) -> None:
        try:
            self._given = self._given[os.write(stream.fileno(), self._given) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want to know
            self._given = self._given[:0]
        if not self._given:
            selector.unregister(stream)
            stream.close()

    # ------------------------------------------------------------ the end

    def _keep_ending(self, now: float) -> None:
        if self._deadline is not None and now >= self._deadline and not self._is_to_end:
            self.timed_out = True
            self.end()
        if self._is_to_end and now >= self._next_step and self._step < len(STEPS):
            self.send(STEPS[self._step])
            self._step += 1
            self._next_step = now + PATIENCE_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()


def _reader(sink: Sink) -> Callable[[selectors.BaseSelector, IO[bytes]], None]:
    def read(selector: selectors.BaseSelector, stream: IO[bytes]) -> None:
        chunk = os.read(stream.fileno(), READ_BYTES)
        try:
            if chunk:
                sink(chunk)
        except BrokenPipeError:
            chunk = b""
        if not chunk:
            selector.unregister(stream)
            stream.close()

    return read


def in_foreground() -> bool:
    """Whether a terminal that interrupts us interrupts our children with us."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def exit_of(returncode: int) -> Exit:
    if returncode < 0:
        return Exit(status=None, signal=-returncode)
    return Exit(status=returncode, signal=None)


def end_as(exited: Exit) -> Any:
    """End this process as the child ended: by the same signal, else the status for the caller to return."""
    if exited.signal is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core is enough
        with contextlib.suppress(OSError, ValueError):  # KILL and STOP have no handler
            signal.signal(exited.signal, signal.SIG_DFL)
        os.kill(os.getpid(), exited.signal)
    return 128 + exited.signal if exited.signal else exited.status
