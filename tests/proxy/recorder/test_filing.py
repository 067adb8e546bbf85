"""Sessions as the recorder files them: one log each, whatever happens to sessions.db meanwhile."""

import contextlib
import gzip
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_logger.logs.reader import read_session
from agent_logger.model.records import Fork
from tests.proxy.conversing import JSON, Client, World
from tests.proxy.process import wait_until
from tests.proxy.spooling import PATH, every_byte_under, logged, request_head
from tests.proxy.tracking.conversation import TOOLS, said, user


def rows(table_path: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(table_path)) as table:
        sessions = table.execute("SELECT id, parent_session, from_seq, last_seq FROM sessions")
        states = table.execute("SELECT fingerprint, session_id, seq, outcome FROM fingerprints")
        return sorted(sessions.fetchall()) + sorted(states.fetchall())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("session", ["named", None])
def test_a_conversation_is_one_log_with_its_responses(world: World, session: str | None) -> None:
    client = Client(world.relay, session)
    calls = [client.ask(text) for text in ("one", "two", "three")]
    found = world.record()
    (log,) = {found.logs[call] for call in calls}
    assert [found.request(call).seq for call in calls] == [1, 2, 3]
    assert [found.response(call).stop_reason for call in calls] == ["end_turn"] * 3
    assert found.response(calls[0]).message_id == "msg_0"
    read = read_session(world.log_dir / f"{log}.jsonl")
    assert [exchange.user_input for exchange in read.exchanges] == ["one", "two", "three"]
    assert (read.usage.input_tokens, read.usage.output_tokens) == (30, 15)


def test_a_restart_continues_in_the_same_log(world: World) -> None:
    client = Client(world.relay)
    first = client.ask("one")
    world.record()
    world.open()
    client.relay = world.relay
    second = client.ask("two")
    found = world.record()
    assert found.logs[first] == found.logs[second]
    assert [found.request(call).seq for call in (first, second)] == [1, 2]


def test_a_fork_starts_a_branch_log_that_names_its_parent_and_copies_no_calls(world: World) -> None:
    client = Client(world.relay, "named")
    calls = [client.ask(text) for text in ("one", "two", "three")]
    branch = client.send([*client.history[:2], user("another two")], said("yes"))
    found = world.record()
    parent = found.logs[calls[0]]
    assert found.logs[branch] == f"{parent}_b1"
    (fork,) = [it for it in found.others if isinstance(it, Fork)]
    assert (fork.from_seq, fork.parent_session) == (1, parent.partition("/")[2])
    assert fork.reason == "message_history_diverged"
    assert len([call for call, log in found.logs.items() if log == found.logs[branch]]) == 1
    read = read_session(world.log_dir / f"{parent}_b1.jsonl")
    assert [exchange.user_input for exchange in read.exchanges] == ["one", "another two"]


def test_sessions_that_begin_before_anything_is_written_have_logs_of_their_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = iter(["aaaa", "aaaa", "bbbb", *map("{:04x}".format, range(100))])
    monkeypatch.setattr("agent_logger.proxy.recorder.logs.secrets.token_hex", lambda _: next(digits))
    monkeypatch.setattr("agent_logger.proxy.recorder.logs.SHORT_BYTES", 1 << 20)  # nothing is written before the end
    calls = [Client(world.relay, name).ask(name) for name in ("one", "two")]
    found = world.record()
    assert len({found.logs[call] for call in calls}) == 2
    assert [found.request(call).seq for call in calls] == [1, 1]


def test_a_retry_is_marked_and_stays_in_the_same_log(world: World) -> None:
    client = Client(world.relay)
    asked = [user("one")]
    failed = client.send(asked, None)
    again = client.send(asked, said("yes"))
    found = world.record()
    assert found.logs[failed] == found.logs[again]
    assert found.request(again).retry_of == found.request(failed).seq == 1
    assert found.request(failed).fingerprint == found.request(again).fingerprint


def test_a_compressed_request_is_fingerprinted(world: World) -> None:
    body = gzip.compress(json.dumps({"messages": [user("zipped")], "tools": TOOLS}).encode())
    call = world.relay.call(head=request_head(PATH, b"content-encoding: gzip"), body=[body], fields=JSON, secrets=())
    found = world.record()
    assert found.request(call).fingerprint
    assert not found.logs[call].endswith("unattributed")


def test_a_large_request_is_fingerprinted(world: World) -> None:
    text = "x" * (9 << 20)
    body = json.dumps({"messages": [user(text)], "tools": TOOLS}).encode()
    pieces = [body[at : at + (1 << 20)] for at in range(0, len(body), 1 << 20)]
    call = world.relay.call(head=request_head(PATH), body=pieces, fields=JSON, secrets=())
    found = world.record()
    assert (found.request(call).kind, found.request(call).thread) == ("main", "main")
    assert found.request(call).fingerprint


