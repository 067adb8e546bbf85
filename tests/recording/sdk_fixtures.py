"""Recorded messages of real clients, as the objects or dicts they were."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
SDK = DATA / "claude-agent-sdk" / "0.2.182"
CLI = DATA / "claude-cli"


def objects(path: Path) -> Iterator[tuple[int, Any]]:
    """The messages of an SDK's fixture, with the number of the input they followed. Classes have the SDK's names and
    fields, but are not the SDK's."""
    for line in path.read_text().splitlines():
        value = json.loads(line)
        if "msg" in value:
            yield value["exchange"], _object(value["msg"])


def _object(value: Any) -> Any:
    if isinstance(value, list):
        return [_object(it) for it in value]
    if not isinstance(value, dict) or "__class__" not in value:
        return value
    fields = {key: _object(it) for key, it in value.items() if key != "__class__"}
    return dataclasses.make_dataclass(value["__class__"], list(fields))(**fields)


def lines(path: Path) -> list[dict[str, Any]]:
    """The messages of a run's output, whichever form it has."""
    found: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        if line.startswith(("{", "[")):
            value = json.loads(line)
            found += value if isinstance(value, list) else [value]
    return found


def truth(scenario: Path) -> dict[str, tuple[int, int, int, int]]:
    """The tokens of all complete responses, by session: input, output, cache creation, cache read."""
    manifest = json.loads((scenario / "manifest.json").read_text())
    kinds = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    found = {}
    for session, threads in manifest["truth_usage_of_complete_responses"].items():
        sums = [sum(thread[kind] for thread in threads.values()) for kind in kinds]
        found[session] = (sums[0], sums[1], sums[2], sums[3])
    return found
