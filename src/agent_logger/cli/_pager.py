"""A pager for output that does not fit on the screen, as git has it: only on a terminal, and not if it all fits."""

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import click

from agent_logger.config import child_environment, variable
from agent_logger.views.terminal import screen

# As git sets them: colours as they are, no screen to clear, an end if all fits.
PROGRAM_OPTIONS = {"LESS": "FRX", "LV": "-c"}
PROGRAMS = ("less", "more")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def pager_option() -> Callable[[Any], Any]:
    """Add `--no-pager`."""
    return click.option(
        "--no-pager", "pager", flag_value=False, default=True, help="Print at once; $PAGER shows long output otherwise."
    )


@contextmanager
def paged(is_on: bool) -> Iterator[None]:
    """Send what is printed through the pager, if it is more than one screen of a terminal. Notes go with it: printed
    beside the pager, they would disturb its screen."""
    program = _program() if is_on and screen.is_terminal() else None
    if program is None:
        yield
        return
    output, notes = sys.stdout, sys.stderr
    pipe = _PagerPipe(program)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(pipe), encoding=output.encoding, errors="backslashreplace")
    sys.stderr = sys.stdout if notes is not None and notes.isatty() else notes
    try:
        with suppress(_QuitError):
            yield
            sys.stdout.flush()
    finally:
        with suppress(_QuitError):
            sys.stdout.flush()
        sys.stdout, sys.stderr = output, notes
        pipe.finish(output)


class _QuitError(Exception):
    """The user has left the pager, and needs no more output."""


class _PagerPipe(io.RawIOBase):
    """Holds output until it is more than a screen, then starts the pager for it and for what follows."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._waiting = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._is_left = False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True  # where it ends up in any case

    def write(self, data: Any) -> int:
        text = bytes(data)
        if self._process is None:
            self._waiting += text
            if not _fits(self._waiting):
                self._start()
        else:
            self._pass_on(text)
        return len(text)

    def _start(self) -> None:
        options = {name: value for name, value in PROGRAM_OPTIONS.items() if variable(name) is None}
        command, environment = ["sh", "-c", self._program], child_environment(**options)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        text, self._waiting = self._waiting, b""
        self._pass_on(text)

    def _pass_on(self, text: bytes) -> None:
        if self._is_left or self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._is_left = True
            raise _QuitError from None

    def finish(self, terminal: IO[str]) -> None:
        """Print what fits on a screen, or wait until the user leaves the pager."""
        if self._process is None:
            terminal.buffer.write(self._waiting)  # type: ignore[attr-defined]  # a terminal is a file
            terminal.flush()
            return
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        while self._process.poll() is None:
            with suppress(KeyboardInterrupt):  # which the pager got too, and decides about
                self._process.wait()


def _fits(output: bytes) -> bool:
    columns, lines = screen.columns(), screen.lines()
    texts = STYLE.sub("", output.decode("utf-8", "replace")).split("\n")
    return sum(max(1, -(-screen.width(text) // columns)) for text in texts) <= lines


def _program() -> str | None:
    """The command that shows long output; none if there is no such program, or the user wants none."""
    import shlex
    from shutil import which

    chosen = variable("PAGER")
    if chosen is None:
        return None if variable("TERM") in (None, "dumb") else next(filter(which, PROGRAMS), None)
    try:
        words = shlex.split(chosen)
    except ValueError:
        return None
    return chosen if words and words != ["cat"] and which(words[0]) else None
