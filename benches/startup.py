"""How long the command line takes to answer, against a bare Python: best and median of 15.

The runs of all commands are interleaved, so that a busy machine slows all of them alike.
Exit code 1 when a command is over its budget; CPU time tells more than the clock where others are at work.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from _figures import Figures, arguments_parser

RUNS = 15

PYTHON = sys.executable
AGENT_LOGGER = str(Path(PYTHON).with_name("agent-logger"))
BARE = "python -c pass"
LIBRARY = "from agent_logger import SessionLogger"
COMMANDS = {
    BARE: [PYTHON, "-c", "pass"],
    "agent-logger --help": [AGENT_LOGGER, "--help"],
    "agent-logger --version": [AGENT_LOGGER, "--version"],
    "agent-logger completion bash": [AGENT_LOGGER, "completion", "bash"],
    "agent-logger hook": [AGENT_LOGGER, "hook"],
    LIBRARY: [PYTHON, "-c", LIBRARY],
}
BUDGETS_MS = {"agent-logger --help": 100, "agent-logger hook": 80, LIBRARY: 80}
HOOK_INPUT = b'{"session_id":"x","hook_event_name":"PostToolUse","cwd":"/","tool_response":{"stdout":"hello"}}'


class Took(NamedTuple):
    wall_ms: float
    cpu_ms: float


def took(command: list[str], home: str) -> Took:
    environment = {**os.environ, "AGENT_LOGGER_HOME": home}
    began, before = time.perf_counter(), cpu_seconds()
    subprocess.run(command, input=HOOK_INPUT, stdout=subprocess.DEVNULL, env=environment, check=True)
    return Took((time.perf_counter() - began) * 1000, (cpu_seconds() - before) * 1000)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    write = arguments_parser(__doc__).parse_args().write
    with tempfile.TemporaryDirectory() as home:
        for command in COMMANDS.values():
            took(command, home)  # compiles what is not compiled yet
        rounds = [{name: took(command, home) for name, command in COMMANDS.items()} for _ in range(RUNS)]
    walls = {name: [one[name].wall_ms for one in rounds] for name in COMMANDS}
    cpus = {name: min(one[name].cpu_ms for one in rounds) for name in COMMANDS}
    print(f"{'':42} {'best':>9} {'median':>9} {'x python':>9} {'CPU':>9}")
    for name, taken in walls.items():
        ratio = median(taken) / median(walls[BARE])
        print(f"{name:42} {min(taken):6.1f} ms {median(taken):6.1f} ms {ratio:8.1f}x {cpus[name]:6.1f} ms")
    figures = Figures("startup")
    figures.add(f"`{BARE}`, for comparison", median(walls[BARE]), "ms")
    for name, budget in BUDGETS_MS.items():
        figures.add(f"`{name}`", median(walls[name]), "ms", at_most=budget)
    return figures.finish(write=write)


if __name__ == "__main__":
    sys.exit(main())
