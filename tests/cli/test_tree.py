"""`tree` and `tail`, over a real client's files and what the proxy recorded."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.agents.claude_code.claude_files import data_of
from tests.agents.claude_code.claude_files import user as typed
from tests.agents.foreign import DATA
from tests.commands import run_command
from tests.proxy.conversing import Client, World
from tests.proxy.tracking.conversation import said, user

NESTED = DATA / "claude-cli/2.1.325/nested_subagents/home/.claude"
CHAIN = DATA / "claude-cli/2.1.325/resume_chain/home/.claude"
KEY = "sk-ant-api03-" + "Qz7" * 20


def run(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_command([*arguments], environment(home) | more)


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TZ": "UTC", "LANG": "C.UTF-8"}


def test_a_session_is_printed_with_its_subagents_in_80_columns(tmp_path: Path) -> None:
    shutil.copytree(NESTED, tmp_path / ".claude")
    [session] = [it.stem for it in NESTED.glob("projects/*/*.jsonl")]
    done = run(tmp_path, "tree", session[:8])
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in lines] == [session[:8], "└─", "└─"]
    assert lines[0].startswith(f"{session[:8]} *")
    assert lines[2].startswith("   └─ agent ")
    assert max(map(len, lines)) == 80
    assert lines[0].endswith("  file"), "what recorded it"
    narrow = run(tmp_path, "tree", session, COLUMNS="40").stdout.splitlines()
    assert max(map(len, narrow)) <= 40
    assert narrow[0].startswith(f"{session[:8]} *")
    told = json.loads(run(tmp_path, "tree", session, "--json").stdout)
    assert told["id"] == session
    assert told["agents"][0]["agents"][0]["turns"]


def test_forks_are_printed_under_their_session(tmp_path: Path) -> None:
    world = World(tmp_path)
    client = Client(world.relay)
    client.ask("one")
    client.ask(f"two {KEY}")
    client.send([*client.history[:2], user("another\x1b[31m way")], said("yes"))
    world.record()
    [fork] = [it.stem for it in world.log_dir.glob("*/*_b1.jsonl")]
    done = run(tmp_path, "tree", fork, AGENT_LOGGER_HOME=str(world.home))
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[fork.removesuffix("_b1"), "one"], ["└─", "fork"]], done.stderr
    assert KEY not in done.stdout
    assert "\x1b" not in done.stdout
    assert "*" in lines[1]


def test_a_missing_session_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, "tree", "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no session 'nothing'" in done.stderr


# ---------------------------------------------------------------- tail


@pytest.fixture
def followed(tmp_path: Path) -> Path:
    """A session that is live."""
    shutil.copytree(NESTED, tmp_path / ".claude")
    [path] = (tmp_path / ".claude").glob("projects/*/*.jsonl")
    for file in (tmp_path / ".claude").rglob("*.jsonl"):
        os.utime(file)
    return path


class Tailing:
    def __init__(self, home: Path, *arguments: str) -> None:
        self._out = home / "out"
        line = [sys.executable, "-m", "agent_logger", "tail", *arguments]
        with self._out.open("w") as out, (home / "err").open("w") as err:
            self.process = subprocess.Popen(line, env=environment(home), stdout=out, stderr=err)

    def lines(self, count: int) -> list[str]:
        give_up = time.monotonic() + 30
        while len(found := self._out.read_text().splitlines()) < count:
            assert self.process.poll() is None and time.monotonic() < give_up, found
            time.sleep(0.05)
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


def test_tail_prints_new_lines_until_ctrl_c(tmp_path: Path, followed: Path) -> None:
    tailing = Tailing(tmp_path, "-n", "3")
    try:
        assert len(tailing.lines(3)) == 3
        with followed.open("ab") as out:
            out.write(data_of([typed("u1", f"go\non, but do not tell {KEY}\x1b[2J", at=1)]))
        *_, last = tailing.lines(4)
    finally:
        code = tailing.stop()
    assert code == 130
    assert last.split()[1:5] == [followed.stem[:8], "main", "input", "go"]
    assert KEY not in last
    assert "\x1b" not in last


def test_tail_prints_json_lines_with_the_json_option(tmp_path: Path, followed: Path) -> None:
    tailing = Tailing(tmp_path, "--json", "-n", "1000", "--session", followed.stem[:8])
    try:
        found = [msgspec.json.decode(line) for line in tailing.lines(5)]
    finally:
        tailing.stop()
    assert {it["session"] for it in found} == {followed.stem}
    assert found[0]["what"] == "input"
    assert {"at", "session", "agent", "thread", "what", "text"} == set(found[0])


def test_tail_reports_that_no_session_is_live(tmp_path: Path) -> None:
    tailing = Tailing(tmp_path)
    try:
        give_up = time.monotonic() + 30
        while "No live sessions" not in (tmp_path / "err").read_text():
            assert tailing.process.poll() is None and time.monotonic() < give_up
            time.sleep(0.05)
    finally:
        tailing.stop()
