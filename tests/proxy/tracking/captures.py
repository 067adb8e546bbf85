"""The wire captures under `tests/data`, call by call, with the answers rejoined."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from agent_logger.proxy.tracking.identity import GATEWAYS
from agent_logger.proxy.tracking.tracker import Decision, TrackedAnswer, TrackedRequest, Tracker

DATA = Path(__file__).parents[2] / "data"
SESSION_HEADERS = {
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "x-session-id",
    *GATEWAYS,
}
KEY = b"k" * 32


@dataclass
class Capture:
    run: str  # which capture it is from
    line: dict[str, Any]
    truth: dict[str, Any]  # what the manifest says of it

    @property
    def place(self) -> tuple[str, int]:
        return self.run, self.line["seq"]

    def asked(self, *, named: bool = True) -> TrackedRequest:
        headers = {name.lower(): value for name, value in self.line["headers"]}
        body = self.line["body"]
        if not named:
            headers = {name: value for name, value in headers.items() if name not in SESSION_HEADERS}
            if isinstance(body, dict):
                body = {k: v for k, v in body.items() if k not in ("metadata", "prompt_cache_key")}
        return TrackedRequest(
            provider="anthropic" if "messages" in self.line["path"] else "openai",
            upstream="api.example.com",
            method=self.line["method"],
            path=self.line["path"],
            headers=headers,
            body=json.dumps(body, ensure_ascii=False).encode() if body else b"",
            ts=self.line["ts"],
        )

    def answered(self) -> TrackedAnswer:
        response = self.line["response"]
        message = rejoin(response["body"]) if response["status"] == 200 else None
        return TrackedAnswer(
            ts=self.line["ts"],
            status=response["status"],
            complete=response["complete"],
            message=message,
            message_id=message.get("id") if message else None,
        )


@cache
def captures() -> list[Capture]:
    """All calls in the order in which they were made."""
    found = []
    for path in sorted(DATA.glob("*/*/*/wire.jsonl")):
        manifest = json.loads((path.parent / "manifest.json").read_text())
        truths = {it["seq"]: it for it in manifest["requests"]}
        run = str(path.parent.relative_to(DATA))
        for text in path.read_text().split("\n"):
            if text:
                line = json.loads(text)
                found.append(Capture(run, line, truths[line["seq"]]))
    return sorted(found, key=lambda it: it.line["ts"])


def runs() -> dict[str, list[Capture]]:
    by_run: dict[str, list[Capture]] = {}
    for it in captures():
        by_run.setdefault(it.run, []).append(it)
    return by_run


# ---------------------------------------------------------------- answers


def rejoin(body: Any) -> dict[str, Any] | None:
    """The answer in the shape it has when it is not streamed."""
    if isinstance(body, dict):
        return body
    events = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: {")]
    for begins, join in JOINS:
        if events and begins(events[0]):
            return join(events)
    return None


def _anthropic(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = events[0]["message"]
    blocks: list[dict[str, Any]] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            for name in ("text", "thinking", "signature"):
                if name in delta:
                    blocks[-1][name] = blocks[-1].get(name, "") + delta[name]
    return {**message, "content": blocks}


def _chat(events: list[dict[str, Any]]) -> dict[str, Any]:
    content = ""
    calls: dict[int, dict[str, Any]] = {}
    for event in events:
        for choice in event["choices"]:
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or ():
                calls.setdefault(call["index"], call)
    message = {"role": "assistant", "content": content, "tool_calls": list(calls.values()), "refusal": None}
    return {"id": events[0]["id"], "choices": [{"message": message}]}


def _responses(events: list[dict[str, Any]]) -> dict[str, Any]:
    return dict(events[-1].get("response", {}))


def _gemini(events: list[dict[str, Any]]) -> dict[str, Any]:
    parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


JOINS: list[tuple[Callable[[Any], bool], Callable[[Any], dict[str, Any]]]] = [
    (lambda event: event.get("type") == "message_start", _anthropic),
    (lambda event: str(event.get("type")).startswith("response."), _responses),
    (lambda event: event.get("object") == "chat.completion.chunk", _chat),
    (lambda event: "candidates" in event, _gemini),
]


# ---------------------------------------------------------------- replay


@dataclass
class Names:
    """Names of logs, and numbers in them."""

    numbers: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def begin(self, asked: TrackedRequest, root: str | None, number: int) -> str:
        name = f"{root}_b{number}" if root else f"20261115-101500-{len(self.names):04x}"
        assert name not in self.names
        self.names.add(name)
        return name

    def number(self, provider: str, session: str) -> int:
        self.numbers[session] = self.numbers.get(session, 0) + 1
        return self.numbers[session]


def new_tracker() -> Tracker:
    names = Names()
    return Tracker(KEY, names.begin, names.number)


def replay(calls: Iterable[Capture], *, named: bool = True) -> Iterator[tuple[Capture, Decision]]:
    """Each call as the tracker sees it before it is answered."""
    tracker = new_tracker()
    for it in calls:
        decision = tracker.request(it.asked(named=named))
        yield it, decision
        tracker.answered(decision, it.answered())
