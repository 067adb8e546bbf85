"""Which sessions are live."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_logger.catalog.ledger.rows import BIT
from agent_logger.catalog.live.liveness import SessionState, SourceState, in_flight, is_live, mark_interrupted
from agent_logger.model.session import Exchange, Session
from tests.commands import run_command

ENDED = Exchange(number=1, complete=True, end_reason="result")
AT_WORK = Exchange(number=2, complete=False)
CUT = Exchange(number=2, complete=False, end_reason="cut")
NOW = 1_000_000.0

SESSIONS = [
    pytest.param([ENDED], 299, True, id="waits for a person"),
    pytest.param([ENDED], 301, False, id="is over"),
    pytest.param([ENDED, AT_WORK], 890, True, id="a long tool"),
    pytest.param([ENDED, AT_WORK], 901, False, id="killed"),
    pytest.param([ENDED, CUT], 890, False, id="interrupted"),
    pytest.param([], 10, True, id="has just begun"),
    pytest.param([], 400, False, id="nothing came"),
]


@pytest.mark.parametrize("age", [0, 100_000], ids=["new files", "old files"])
@pytest.mark.parametrize(("exchanges", "silent", "live"), SESSIONS)
def test_liveness_of_agent_files_depends_on_the_last_event(
    exchanges: list[Exchange], silent: float, live: bool, age: float
) -> None:
    source = SourceState("codex", "/nowhere.jsonl", BIT["transcript"], NOW - age)
    in_work = in_flight(Session(id="s", exchanges=exchanges))
    state = SessionState(last_event=NOW - silent, in_flight=in_work, is_over=False, sources=[source])
    assert is_live(state, NOW, runs=None) is live
    assert is_live(state, NOW, runs=True)
    assert not is_live(state, NOW, runs=False)
    assert not is_live(state._replace(is_over=True), NOW, runs=None)


@pytest.mark.parametrize(
    ("locked", "in_work", "silent", "live"),
    [
        pytest.param(True, True, 60, True, id="a call is being answered"),
        pytest.param(True, False, 60, True, id="a person is about to answer"),
        pytest.param(True, True, 901, False, id="the agent was killed long ago"),
        pytest.param(True, False, 301, False, id="the agent has ended"),
        pytest.param(False, True, 60, False, id="the proxy was killed"),
        pytest.param(False, False, 60, False, id="the proxy has ended"),
    ],
)
def test_a_proxied_session_is_live_while_the_proxy_runs_and_events_are_recent(
    tmp_path: Path, locked: bool, in_work: bool, silent: float, live: bool
) -> None:
    path = tmp_path / "20261116-000000-abcd.jsonl"
    path.touch()
    source = SourceState(None, str(path), BIT["wire"], NOW)
    state = SessionState(last_event=NOW - silent, in_flight=in_work, is_over=False, sources=[source])
    with path.open() as file:
        if locked:
            fcntl.flock(file, fcntl.LOCK_EX)
        assert is_live(state, NOW, runs=None) is live


def test_an_unfinished_exchange_of_a_session_that_is_not_live_is_interrupted() -> None:
    session = mark_interrupted(Session(id="s", exchanges=[ENDED, AT_WORK]))
    assert [it.end_reason for it in session.exchanges] == ["result", "interrupted"]
    assert mark_interrupted(Session(id="s", exchanges=[ENDED])).exchanges == [ENDED]


# ---------------------------------------------------------------- with real processes

LOGGING = """
import sys, time
from agent_logger import SessionLogger
logger = SessionLogger(sys.argv[1])
logger.log_user_input("Make tea")
logger.log({"type": "system", "subtype": "init", "session_id": "11111111-2222-4333-8444-555555555555"})
said = {"id": "msg_01aaaaaaaaaaaaaaaaaaaaaa", "content": [{"type": "text", "text": "Done."}]}
logger.log({"type": "assistant", "message": said, "session_id": "11111111-2222-4333-8444-555555555555"})
if sys.argv[2] == "ended":
    logger.close()
print("ready", flush=True)
time.sleep(60)
"""
STORING = """
import sys, time
from agent_logger import FileStorage
storage = FileStorage(sys.argv[1])
storage.append("s", {"type": "user", "message": {"role": "user", "content": "Make tea"}})
if sys.argv[2] == "ended":
    storage.close()
