"""The real clients' calls of `tests/data`, with what the fake API was told to answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent_logger.providers.registry import Dialect, dialect_of

DATA = Path(__file__).parents[1] / "data"
VARIABLES = {"{{CWD}}": "/home/user/project"}
PROVIDERS = {"codex": "openai", "openai-python": "openai", "gemini-cli": "gemini"}
Json = dict[str, Any]


@dataclass(frozen=True)
class Capture:
    """One call. `truth` is the manifest's entry for it, `turn` the scenario's; none if no turn answered it."""

    name: str
    provider: str
    path: str
    asked: Json | None
    request_body: bytes
    body: bytes
    truth: Json
    turn: Json | None

    @property
    def dialect(self) -> Dialect | None:
        return dialect_of(self.provider, self.path)

    @property
    def streamed(self) -> bool:
        return self.body[:1] not in (b"{", b"")


@cache
def captures() -> tuple[Capture, ...]:
    return tuple(capture for file in sorted(DATA.glob("*/*/*/wire.jsonl")) for capture in _of(file))


def answered() -> list[Capture]:
    return [capture for capture in captures() if capture.dialect]


def _of(file: Path) -> Iterator[Capture]:
    name = file.parent.relative_to(DATA).as_posix()
    client = name.split("/")[0]
    truth = {entry["seq"]: entry for entry in _json(file.with_name("manifest.json"))["requests"]}
    lanes = {lane["name"]: lane for lane in _json(file.with_name("scenario.json"))["lanes"]}
    for line in filter(None, file.read_bytes().split(b"\n")):
        call = json.loads(line)
        lane, told = lanes.get(call.get("lane")), call["response"]["body"]
        yield Capture(
            name=f"{name}/{call['seq']}",
            provider=PROVIDERS.get(client, "anthropic"),
            path=call["path"],
            asked=call["body"] if isinstance(call["body"], dict) else None,
            request_body=_bytes(call["body"]),
            body=_bytes(told),
            truth=truth[call["seq"]],
            turn=_turn(lane, call["turn"]) if lane else None,
        )


def _turn(lane: Json, number: int) -> Json:
    """Beyond its last turn the API that these were recorded with said so."""
    turns = lane["turns"]
    if number >= len(turns) and not lane.get("repeat"):
        return {"text": f"[script exhausted: {lane['name']} turn {number}]"}
    turn: Json = turns[number % len(turns)]
    return turn


def _json(file: Path) -> Any:
    text = file.read_text()
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return json.loads(text)


def _bytes(told: Any) -> bytes:
    return told.encode() if isinstance(told, str) else json.dumps(told).encode()
