"""A command-line agent that plays a recording: prints what was printed, ends as it ended."""

import json
import shlex
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any


def script(path: Path, text: str) -> str:
    """An executable with this shell text."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def player(path: Path, out: Path | None = None, err: Path | None = None, code: int = 0) -> str:
    lines = [f"cat {shlex.quote(str(it))}{to}" for it, to in ((out, ""), (err, " >&2")) if it and it.exists()]
    end = f"kill {code} $$" if code < 0 else f"exit {code}"
    return script(path, "\n".join([*lines, end]))


@dataclass(frozen=True)
class Step:
    """One command of a fixture."""

    label: str
    out: Path
    code: int
    options: dict[str, Any]  # of `run`

    @property
    def err(self) -> Path:
        return self.out.with_suffix(".stderr")


def steps(scenario: Path) -> list[Step]:
    manifest = json.loads((scenario / "manifest.json").read_text())
    found = [
        Step(it["label"], scenario / it["stdout"], it["exit_code"], _options(it["args"])) for it in manifest["commands"]
    ]
    # Inputs on standard input are not told as commands in one of them.
    return found or [Step(it.stem, it, 0, {}) for it in sorted(scenario.glob("*.stdout"))]


def _options(args: list[str]) -> dict[str, Any]:
    named = dict(pairwise(args))
    return {
        "resume": named.get("--resume"),
        "session_id": named.get("--session-id"),
        "continue_": "--continue" in args,
        "fork": "--fork-session" in args,
    }
