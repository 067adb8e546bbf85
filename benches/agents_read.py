"""First `usage` and first index of the same sessions in the files of several agents, beside Claude Code's.

    python benches/agents_read.py [SESSIONS] [AGENT ...]

Seconds of processor time of all processes for each MB, without those for an empty home; a ratio is to Claude Code's in
the same run. The files hold about 100 responses a session, with results of tools of a few KB.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _agent_homes import WRITERS, conversations, write_claude
from agent_logger.catalog.search.index_lock import indexing
from catalog import INDEX, OURS, seconds, size

RUNS = 3
CLAUDE = "claude-code"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sessions", nargs="?", type=int, default=60)
    parser.add_argument("agents", nargs="*", default=list(WRITERS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        write_claude(base / CLAUDE, options.sessions)
        talks = list(conversations(base / CLAUDE))
        for agent in options.agents:
            WRITERS[agent](base / agent, talks)
        (base / "empty").mkdir()
        empty = _measured(base / "empty")
        responses = sum(len(prompt.responses) for talk in talks for prompt in talk.prompts)
        print(f"{options.sessions} sessions, {responses} responses; ms for each MB, and as a ratio to Claude Code\n")
        print(f"{'':12} {'MB':>6} {'index':>8} {'ratio':>6} {'usage':>8} {'ratio':>6} {'tokens':>15}")
        claude: list[float] = []
        for agent in (CLAUDE, *options.agents):
            home = base / agent
            megabytes = size(home) / 1e6
            each = [(took - none) * 1000 / megabytes for took, none in zip(_measured(home), empty, strict=True)]
            claude = claude or each
            columns = (f"{own:8.1f} {own / other:6.2f}" for own, other in zip(each, claude, strict=True))
            print(f"{agent:12} {megabytes:6.1f}", *columns, f"{_tokens(home):15,}", flush=True)


def _measured(home: Path) -> tuple[float, float]:
    """Return the seconds of a first index, and of a first `usage`."""
    index = min(_first(home, lambda own: [sys.executable, "-c", INDEX.format(str(own))]) for _ in range(RUNS))
    return index, min(_first(home, lambda _: [*OURS, "usage"]) for _ in range(RUNS))


def _first(home: Path, command: Callable[[Path], list[str]]) -> float:
    """Run a command that has no catalog yet, and wait until the process that it leaves behind has ended."""
    own = Path(tempfile.mkdtemp(prefix=".agent-logger-", dir=home.parent))
    took = seconds(command(own), _environment(home, own))
    while True:
        with indexing(own) as is_free:
            if is_free:
                return took
        time.sleep(0.1)


def _tokens(home: Path) -> int:
    """Return all tokens that are counted: the same for all agents."""
    command = [*OURS, "usage", "model", "--json"]
    environment = _environment(home, home / ".agent-logger")
    shown = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    totals = json.loads(shown)["totals"]
    return sum(count for name, count in totals.items() if name.endswith("_tokens"))


def _environment(home: Path, own: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "AGENT_LOGGER_HOME": str(own)}


if __name__ == "__main__":
    main()
