"""First `usage` and first index of the same sessions in the files of several agents, beside Claude Code's.

    ./dev bench agents_read [SESSIONS] [AGENT ...] [--responses COUNT] [--write]

Milliseconds of processor time of all processes for each MB, without those for an empty home; a ratio is to Claude
Code's, which takes turns with each agent. The files hold about `COUNT` (100) responses a session, with results of tools
of a few KB. What the catalog says of an agent must be what was written: sessions, exchanges, tokens.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _agent_homes import WRITERS
from _conversations import NAMED_FOLDER, Conversation, conversations, write_claude
from _figures import Figures, arguments_parser
from agent_logger.catalog.search.index_lock import indexing
from catalog import INDEX, OURS, seconds, size

RUNS = 3
CLAUDE = "claude-code"
MOST = 2  # of Claude Code's time for each MB
LINES_OF_RESPONSE = 3.3  # in Claude Code's files
WITHOUT_TOKENS = "aider"


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("sessions", nargs="?", type=int, default=60)
    parser.add_argument("agents", nargs="*", default=[])
    parser.add_argument("--responses", type=int, default=100)
    options = parser.parse_args()
    agents = options.agents or list(WRITERS)
    figures = Figures("agents_read")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        write_claude(base / CLAUDE, options.sessions, round(options.responses * LINES_OF_RESPONSE))
        talks = list(conversations(base / CLAUDE))
        for agent in agents:
            WRITERS[agent](base / agent, talks)
        megabytes = {agent: size(base / agent) / 1e6 for agent in (CLAUDE, *agents)}
        _check(CLAUDE, base / CLAUDE, talks)
        (base / "empty").mkdir()
        (empty,) = _measured(base / "empty")
        responses = sum(len(talk.responses) for talk in talks)
        print(f"{options.sessions} sessions, {responses} responses; ms for each MB, and as a ratio to Claude Code\n")
        print(f"{'':14} {'MB':>6} {'index':>8} {'ratio':>6} {'usage':>8} {'ratio':>6}")
        for agent in agents:
            home = base / agent
            measured = _measured(home, base / CLAUDE)
            each, claude = (
                [(took - none) * 1000 / megabytes[folder.name] for took, none in zip(times, empty, strict=True)]
                for folder, times in zip((home, base / CLAUDE), measured, strict=True)
            )
            ratios = [own / other for own, other in zip(each, claude, strict=True)]
            columns = (f"{own:8.1f} {ratio:6.2f}" for own, ratio in zip(each, ratios, strict=True))
            print(f"{agent:14} {megabytes[agent]:6.1f}", *columns, flush=True)
            _check(agent, home, talks)
            figures.add(f"{agent}: first index", ratios[0], "x", at_most=MOST)
            figures.add(f"{agent}: first `usage`", ratios[1], "x", at_most=MOST)
    sys.exit(figures.finish(write=options.write))


def _check(agent: str, home: Path, talks: list[Conversation]) -> None:
    """Stop if the catalog has read something else than was written."""
    rows = json.loads(_output(home, "ls", "--all", "--json"))
    totals = json.loads(_output(home, "usage", "model", "--json"))["totals"]
    tokens = sum(count or 0 for name, count in totals.items() if name.endswith("_tokens"))
    read = (len(rows), sum(row["exchanges"] for row in rows), tokens)
    exchanges = sum(len(talk.prompts) for talk in talks)
    counted = sum(each.tokens for talk in talks for each in talk.responses) if agent != WITHOUT_TOKENS else 0
    written = (len(talks), exchanges, counted)
    if read != written:
        raise SystemExit(f"{agent}: sessions, exchanges and tokens are {read}, not {written}")


def _measured(*homes: Path) -> list[tuple[float, float]]:
    """Return the seconds of a first index, and of a first `usage`, of each home. They take turns."""
    rounds = [[(_first(home, _index), _first(home, _usage)) for home in homes] for _ in range(RUNS)]
    return [(min(index for index, _ in own), min(usage for _, usage in own)) for own in zip(*rounds, strict=True)]


def _index(own: Path) -> list[str]:
    return [sys.executable, "-c", INDEX.format(str(own))]


def _usage(_own: Path) -> list[str]:
    return [*OURS, "usage"]


def _first(home: Path, command: Callable[[Path], list[str]]) -> float:
    """Run a command that has no catalog yet, and wait until the process that it leaves behind has ended."""
    own = Path(tempfile.mkdtemp(prefix=".agent-logger-", dir=home.parent))
    took = seconds(command(own), _environment(home, own))
    while True:
        with indexing(own) as is_free:
            if is_free:
                return took
        time.sleep(0.1)


def _output(home: Path, *arguments: str) -> str:
    environment = _environment(home, home / ".agent-logger")
    return subprocess.run([*OURS, *arguments], env=environment, check=True, capture_output=True, text=True).stdout


def _environment(home: Path, own: Path) -> dict[str, str]:
    folders = {"AGENT_LOGGER_HOME": str(own), "AGENT_LOGGER_AGENT_FOLDERS": str(home / NAMED_FOLDER)}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", **folders}


if __name__ == "__main__":
    main()
