"""Turns that can go wrong. The keys are described in README.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_logger.demo.script import Lane, Scenario, ScriptTurn, fill

SCENARIOS = Path(__file__).with_name("scenarios")


class Error(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str = "api_error"
    message: str = "scripted error"
    code: str | None = None  # OpenAI has both


class FakeTurn(ScriptTurn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    status: int = 200
    error: Error = Error()
    headers: Mapping[str, str] = {}
    error_after: int | None = None
    disconnect_after: int | None = None
    disconnect: Literal["rst", "fin"] = "rst"
    stall_after: int | None = None
    stall_s: float = 3600
    end_ms: float = 0
    drop: bool = False
    raw: str = ""
    split_bytes: int = 0
    encoding: Literal["identity", "gzip", "deflate", "br", "zstd"] = "identity"


FakeScenario = Scenario[FakeTurn]


def read_scenario(source: Path | str | Mapping[str, Any], variables: Mapping[str, str]) -> FakeScenario:
    """From a file, the name of one in `scenarios/`, or what such a file holds."""
    if isinstance(source, str):
        source = SCENARIOS / f"{source}.json"
    text = source.read_text() if isinstance(source, Path) else msgspec.json.encode(source).decode()
    return msgspec.json.decode(fill(text, variables), type=FakeScenario)


def answers(*turns: Mapping[str, Any], repeat: bool = False) -> FakeScenario:
    """One lane for every request: `answers({"text": "Hello."})`."""
    return FakeScenario(lanes=(Lane(repeat=repeat, turns=msgspec.convert(turns, tuple[FakeTurn, ...])),))
