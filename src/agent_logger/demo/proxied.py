"""The demo's conversation, seen by the proxy too."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_logger.files.parts import parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import Request, Response
from agent_logger.proxy.attached import attached


@contextmanager
def proxied(api_url: str, folder: Path) -> Iterator[str]:
    """The API's URL through a proxy that records into `folder`. On leaving, every call is in the log."""
    with attached(folder, [api_url], home=folder / ".home") as port:
        yield f"http://127.0.0.1:{port}/anthropic/{api_url.removeprefix('http://')}"


@dataclass(frozen=True)
class ProxiedCall:
    request: Request
    response: Response | None


def calls(folder: Path) -> list[ProxiedCall]:
    """The calls in a log folder of the proxy, in the order they were made."""
    logs = dict.fromkeys((part.folder, part.name) for part in parts_in(folder / "anthropic"))
    records = [item.value for log in logs for item in read_log(*log)]
    answers = {record.call: record for record in records if isinstance(record, Response)}
    requests = [record for record in records if isinstance(record, Request)]
    return [
        ProxiedCall(request, answers.get(request.call)) for request in sorted(requests, key=lambda request: request.ts)
    ]
