"""However a process ends, what `log` took is there, and the log says how it ended."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_logger import SessionLogger
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, Record, SessionEnd, SessionStart
from tests.recording import logging_process
from tests.recording.logging_process import SESSION

SCRIPT = Path(logging_process.__file__)


def start(folder: Path, how: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(SCRIPT), str(folder), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def log_of(folder: Path) -> str:
    [path] = folder.glob("*.jsonl")
    return path.stem


def found(folder: Path) -> tuple[list[ExchangeRecord], list[Record]]:
    name = log_of(folder)
    records = [item.value for item in read_log(folder, name)]
    return read_exchanges(folder, name), [it for it in records if isinstance(it, Record)]


@pytest.mark.parametrize(
    ("how", "status", "reason", "end_reason"),
    [("exit", 3, "exit", "exit"), ("raise", 1, "exit", "exit"), ("term", 143, "terminated", "eof")],
)
def test_an_unclosed_logger_writes_its_end_when_the_process_exits(
    how: str, status: int, reason: str, end_reason: str, tmp_path: Path
) -> None:
    with start(tmp_path / "s", how) as process:
        process.communicate(timeout=30)
    assert process.returncode == status
    exchanges, records = found(tmp_path / "s")
    assert [it.end_reason for it in exchanges] == ["result", end_reason]
    end = records[-1]
    assert isinstance(end, SessionEnd)
    assert (end.reason, end.total_exchanges) == (reason, 2)


def test_a_forked_child_does_not_end_the_session_of_its_parent(tmp_path: Path) -> None:
    with start(tmp_path / "s", "fork") as process:
        process.communicate(timeout=30)
    exchanges, records = found(tmp_path / "s")
    assert [it.end_reason for it in exchanges] == ["result", "exit"]
    assert len([it for it in records if isinstance(it, SessionEnd)]) == 1


FORKS_AT_WORK = """
import os, signal, sys, threading
from agent_logger import SessionLogger
logger = SessionLogger(sys.argv[1])
at_work, go_on = threading.Event(), threading.Event()
class Slow:
    def __str__(self):
        at_work.set()
        go_on.wait(30)
        return "slow"
thread = threading.Thread(target=logger.log, args=(Slow(),))
thread.start()
at_work.wait(30)
child = os.fork()
if child == 0:
    signal.alarm(20)
    logger.log("of the child")
    os._exit(7)
_, status = os.waitpid(child, 0)
go_on.set()
thread.join()
logger.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_child_forked_while_another_thread_logs_does_not_deadlock(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", FORKS_AT_WORK, str(tmp_path / "s")],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert process.returncode == 7
    said = b"".join(path.read_bytes() for path in (tmp_path / "s").rglob("*.jsonl*"))
    assert b"slow" in said and b"of the child" in said


def test_an_exchange_without_a_result_is_logged_once_after_a_kill(tmp_path: Path) -> None:
    """Its live file is still there, with the usage of a beginning; the record has that of the end."""
    with start(tmp_path / "s", "close") as process:
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    for _ in range(2):
        exchange = found(tmp_path / "s")[0][1]
        assert [it.type for it in exchange.messages] == ["init", *["text"] * 3]
        assert json.loads(bytes(exchange.messages[-1].usage or b"")) == {
            "input_tokens": 1,
            "output_tokens": 40,
        }
        with SessionLogger(tmp_path / "s") as logger:  # takes the log over, with what was left in it
            logger.log({"type": "system", "subtype": "init", "session_id": SESSION})


@pytest.mark.parametrize("number", range(6))
def test_logged_messages_survive_a_kill(number: int, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with start(folder, "go on") as process:
        assert process.stdout
        lines = [process.stdout.readline()]
        time.sleep(random.Random(number).uniform(0, 0.3))
        process.kill()
        lines += process.stdout.readlines()
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    inputs = [it["input"] for it in told if "input" in it]
    messages = max([it["logged"] for it in told if "logged" in it], default=0)

    exchanges, records = found(folder)
    kept = [it.user_input for it in exchanges]
    assert kept[: len(inputs)] == [f"input {it}" for it in inputs]
    entries = sum(len(it.messages) for it in exchanges)
    first = min(messages, 1)  # what `session_start` says is no message of its own
    assert entries >= messages - first
    assert not any(isinstance(it, SessionEnd) for it in records)

    with SessionLogger(folder, resumed_from=SESSION) as logger:
        logger.log_user_input("again")
        for message in logging_process.messages(1):
            logger.log(message)
    after, records = found(folder) if messages else ([], [])
    if messages:
        assert isinstance(records[0], SessionStart)
        assert [it.exchange for it in after] == list(range(1, len(after) + 1))
        assert {it.end_reason for it in after} <= {"result", "recovered"}
        end = records[-1]
        assert isinstance(end, SessionEnd) and end.total_exchanges == len(after)
