"""`find`, `ls`, `usage` and `archive` over thousands of sessions of ten agents in one home: at first, and once more.

    ./dev bench many_agents [SESSIONS] [--responses COUNT] [--agents] [--keep FOLDER] [--write]

Wall time, processor time of all processes and memory of the largest. "First" has no catalog yet; before "second" the
index is complete; "one more" is after one more response of one session. The number of files does not include those of
the archive. Budgets are of processor time: 0.2 s for 1,400 files that have not changed, and 40 MB/s for the first index
on two cores. `--agents` measures a first `usage` of each agent alone, for each MB and beside Claude Code's.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path
from typing import NamedTuple

from _agent_homes import WRITERS
from _claude_corpus import Corpus
from _conversations import Conversation, conversations
from _figures import Figures, arguments_parser
from agent_logger.catalog.search.index_lock import indexing
from catalog import INDEX, OURS, size

LINES_OF_RESPONSE = 3.3  # in Claude Code's files
RUNS = 3
LEAST_FILES = 1_400
UNCHANGED_SECONDS = 0.2 / LEAST_FILES  # of a processor, for each file
INDEX_RATE = 20  # MB for each second of a processor


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("sessions", nargs="?", type=int, default=10_000)
    parser.add_argument("--responses", type=int, default=8, help="in a session, about")
    parser.add_argument("--agents", action="store_true")
    parser.add_argument("--keep", type=Path, help="write the home there, or take the one that is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = options.keep or Path(folder, "home")
        if not home.exists():
            # A process starts out with the peak memory of the one that starts it: this one stays small.
            writing = Process(target=fill, args=(home, options.sessions, options.responses))
            writing.start()
            writing.join()
        if options.agents:
            measure_each(home, Path(folder))
            return
        figures = Figures("many_agents")
        measure_all(home, figures)
    sys.exit(figures.finish(write=options.write))


def fill(home: Path, sessions: int, responses: int) -> None:
    """Write sessions of all agents, as many of each."""
    corpus, claude = Corpus(), home / ".claude"
    for number in range(sessions):
        corpus.write_long(claude, 1, f"/home/user/dev/proj{number % 40}")
    for path in claude.rglob("*.jsonl"):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[: round(responses * LINES_OF_RESPONSE)]), "utf-8")
    talks = list(conversations(claude))
    for number, agent in enumerate(list(FOLDERS)[1:], 1):
        own = talks[number :: len(FOLDERS)]
        WRITERS[agent](home, [talk for talk in map(_answered, own) if talk.prompts])
        for talk in own:
            next(claude.glob(f"projects/*/{talk.id}.jsonl")).unlink()


def _answered(talk: Conversation) -> Conversation:
    return replace(talk, prompts=[prompt for prompt in talk.prompts if prompt.responses])


def measure_all(home: Path, figures: Figures) -> None:
    own, agents = home / ".agent-logger", len(FOLDERS)
    shutil.rmtree(own, ignore_errors=True)
    files = sum(1 for path in home.rglob("*") if path.is_file())
    megabytes, unchanged = size(home) / 1e6, round(max(files, LEAST_FILES) * UNCHANGED_SECONDS, 2)
    print(f"{megabytes:.0f} MB in {files} files of {agents} agents\n")
    print(f"{'':24} {'wall s':>8} {'CPU s':>8} {'MB':>6}")
    for command in (["find"], ["ls"], ["usage"]):
        shutil.rmtree(own, ignore_errors=True)
        first = run([*OURS, *command], home)
        show(f"first {command[0]}", first)
        figures.add(f"first `{command[0]}`", first.cpu, "s")
        wait(own)
    shutil.rmtree(own, ignore_errors=True)
    index = run([sys.executable, "-c", INDEX.format(str(own))], home)
    show("first index, with search", index)
    figures.add("first index, of a second of a processor", megabytes / index.cpu, "MB", at_least=INDEX_RATE)
    figures.add("size of the catalog, of the data's", size(own) / 1e6 / megabytes, "x", at_most=0.45)
    archive = run([*OURS, "archive"], home)
    show("first archive", archive)
    figures.add("first `archive`", archive.cpu, "s")
    run([sys.executable, "-c", INDEX.format(str(own))], home)
    commands = (["find"], ["ls"], ["ls", "--all", "--json"], ["usage"], ["usage", "agent"], ["archive"])
    for command in commands:
        second = min((run([*OURS, *command], home) for _ in range(RUNS)), key=lambda measured: measured.cpu)
        show(f"second {' '.join(command)}"[:24], second)
        figures.add(f"`{' '.join(command)}`, nothing changed", second.cpu, "s", at_most=unchanged)
    for name in ("ls", "usage"):
        add_response(home)
        more = run([*OURS, name], home)
        show(f"{name}, one more response", more)
        figures.add(f"`{name}`, one more response", more.cpu, "s", at_most=unchanged)


def add_response(home: Path) -> None:
    """Append the last lines of a session of Claude Code's once more, under another id."""
    path = min(home.glob(".claude/projects/*/*.jsonl"))
    lines = [line for line in path.read_text("utf-8").splitlines() if '"role":"assistant"' in line]
    last = json.loads(lines[-1])
    last["message"]["id"] = f"msg_{time.time_ns()}"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(last, separators=(",", ":")) + "\n")


def measure_each(home: Path, scratch: Path) -> None:
    """Measure a first `usage` of each agent's files alone."""
    (scratch / "empty").mkdir()
    nothing = first_usage(scratch / "empty", scratch)
    claude: float | None = None
    print(f"{'':14} {'MB':>6} {'ms/MB':>8} {'ratio':>6}")
    for agent, folder in FOLDERS.items():
        alone = scratch / agent
        alone.mkdir()
        link = alone / folder
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(home / folder, link)
        took = (first_usage(alone, scratch) - nothing) * 1000 / (size(alone) / 1e6)
        claude = claude or took
        print(f"{agent:14} {size(alone) / 1e6:6.1f} {took:8.1f} {took / claude:6.2f}", flush=True)


FOLDERS = {
    "claude-code": ".claude",
    "opencode": ".local/share/opencode",
    "kilo": ".local/share/kilo",
    "goose": ".local/share/goose",
    "kimi-code": ".kimi-code",
    "grok-build": ".grok",
    "cline": ".cline",
    "pi": ".pi",
    "codex": ".codex",
    "copilot-cli": ".copilot",
}


def first_usage(home: Path, scratch: Path) -> float:
    """Return the seconds of processor time of a first `usage`: the least of some runs."""
    return min(run([*OURS, "usage"], home, Path(tempfile.mkdtemp(dir=scratch))).cpu for _ in range(RUNS))


class Measured(NamedTuple):
    """What a command took, with the processes that it waited for."""

    wall: float  # seconds
    cpu: float  # seconds, of all processes
    megabytes: float  # of the largest process


def run(command: Sequence[str], home: Path, own: Path | None = None) -> Measured:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    environment["AGENT_LOGGER_HOME"] = str(own or home / ".agent-logger")
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    problem = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall, process.returncode = time.monotonic() - start, os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}: {problem.decode()}")
    wait(Path(environment["AGENT_LOGGER_HOME"]))
    return Measured(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def wait(own: Path) -> None:
    """Wait for the process that a command leaves behind, which fills the index."""
    while True:
        with indexing(own) as is_free:
            if is_free:
                return
        time.sleep(0.1)


def show(name: str, measured: Measured) -> None:
    print(f"{name:24} {measured.wall:8.2f} {measured.cpu:8.2f} {measured.megabytes:6.0f}", flush=True)


if __name__ == "__main__":
    main()
