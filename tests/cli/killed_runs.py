"""A process that runs many agents and has some of them killed: prints how many logs and zombies there are then."""

import os
import random
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from agent_logger import run


def kill_later(pid_file: Path, number: int, seconds: float) -> None:
    while not pid_file.exists() or not pid_file.read_text().strip():
        time.sleep(0.002)
    time.sleep(seconds)
    with suppress(ProcessLookupError):
        os.kill(int(pid_file.read_text()), number)


def agent(pid_file: Path, code: int) -> Path:
    path = Path("agent").absolute()
    lines = ["#!/bin/sh", f"echo $$ > {pid_file}"]
    lines += [f"for i in 1 2 3 4 5 6; do echo line $i; sleep 0.0{random.randint(1, 9)}; done", f"exit {code}"]
    path.write_text("\n".join(lines))
    path.chmod(0o700)
    return path


def one(number: int) -> None:
    code, killer, pid_file = random.choice([0, 1, 3, 77]), random.choice([0, 2, 9, 15]), Path(f"pid{number}")
    thread = threading.Thread(target=kill_later, args=(pid_file, killer, random.random() / 5))
    executable = agent(pid_file, code)
    thread.start()
    told = run("go on", executable=str(executable), sessions_dir="s").metadata
    thread.join()
    allowed = [(code, None), *([(None, killer)] if killer else [])]
    assert (told.exit_status, told.signal) in allowed, (told, allowed)
    assert told.lost == 0


def zombies() -> int:
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            found += path.read_text().rpartition(")")[2].split()[:2] == ["Z", str(os.getpid())]
    return found


if __name__ == "__main__":
    count, seed = map(int, sys.argv[1:])
    random.seed(seed)
    for it in range(count):
        one(it)
    print(len(list(Path("s").glob("*.jsonl"))), zombies())
