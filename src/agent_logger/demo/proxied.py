"""The demo's conversation, seen by the proxy too."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_logger.files.parts import parts_in
from agent_logger.logs.reader import read_log
from agent_logger.model.records import Request, Response
from agent_logger.proxy.attached import attached


@contextmanager
def proxied(api_url: str, folder: Path) -> Iterator[str]:
    """The API's URL through a proxy that records into `folder`. On leaving, every call is in the log."""
    with attached(folder, [api_url], home=folder / ".home") as port:
        yield f"http://127.0.0.1:{port}/anthropic/{api_url.removeprefix('http://')}"


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
