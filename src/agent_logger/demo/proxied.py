"""The demo's conversation, seen by the proxy too."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_logger.capture.attended import attended
from agent_logger.config import child_environment
from agent_logger.errors import StoreError
from agent_logger.records import Request, Response
from agent_logger.store.parts import parts_in
from agent_logger.store.read import read_log

STOP_SECONDS = 30.0


@contextmanager
def proxied(api_url: str, folder: Path) -> Iterator[str]:
    """The API's URL through a proxy that records into `folder`. On leaving, every call is in the log."""
    process = attended(
        *("proxy", "--port", "0", "--log-dir", str(folder), "--allow-upstream", api_url),
        environment=child_environment(AGENT_LOGGER_HOME=str(folder / ".home")),
        stderr=subprocess.PIPE,
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