def test_a_key_echoed_in_response_fields_is_in_no_file(world: World) -> None:
    key = b"sk-ant-api03-" + b"Jk4" * 20 + b"wxyz"
    told = {"id": key.decode(), "model": key.decode(), "stop_reason": f"bad {key.decode()}", **said("no")}
    body = json.dumps({"messages": [user("hi")], "tools": TOOLS}).encode()
    answer = json.dumps({"type": "message", "usage": {"input_tokens": 1, key.decode(): 1}, **told}).encode()
    status = b"HTTP/1.1 200 " + key
    world.relay.call(head=request_head(PATH), body=[body], status=status, fields=JSON, answer=[answer], secrets=())
    found = world.record()
    (response,) = found.responses.values()
    assert response[0].model and response[0].message_id
    for path, data in every_byte_under(world.log_dir):
        assert key not in data, path


# ---------------------------------------------------------------- sessions.db


def _delete(table: Path) -> None:
    for path in table.parent.glob("sessions.db*"):
        path.unlink()


def _zero(table: Path) -> None:
    with table.open("r+b") as file:
        file.write(bytes(table.stat().st_size))


def _version(version: int) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        copy = table.with_name("other.db")
        shutil.copy(table, copy)
        with contextlib.closing(sqlite3.connect(copy)) as other:
            other.execute(f"PRAGMA user_version = {version}")
        _delete(table)
        copy.rename(table)

    return change


FAULTS = [
    pytest.param(_delete, id="deleted"),
    pytest.param(_zero, id="zeroed"),
    pytest.param(_version(0), id="older"),
    pytest.param(_version(7), id="newer"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_session_table_lost_during_calls_is_rebuilt_from_the_logs(
    world: World, fault: Callable[[Path], None]
) -> None:
    client = Client(world.relay, None)
    with world.live() as child:
        client.ask("one")
        wait_until(lambda: world.table.exists() and child.recording.counts.calls == 1)
        time.sleep(0.6)
        fault(world.table)
        client.ask("two")
        wait_until(lambda: _has_sessions(world.table))
        client.ask("three")
    found = logged(world.log_dir)
    assert len({found.logs[call] for call in client.calls}) == 1
    assert [found.request(call).seq for call in client.calls] == [1, 2, 3]
    lived = rows(world.table)
    _delete(world.table)
    world.open()
    world.record()
    assert rows(world.table) == lived, "what is rebuilt from the logs differs"


def _has_sessions(table: Path) -> bool:
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(table)) as it:
        return bool(it.execute("SELECT count(*) FROM sessions").fetchone()[0])
    return False


def test_a_locked_session_table_delays_checkpoints_but_no_calls(world: World) -> None:
    client = Client(world.relay, None)
    with world.live() as child:
        client.ask("one")
        wait_until(lambda: child.recording.counts.calls == 1 and _has_sessions(world.table))
        with contextlib.closing(sqlite3.connect(world.table, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            client.ask("two")
            wait_until(lambda: child.recording.counts.calls == 2 and not child.checkpoints.running)
            client.ask("three")  # taken when the last checkpoint that did begin is counted
            wait_until(lambda: child.recording.counts.calls == 3)
            checkpoints = child.checkpoints.taken
            time.sleep(1.5)
            assert child.checkpoints.taken == checkpoints, "a checkpoint forgot what the table lacks"
            other.execute("ROLLBACK")
        wait_until(lambda: child.checkpoints.taken > checkpoints)
    found = logged(world.log_dir)
    assert len({found.logs[call] for call in client.calls}) == 1
    states = [row for row in rows(world.table) if str(row[0]).startswith("v1:")]
    assert {row[2] for row in states} == {1, 2, 3}


@pytest.mark.parametrize("branches", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_branches_use_disk_space_only_for_their_own_calls(world: World, branches: int) -> None:
    client = Client(world.relay, "named")
    for number in range(20):
        client.ask(f"{number} " + "lorem ipsum " * 200)
    world.record()
    before = _size(world.log_dir)
    world.open()
    client.relay = world.relay
    sent = 0
    for number in range(branches):
        messages = [*client.history[: 2 * (1 + number % 18)], user(f"branch {number}")]
        client.send(messages, said(f"branch {number}"))
        sent += len(json.dumps(messages))
    found = world.record()
    parents = {it.parent_session for it in found.others if isinstance(it, Fork)}
    forks = [it for it in found.others if isinstance(it, Fork)]
    assert len(forks) == branches
    assert parents == {found.logs[client.calls[0]].partition("/")[2]}
    assert sorted(fork.from_seq for fork in forks) == sorted(1 + number % 18 for number in range(branches))
    assert len({found.logs[call] for call in client.calls[20:]}) == branches
    assert _size(world.log_dir) - before < 1.5 * sent + branches * 4096


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and ".db" not in path.name)
