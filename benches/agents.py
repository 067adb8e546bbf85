"""How fast sessions of Codex and Gemini CLI are read, beside the plain decoding of their lines.

The files are made of recorded lines, with outputs of tools as long as they are in real work.
"""

import json
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agent_logger.agents.codex import session as codex
from agent_logger.agents.gemini_cli import session as gemini_cli
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.foreign import chunks

DATA = Path(__file__).resolve().parent.parent / "tests/data"
BYTES = 60_000_000
ROUNDS = 3
OUTPUT_LINES = (100, 600, 2_000, 4_000)
WORDS = ("def", "return", "import", "self", "value", "error", "path", "file", "line", "test")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, reader, pattern in (
            ("codex", codex, "codex/0.166.0/exec_resume/home/**/rollout-*.jsonl"),
            ("gemini-cli", gemini_cli, "gemini-cli/0.61.0/exec_resume/home/**/session-*.jsonl"),
        ):
            path = Path(folder, f"{name}.jsonl")
            write(path, next(DATA.glob(pattern)))
            source = partial(_source, path)
            print(f"{name}: {path.stat().st_size / 1e6:.0f} MB")
            report("  decoding alone", path, lambda path=path: decode(path))  # type: ignore[misc]
            report("  session_of", path, lambda read=reader, it=source: read.session_of(it()))  # type: ignore[misc]
            report("  responses_of", path, lambda read=reader, it=source: list(read.responses_of(it())))  # type: ignore[misc]


def report(what: str, path: Path, work: Callable[[], object]) -> None:
    best = min(_seconds(work) for _ in range(ROUNDS))
    print(f"{what:<18} {path.stat().st_size / 1e6 / best:6.0f} MB/s")


def _seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _source(path: Path) -> SourceFiles:
    return SourceFiles(File(path.name, (), partial(chunks, path)))


def decode(path: Path) -> None:
    for line in path.read_bytes().split(b"\n"):
        if line:
            msgspec.json.decode(line)


def write(path: Path, recorded: Path) -> None:
    """The recorded session again and again, each time under other ids."""
    dice = random.Random(7)
    first, *rest = map(json.loads, recorded.read_text("utf-8").splitlines())
    with path.open("w") as file:
        file.write(json.dumps(first) + "\n")
        for number in range(1_000_000):
            output = "\n".join(dice.choices(WORDS, k=dice.choice(OUTPUT_LINES)))
            file.writelines(json.dumps(_varied(it, number, output), separators=(",", ":")) + "\n" for it in rest)
            if file.tell() > BYTES:
                break


def _varied(value: Any, number: int, output: str) -> Any:
    if isinstance(value, list):
        return [_varied(it, number, output) for it in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _varied(it, number, output) for key, it in value.items()}
    for key in changed.keys() & {"id", "call_id", "response_id"}:
        changed[key] = f"{changed[key]}{number}"
    for key in changed.keys() & {"output", "aggregated_output"}:
        if isinstance(changed[key], str):
            changed[key] += output
    return changed


if __name__ == "__main__":
    main()
