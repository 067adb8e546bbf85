"""What a log folder says of a run, in the words of the fixtures' manifests."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from agent_logger.files.parts import parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import Fork, Request, Response, Rewrite, WireStart

from .scenarios import Told

# Of the many counts that the APIs know, those of the manifests.
COUNTS = {
    *("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    *("prompt_tokens", "completion_tokens", "total_tokens"),
    *("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "totalTokenCount"),
}


@dataclass
class Log:
    name: str
    start: WireStart | None = None
    fork: Fork | None = None
    rewrites: list[Rewrite] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    responses: dict[int, Response] = field(default_factory=dict)

    @property
    def client_id(self) -> str | None:
        return self.start.identity.id if self.start and self.start.identity else None

    @property
    def began(self) -> str:
        return self.requests[0].call or ""  # a UUIDv7: they are in the order of time

    def told(self, request: Request) -> Told:
        response = self.responses[request.seq]
        found = msgspec.json.decode(response.usage) if isinstance(response.usage, msgspec.Raw) else {}
        return told(request.kind or "", response.status, bool(response.complete), found)


def told(kind: str, status: int | None, complete: bool, usage: Mapping[str, Any] | None) -> Told:
    """Only what was answered to the end has a usage that is true."""
    counts = {name: it for name, it in sorted((usage or {}).items()) if name in COUNTS and it is not None}
    answered = complete and status in (101, 200)
    # An answer on a WebSocket has no status of its own. A warm-up is a side call.
    return Told(
        "side" if kind == "warmup" else kind,
        200 if answered else status or 0,
        complete,
        counts if answered else {},
    )


def read_logs(log_dir: Path) -> list[Log]:
    """In the order in which they began."""
    folders = [it for it in log_dir.iterdir() if it.is_dir() and it.name != ".spool"]
    names = {(part.folder, part.name) for folder in folders for part in parts_in(folder)}
    return sorted((_log(*name) for name in names), key=lambda log: log.began)


def _log(folder: Path, name: str) -> Log:
    log = Log(name)
    for item in read_log(folder, name):
        match item.value:
            case WireStart() as start:
                log.start = start
            case Fork() as fork:
                log.fork = fork
            case Rewrite() as rewrite:
                log.rewrites.append(rewrite)
            case Request() as request:
                log.requests.append(request)
            case Response() as response:
                assert response.seq not in log.responses
                log.responses[response.seq] = response
    return log


# ---------------------------------------------------------------- one form for both

Place = tuple[str | None, str]  # the client's name for the session, and the thread


def of_logs(logs: Iterable[Log]) -> dict[Place, list[Told]]:
    found: dict[Place, list[Told]] = defaultdict(list)
    for log in logs:
        for request in log.requests:
            found[log.client_id, request.thread or ""].append(log.told(request))
    return found


def of_manifest(manifest: Mapping[str, Any], *, websocket: bool = False) -> dict[Place, list[Told]]:
    found: dict[Place, list[Told]] = defaultdict(list)
    for it in manifest["requests"]:
        kind = it["kind"]
        if kind == "probe":
            continue  # Claude Code sends none where a proxy is set, as it is in a sandbox
        thread = f"agent:{it['agent_id']}" if kind == "subagent" else "main" if kind in ("main", "compact") else "side"
        status, complete = it["status"], it["complete"]
        if websocket and not (complete and status == 200):
            status, complete = 101, False  # there is no status but the upgrade's
        found[it["session_id"], thread].append(told(kind, status, complete, it["usage"]))
    return found


def shape(places: Mapping[Place, Sequence[Told]]) -> list[Any]:
    """Without names; which session, sub-agent or side call was first does not matter."""
    sessions: dict[str | None, dict[str, Any]] = {}
    for (session, thread), calls in places.items():
        by_kind = sessions.setdefault(session, {"main": [], "side": [], "agents": []})
        texts = [str(it) for it in calls]
        if thread.startswith("agent:"):
            by_kind["agents"].append(texts)
        else:
            by_kind[thread] += texts if thread == "main" else sorted(texts)
    for by_kind in sessions.values():
        by_kind["agents"].sort()
    return sorted(sessions.values(), key=str)


def totals(places: Mapping[Place, Sequence[Told]]) -> dict[str, dict[str, int]]:
    """Usage by kind, of what was answered to the end."""
    found: dict[str, dict[str, int]] = {}
    for calls in places.values():
        for it in calls:
            counts = found.setdefault(it.kind, {})
            for name, count in it.usage.items():
                counts[name] = counts.get(name, 0) + count
    return {kind: counts for kind, counts in found.items() if any(counts.values())}
