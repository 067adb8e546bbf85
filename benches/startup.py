"""How long the command line takes to answer, against a bare Python: best and median of 15.

The runs of all commands are interleaved, so that a busy machine slows all of them alike.
Exit code 1 when `--help` is over its budget.
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

RUNS = 15
HELP_BUDGET_MS = 100

PYTHON = sys.executable
AGENT_LOGGER = str(Path(PYTHON).with_name("agent-logger"))
BARE = "python -c pass"
HELP = "agent-logger --help"
COMMANDS = {
    BARE: [PYTHON, "-c", "pass"],
    HELP: [AGENT_LOGGER, "--help"],
    "agent-logger --version": [AGENT_LOGGER, "--version"],
    "agent-logger completion bash": [AGENT_LOGGER, "completion", "bash"],
}


def milliseconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


def main() -> int:
    for command in COMMANDS.values():
        milliseconds(command)  # compiles what is not compiled yet
    rounds = [{name: milliseconds(command) for name, command in COMMANDS.items()} for _ in range(RUNS)]
    times = {name: [one[name] for one in rounds] for name in COMMANDS}
    print(f"{'':30} {'best':>9} {'median':>9} {'x python':>9}")
    for name, taken in times.items():
        ratio = median(taken) / median(times[BARE])
        print(f"{name:30} {min(taken):6.1f} ms {median(taken):6.1f} ms {ratio:8.1f}x")
    over = median(times[HELP]) > HELP_BUDGET_MS
    print(f"budget of --help: {HELP_BUDGET_MS} ms, {'exceeded' if over else 'kept'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
