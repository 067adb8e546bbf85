"""Faults in the system calls of a running process, by strace."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.journal.writer import Writer


@contextmanager
def traced(writer: Writer, out: Path, *options: str, paths: Sequence[Path] = ()) -> Iterator[None]:
    """Trace a job that was started `stopped`, and let it go on; wait for its end when the block ends.

    Calls are counted (`when=`) for each thread apart, and only those on `paths`, if any are given.
    """
    only = [option for path in paths for option in ("-P", str(path))]
    argv = ["strace", "-f", "-o", str(out), *options, *only, "-p", str(writer.pid)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE)
    assert process.stderr
    with process.stderr as said:
        line = said.readline()
        assert b"attached" in line, line
        os.kill(writer.pid, signal.SIGCONT)
        try:
            yield
            writer.finish()
        finally:
            if writer.status is None:
                writer.kill()
            process.wait(30)


def was_hit(out: Path) -> bool:
    """Whether the fault that was asked for has come to pass."""
    return bool(re.search(r"\((?:INJECTED|DELAYED)\)|killed by SIGKILL", out.read_text(errors="replace")))