print("ready", flush=True)
time.sleep(60)
"""


@contextmanager
def program(source: str, folder: Path, state: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(folder), state], env=environment, stdout=subprocess.PIPE, text=True
    )
    stdout = process.stdout
    assert stdout is not None
    try:
        assert stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        stdout.close()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "COLUMNS": "80"}


def listed(environment: dict[str, str]) -> dict[str, Any]:
    (row,) = json.loads(run_command(["ls", "--json"], environment).stdout)
    live = [it["id"] for it in json.loads(run_command(["ls", "--json", "--live"], environment).stdout)]
    assert live == ([row["id"]] if row["live"] else [])
    found: dict[str, Any] = row
    return found


@pytest.mark.parametrize("source", [LOGGING, STORING], ids=["logger", "storage"])
def test_a_log_is_live_while_its_program_has_it_open(source: str, tmp_path: Path, environment: dict[str, str]) -> None:
    with program(source, tmp_path / "sessions", "open", environment) as process:
        hour_ago = time.time() - 3600  # not long enough for a command to seal it, once its program is dead
        for path in (tmp_path / "sessions").rglob("*.jsonl*"):
            os.utime(path, (hour_ago, hour_ago))
        assert listed(environment)["live"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        row = listed(environment)
        assert (row["live"], row["ending"]) == (False, "interrupted")
        assert run_command(["ls"], environment).stdout.splitlines()[1][11] == "!"
        shown = run_command(["show", row["id"]], environment).stdout
        assert "incomplete (interrupted)" in shown
        assert "in flight" not in shown


@pytest.mark.parametrize("source", [LOGGING, STORING], ids=["logger", "storage"])
def test_a_closed_log_stops_being_live_immediately(source: str, tmp_path: Path, environment: dict[str, str]) -> None:
    with program(source, tmp_path / "sessions", "ended", environment):
        assert not listed(environment)["live"]


def claude_file(home: Path, *ages: float) -> Path:
    """A session of Claude Code whose lines are so many seconds old."""
    path = home / ".claude/projects/-p/11111111-2222-4333-8444-555555555555.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    times = [(datetime.now(UTC) - timedelta(seconds=age)).isoformat() for age in ages]
    lines = [
        {"type": "user", "message": {"role": "user", "content": f"input {at}"}, "uuid": at, "timestamp": at}
        for at in times
    ]
    path.write_text("".join(json.dumps(it) + "\n" for it in lines))
    return path


def test_a_session_is_not_live_after_its_client_exits_or_is_killed(tmp_path: Path, environment: dict[str, str]) -> None:
    notes = tmp_path / "home/.claude/sessions"
    notes.mkdir(parents=True)
    os.utime(notes, (1_700_000_000, 1_700_000_000))
    claude_file(tmp_path / "home", 5)
    assert listed(environment)["live"]  # nothing tells that its client has ended
    with subprocess.Popen(["sleep", "60"]) as client:
        note = notes / f"{client.pid}.json"
        note.write_text(json.dumps({"pid": client.pid, "sessionId": "11111111-2222-4333-8444-555555555555"}))
        assert listed(environment)["live"]
        client.kill()
    assert not listed(environment)["live"]
    note.unlink()
    assert not listed(environment)["live"]
    claude_file(tmp_path / "home", -5)  # another client has gone on since, which writes no notes
    assert listed(environment)["live"]


def test_a_copied_file_with_old_events_is_not_live(tmp_path: Path, environment: dict[str, str]) -> None:
    claude_file(tmp_path / "home", 14 * 3600)
    assert not listed(environment)["live"]


def test_an_ended_run_is_not_live_even_if_its_agent_wrote_recently(tmp_path: Path, environment: dict[str, str]) -> None:
    """The agent's file alone would be live for minutes; its program is known to have ended."""
    claude_file(tmp_path / "home", 1)
    assert listed(environment)["live"]
    with program(LOGGING, tmp_path / "sessions", "ended", environment):
        row = listed(environment)
        assert {"sdk", "transcript"} <= set(row["witnesses"])
        assert not row["live"]
    hour_ago = time.time() - 3600
    for path in (tmp_path / "sessions").rglob("*.jsonl*"):
        os.utime(path, (hour_ago, hour_ago))
    assert listed(environment)["live"]  # somebody has gone on with it since
