"""A terminal for a command to print to."""

import os
import re
import subprocess
import sys
from pathlib import Path

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(home: Path, *arguments: str, **variables: str) -> str:
    """What `agent-logger` prints when stdout is a terminal, newest Linux and macOS alike."""
    return printed_on_a_terminal([sys.executable, "-m", "agent_logger", *arguments], home, **variables)


def printed_on_a_terminal(line: list[str], home: Path, **variables: str) -> str:
    main, terminal = os.openpty()
    common = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "PAGER": "cat"}
    environment = {**common, **variables}
    with subprocess.Popen(line, stdout=terminal, env=environment) as process:
        os.close(terminal)
        got = b""
        while chunk := _read(main):
            got += chunk
    os.close(main)
    assert process.returncode == 0
    return got.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux: the other side is closed
        return b""
