"""How fast Claude Code's files are read, beside the plain way: `json.loads` per line, and nothing made of it.

    python benches/read.py [MEGABYTES | FOLDER]

MB/s of processor time on one core, the best of several runs; `ratio` is to the plain way in the same run, for machines
differ and are shared. What is read is compared with what was written.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from _claude_corpus import Corpus
from agent_logger.agents.claude_code.opener import claude_source
from agent_logger.agents.claude_code.transcript.responses import responses_of
from agent_logger.agents.claude_code.transcript.session import session_of
from agent_logger.catalog.ledger.metrics import metrics_of
from agent_logger.model.session import Session, Usage

RUNS = 7


def plain(paths: list[Path]) -> None:
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    json.loads(line)
                except ValueError:
                    continue


def sessions(paths: list[Path]) -> Iterator[Session]:
    return (session_of(claude_source(path)) for path in paths)


def read_sessions(paths: list[Path]) -> None:
    for session in sessions(paths):
        assert session.exchanges


def all_metrics(paths: list[Path]) -> None:
    for it in sessions(paths):
        assert metrics_of(it).turns


def read_responses(paths: list[Path]) -> None:
    for path in paths:
        for _ in responses_of(claude_source(path)):
            pass


WAYS: dict[str, Callable[[list[Path]], None]] = {
    "json.loads": plain,
    "session_of": read_sessions,
    "session_of, all metrics": all_metrics,
    "responses_of": read_responses,
}


def measure(paths: list[Path], megabytes: float) -> None:
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(RUNS):  # in turns, so that what else the machine does hits all of them
        for name, way in WAYS.items():
            start = time.thread_time()
            way(paths)
            best[name] = min(best[name], time.thread_time() - start)
    for name, seconds in best.items():
        ratio = best["json.loads"] / seconds
        print(f"{name:24} {megabytes / seconds:7.0f} MB/s   ratio {ratio:5.2f}")


def main(given: str = "100") -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder, truth = Path(given), None
        if given.isdigit():
            folder, corpus = Path(temporary), Corpus()
            truth = corpus.write(folder, int(given))
        paths = sorted(folder.rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in paths) / 1e6
        print(f"{len(paths)} files, {size:.0f} MB")
        measure(paths, size)
        if truth:
            read = [row for path in paths for row in responses_of(claude_source(path))]
            assert len(read) == truth.responses
            assert sum((row.usage for row in read if row.usage), Usage()) == truth.usage
            assert sum((it.usage for it in sessions(paths)), Usage()) == truth.usage
            assert sum(len(it.tool_calls) for it in sessions(paths)) == truth.tool_calls
            print("all totals are those that were written")


if __name__ == "__main__":
    main(*sys.argv[1:])
