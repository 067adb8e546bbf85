"""The commands, and the same things in Python, over a home that an enemy has written to."""

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.hostile import EMPTY_FILES, LONG_LINE, OUTSIDE, Hostile, hostile_home, number
from tests.hostile import NAMES
from tests.memory import PEAK_KB

MOST_MEMORY = 400 << 20  # bytes
SIZES = [
    pytest.param(300, 70 << 20, id="as much as is quick"),
    pytest.param(EMPTY_FILES, LONG_LINE, id="all of it", marks=pytest.mark.long),
]

# What the process opens and lists goes to a file, as it does so; how much memory it took to another, at its end.
WATCHED = (
    PEAK_KB
    + """
import atexit, sys
memory = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
atexit.register(lambda: os.write(memory, b"%d" % peak_kb()))
seen = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def watch(event, given):
    if event in ("open", "os.scandir", "os.listdir", "sqlite3.connect") and isinstance(given[0], (str, bytes)):
        flags = given[2] if event == "open" else 0
        os.write(seen, (repr((event, os.fsdecode(given[0]), flags)) + "\\n").encode("utf-8", "backslashreplace"))
sys.addaudithook(watch)
"""
)
COMMAND = WATCHED + "from agent_logger.__main__ import main; main()"
API = (
    WATCHED
    + """
import agent_logger
found = agent_logger.discover()
told = [it.read() for it in found]
print(len(found), sum(it.usage.output_tokens for it in told), agent_logger.find_session("no-such-id"))
"""
)


@dataclass
class Done:
    exit_code: int
    stdout: bytes
    stderr: bytes
    memory_bytes: int


def run(home: Path, program: str, *arguments: str) -> Done:
    out, err, memory = (home.parent / name for name in ("stdout", "stderr", "memory"))
    line = [sys.executable, "-B", "-c", program, str(memory), str(home.parent / "opened"), *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TMPDIR": tempfile.gettempdir()}
    with out.open("wb") as stdout, err.open("wb") as stderr:
        done = subprocess.run(line, env=environment, cwd=home, stdout=stdout, stderr=stderr, check=False)
    return Done(done.returncode, out.read_bytes(), err.read_bytes(), int(memory.read_text()) << 10)


def looks(home: Path) -> dict[str, tuple[int, ...]]:
    """Everything but what is ours, by what any change would change."""
    paths = [Path(folder, name) for folder, _, names in os.walk(home) for name in names]
    stats = {str(it): os.lstat(it) for it in paths if ".agent-logger" not in it.parts}
    return {path: (it.st_ino, it.st_mode, it.st_size, it.st_mtime_ns) for path, it in stats.items()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("empty_files", "long_line"), SIZES)
def test_a_hostile_home_is_read_completely_without_errors_or_writes_outside(
    home: Path, empty_files: int, long_line: int
) -> None:
    hostile = hostile_home(home, empty_files=empty_files, long_line=long_line)
    before = looks(home)
    done = {name: run(home, COMMAND, *name.split()) for name in COMMANDS}
    api = run(home, API)
    assert {name: it.exit_code for name, it in done.items()} == COMMANDS
    assert {name: it.stderr for name, it in done.items() if b"Error" in it.stderr} == {}
    for it in (*done.values(), api):
        assert it.memory_bytes < MOST_MEMORY
        assert OUTSIDE.encode() not in it.stdout
    _is_all_there(hostile, done, api, empty_files)
    assert looks(home) == before
    _stayed_inside(home)


COMMANDS = {
    "usage --json": 0,
    "usage session": 0,
    "ls --all --json": 0,
    "ls": 0,
    f"show --json {number(1)}": 0,
    f"show {number(1)}": 0,
    f"find {number(1)}": 0,
    "verify --json .claude": 1,
}


def _is_all_there(hostile: Hostile, done: dict[str, Done], api: Done, empty_files: int) -> None:
    """Every good line once, every bad one with its place."""
    totals = json.loads(done["usage --json"].stdout)["totals"]
    told = (totals["responses"], totals["input_tokens"], totals["output_tokens"])
    assert told == (hostile.good, 10 * hostile.good, hostile.good)
    rows = json.loads(done["ls --all --json"].stdout)
    assert sum(row["output_tokens"] for row in rows) == hostile.good
    assert len(rows) >= empty_files + len(NAMES)
    counted = api.stdout.split()
    assert (int(counted[1]), counted[2]) == (hostile.good, b"None"), api.stderr
    report: dict[str, Any] = json.loads(done["verify --json .claude"].stdout)
    damage = {
        (os.path.abspath(hostile.home / it["path"]), bad["line"]) for it in report["files"] for bad in it["damage"]
    }
    assert damage == hostile.bad


def _stayed_inside(home: Path) -> None:
    own = [sysconfig.get_path("stdlib"), sys.prefix, sys.base_prefix, str(Path(__file__).parents[2] / "src")]
    inside = [str(home), *own, "/usr/share/zoneinfo", "/etc/localtime", "/dev/null"]
    for line in (home.parent / "opened").read_text().splitlines():
        event, path, flags = ast.literal_eval(line)
        real = os.path.realpath(home / path.removeprefix("file:").partition("?")[0])
        assert any(Path(real).is_relative_to(it) for it in inside) or _is_copy(Path(real)), line
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or event == "sqlite3.connect":
            ours = [
                home / ".agent-logger",
                home / ".local/share/opencode",
                home.parent / "opened",
                Path("/dev/null"),
            ]
            assert any(Path(real).is_relative_to(it) for it in ours) or _is_copy(Path(real)), line


def _is_copy(path: Path) -> bool:
    """Whether it is in a folder for the copy of a database, or a file by which `tempfile` sees whether it can write."""
    place = Path(tempfile.gettempdir())
    top = path.relative_to(place).parts[0] if path != place and path.is_relative_to(place) else ""
    return top.startswith("agent-logger-") or re.fullmatch(r"[a-z0-9_]{8}", top) is not None


@pytest.mark.parametrize("name", ["usage --json", "ls --all --json", "verify --json .claude"])
def test_files_changed_during_a_command_do_not_cause_errors(home: Path, name: str) -> None:
    hostile, rng = Hostile(home), random.Random(7)
    paths = [hostile.session(*(hostile.response() for _ in range(40))) for _ in range(300)]
    line = [sys.executable, "-m", "agent_logger", *name.split()]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with (home.parent / "stderr").open("wb") as stderr:
        process = subprocess.Popen(line, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=stderr)
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            _disturb(rng, paths)
        process.kill()
        process.wait()
    assert process.returncode in (0, 1)
    assert b"Error" not in (home.parent / "stderr").read_bytes()


def _disturb(rng: random.Random, paths: list[Path]) -> None:
    path = rng.choice(paths)
    kind = rng.randrange(4)
    if path.is_dir():
        shutil.rmtree(path)
    elif kind == 0:
        path.unlink(missing_ok=True)
    elif kind == 1 and path.exists():
        os.truncate(path, path.stat().st_size // 2)
    elif kind == 2:
        path.unlink(missing_ok=True)
        path.mkdir()
    else:
        path.write_bytes(b'{"type":"user","message":"new"}\n' * 50)
