"""A child process and its pipes: pass on its output as it comes, say how it ended, and leave nothing of it behind.

One loop reads both outputs and feeds the input, so neither side can wait for the other for ever. A child that must end
is asked to end before it is killed; when the `with` block ends, no process and no zombie is left.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, Self

from agent_logger.agents.command_lines import installed_by
from agent_logger.model.records import Exit

READ_BYTES = 256 << 10
LOOK_SECONDS = 0.1  # between checks whether the child has ended or must end, without output
# To wait for output after the child has ended, while its own children hold the pipe open.
LINGER_SECONDS = 1.0
PATIENCE_SECONDS = 3.0  # between interrupt, terminate and kill
STEPS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

OUR_INPUT = 0

Sink = Callable[[bytes], None]


class Child:
    """A running child process.

    `given` is written to its standard input, which is then closed. If `given` is `None`, the child reads our standard
    input; with `overhear`, it reads it through us. Without `piped`, it writes to our outputs. After `timeout` seconds
    it is ended, and `timed_out` is true.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        given: bytes | None = b"",
        overhear: Sink | None = None,
        piped: bool = True,
        timeout: float | None = None,
    ) -> None:
        output = subprocess.PIPE if piped else None
        fed = subprocess.PIPE if given or overhear else None
        source = fed or (None if given is None else subprocess.DEVNULL)
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=source, stdout=output, stderr=output, bufsize=0
        )
        self._feed = _Feed(self._process.stdin, given or b"", overhear) if self._process.stdin else None
        self.timed_out = False
        self.on_output_closed: Callable[[], None] = lambda: None  # called when a sink takes no more
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._is_to_end = False
        self._step = 0
        self._next_step = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def outputs(self) -> list[int]:
        """The read ends of its output pipes."""
        return [stream.fileno() for stream in (self._process.stdout, self._process.stderr) if stream]

    def send(self, number: int) -> None:
        """Send a signal to the child. Any thread may call this."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def end(self, *, after: float = 0.0) -> None:
        """End the child: interrupt it, then terminate it, then kill it. Any thread may call this; `pump` does the
        work."""
        if not self._is_to_end:
            self._next_step = time.monotonic() + after
            self._is_to_end = True

    def pump(self, out: Sink, err: Sink) -> Exit:
        """Pass output to the sinks until the child has ended. A sink that raises `BrokenPipeError` gets no more output,
        and the child's pipe is closed, so that the child gets the same error."""
        with selectors.PollSelector() as selector:
            outputs = self._register(selector, out, err)
            silent_since = time.monotonic()
            while not all(output.closed for output in outputs) or (self._is_fed and self._process.poll() is None):
                ready = selector.select(LOOK_SECONDS)
                for key, _ in ready:
                    key.data(selector)
                now = time.monotonic()
                if ready:
                    silent_since = now
                elif self._process.poll() is not None and now - silent_since > LINGER_SECONDS:
                    break
                self._keep_ending(now)
        return self.wait()

    @property
    def _is_fed(self) -> bool:
        return self._feed is not None and not self._feed.stream.closed

    def wait(self) -> Exit:
        while True:
            try:
                return exit_of(self._process.wait(LOOK_SECONDS))
            except subprocess.TimeoutExpired:
                self._keep_ending(time.monotonic())

    def wait_in_terminal(self) -> Exit:
        """Wait as a shell does: when the child stops itself, stop this process too, for the shell waits for us."""
        while True:
            try:
                _, status = os.waitpid(self._process.pid, os.WUNTRACED)
            except ChildProcessError:  # `send`, in a signal handler, has seen its end before us
                return exit_of(self._process.wait())
            if not os.WIFSTOPPED(status):
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return exit_of(self._process.returncode)
            os.kill(os.getpid(), signal.SIGSTOP)
            self.send(signal.SIGCONT)

    # ------------------------------------------------------------ pipes

    def _register(self, selector: selectors.BaseSelector, out: Sink, err: Sink) -> list[IO[bytes]]:
        pairs = [(self._process.stdout, out), (self._process.stderr, err)]
        outputs = [(stream, sink) for stream, sink in pairs if stream and not stream.closed]
        for stream, sink in outputs:
            selector.register(stream, selectors.EVENT_READ, self._reader(stream, sink))
        if self._feed and self._is_fed:
            self._feed.register(selector)
        return [stream for stream, _ in outputs]

    def _reader(self, stream: IO[bytes], sink: Sink) -> Callable[[selectors.BaseSelector], None]:
        def read(selector: selectors.BaseSelector) -> None:
            chunk = os.read(stream.fileno(), READ_BYTES)
            try:
                if chunk:
                    sink(chunk)
            except BrokenPipeError:
                chunk = b""
                self.on_output_closed()
            if not chunk:
                selector.unregister(stream)
                stream.close()

        return read

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


class _Feed:
    """A child's standard input: writes the given bytes, or what we read from our own input, as fast as the child
    reads."""

    def __init__(self, stream: IO[bytes], given: bytes, overhear: Sink | None) -> None:
        self.stream = stream
        self._rest, self._overhear = memoryview(given), overhear
        os.set_blocking(stream.fileno(), False)

    def register(self, selector: selectors.BaseSelector) -> None:
        if self._rest:
            selector.register(self.stream, selectors.EVENT_WRITE, self._write)
        elif self._overhear:
            selector.register(OUR_INPUT, selectors.EVENT_READ, self._read)
        else:
            self.stream.close()

    def _read(self, selector: selectors.BaseSelector) -> None:
        selector.unregister(OUR_INPUT)
        try:
            chunk = os.read(OUR_INPUT, READ_BYTES)
        except OSError:
            chunk = b""
        if self._overhear:
            self._overhear(chunk)  # nothing: that was the end
        self._rest, self._overhear = memoryview(chunk), self._overhear if chunk else None
        self.register(selector)

    def _write(self, selector: selectors.BaseSelector) -> None:
        try:
            self._rest = self._rest[os.write(self.stream.fileno(), self._rest) :]
        except BlockingIOError:
            return
        except OSError:  # the child does not read its input
            self._rest, self._overhear = self._rest[:0], None
        if not self._rest:
            selector.unregister(self.stream)
            self.register(selector)


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


def why_not_started(command: str, error: Exception, cwd: str | None = None) -> str:
    """Why the command could not be started in the folder `cwd`, and what to do about it."""
    if not isinstance(error, FileNotFoundError):
        return f"cannot run {command}: {getattr(error, 'strerror', None) or error}"
    if cwd and os.path.dirname(command) and not os.path.isabs(command) and not os.path.exists(f"{cwd}/{command}"):
        return f"cannot run {command}: no such file below {cwd}, where the agent runs; use an absolute path"
    if shutil.which(command):
        return f"cannot run {command}: the interpreter in its first line does not exist"
    if os.path.dirname(command):
        return f"cannot run {command}: no such file"
    how = installed_by(command)
    return f"cannot find {command}: install it{f' ({how})' if how else ''}, or put its folder on the PATH"


def exit_of(returncode: int) -> Exit:
    if returncode < 0:
        return Exit(status=None, signal=-returncode)
    return Exit(status=returncode, signal=None)


def end_as(exited: Exit) -> int:
    """End this process as the child ended: by the same signal, or by returning the exit status for the caller to
    use."""
    if exited.signal is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core is enough
        with contextlib.suppress(OSError, ValueError):  # KILL and STOP have no handler
            signal.signal(exited.signal, signal.SIG_DFL)
        os.kill(os.getpid(), exited.signal)
    return 128 + exited.signal if exited.signal else exited.status or 0
