"""The demo's conversation, seen by the proxy too."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from runpy import run_module

from agent_logger.config import child_environment
from agent_logger.errors import StoreError
from agent_logger.records import Request, Response
from agent_logger.store.parts import parts_in
from agent_logger.store.read import read_log

STOP_SECONDS = 30.0


@contextmanager
def proxied(api_url: str, folder: Path) -> Iterator[str]:
    """The API's URL through a proxy that records into `folder`. On leaving, every call is in the log."""
    command = [
        sys.executable,
        "-m",
        "agent_logger.demo.proxied",
        "proxy",
        "--port",
        "0",
        "--log-dir",
        str(folder),
    ]
    process = subprocess.Popen(
        [*command, "--allow-upstream", api_url],
        env=child_environment(AGENT_LOGGER_HOME=str(folder / ".home")),
        stdin=subprocess.PIPE,  # never written to: it ends when we do, however that is
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    try:
        said = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", said)
        if not found:
            raise StoreError(said.strip().removeprefix("agent-logger: ") or "the proxy did not start")
        yield f"{found[0]}/anthropic/{api_url.removeprefix('http://')}"
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS)


def _stop_with_the_demo() -> None:
    """A demo that is killed must not leave a proxy behind."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """The proxy's process: `agent-logger`, until standard input ends."""
    threading.Thread(target=_stop_with_the_demo, daemon=True).start()
    run_module("agent_logger", run_name="__main__", alter_sys=True)


@dataclass(frozen=True)
class Call:
    request: Request
    response: Response | None


def calls(folder: Path) -> list[Call]:
    """The calls in a log folder of the proxy, in the order they were made."""
    logs = dict.fromkeys((part.folder, part.name) for part in parts_in(folder / "anthropic"))
    found = [item.found for log in logs for item in read_log(*log)]
    answers = {it.call: it for it in found if isinstance(it, Response)}
    requests = [it for it in found if isinstance(it, Request)]
    return [Call(it, answers.get(it.call)) for it in sorted(requests, key=lambda it: it.ts)]


if __name__ == "__main__":
    main()
