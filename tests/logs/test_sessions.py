"""`read_session`: a log of ours, wherever its records lie, is one session."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

import agent_logger
from agent_logger.errors import SourceError
from agent_logger.files.parts import PartFile
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from agent_logger.logs.branches import read_branch
from agent_logger.logs.reader import read_session
from agent_logger.logs.wire_log import session as wire_log
from agent_logger.model.records import Record, Request, Response
from agent_logger.model.session import Session
from tests.journal.logs import exchange
from tests.journal.wire_logs import CHAIN, calls, fork, own, start, write
from tests.logs.wire_log.wire_records import request, talk


def inputs(session: Session) -> list[str | None]:
    return [it.user_input for it in session.exchanges]


def test_read_session_reads_a_wire_log(tmp_path: Path) -> None:
    path = write(tmp_path, "log", CHAIN.records())
    assert read_session(path) == wire_log.session_of(CHAIN.records())
    assert agent_logger.read_session is read_session


def test_a_sealed_log_in_several_parts_is_the_same_session(tmp_path: Path) -> None:
    whole = read_session(write(tmp_path / "whole", "log", CHAIN.records()))
    records = CHAIN.records()
    write(tmp_path, "log", records[:4])
    assert seal(PartFile(tmp_path, "log"))
    write(tmp_path, "log", records[4:])
    assert (tmp_path / "log.p2.jsonl").exists()
    for name in ("log.jsonl", "log.jsonl.zst", "log.p2.jsonl"):
        assert read_session(tmp_path / name) == whole


def test_damaged_and_torn_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, "log", CHAIN.records())
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], b"\0\0\0", *lines[3:-1], b'{"type":"requ']))
    assert inputs(read_session(path)) == ["Remember BANANA", "What was it?", "Again?"]


def test_read_session_reads_an_exchange_log(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    journal.append(exchange("e1", "roses"))
    journal.close()
    assert inputs(read_session(tmp_path / "log.jsonl")) == ["do it"]


@pytest.mark.parametrize("name", ["gone.jsonl", "notes.txt", "other.jsonl"])
def test_read_session_rejects_missing_and_foreign_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "other.jsonl").write_text('{"type":"user"}\n')
    with pytest.raises(SourceError):
        read_session(tmp_path / name)


# ---------------------------------------------------------------- branches


def test_a_branch_includes_the_shared_history_of_its_parent(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1, 2)])
    branch = write(tmp_path, "log_b1", own("log_b1", "log", 1, 3))
    session = read_session(branch)
    assert inputs(session) == ["Remember BANANA", "Again?"]
    assert (session.id, session.parent) == ("log_b1", "log")
    assert session.usage.output_tokens == 20 + 60


def test_a_nested_branch_includes_the_history_of_all_ancestors(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1)])
    write(tmp_path, "log_b1", own("log_b1", "log", 1, 2, 3))
    branch = write(tmp_path, "log_b2", own("log_b2", "log_b1", 1, 3))
    assert inputs(read_session(branch)) == ["Remember BANANA", "What was it?", "Again?"]
    numbers = [it.seq for it in read_branch(tmp_path, "log_b2") if isinstance(it, Request | Response)]
    assert numbers == [1, 1, 2, 2, 3, 3]


def test_retries_in_a_branch_are_linked_after_renumbering(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1, 2)])
    tries = list(talk("disconnect_midstream").called())
    branch = write(tmp_path, "log_b1", [start("log_b1"), fork("log", 2), *tries])
    session = read_session(branch)
    last = session.exchanges[-1]
    assert ([it.complete for it in last.turns], last.complete) == ([False, True], True)


def test_calls_of_the_parent_after_the_fork_are_not_in_the_branch(tmp_path: Path) -> None:
    """Also when it was begun before the last shared answer came."""
    first, answer, second, last = calls(1, 2)
    write(tmp_path, "log", [start("log"), first, second, answer, last])
    branch = write(tmp_path, "log_b1", own("log_b1", "log", 1, 3))
    assert inputs(read_session(branch)) == ["Remember BANANA", "Again?"]


def test_late_responses_to_shared_requests_are_in_the_branch(tmp_path: Path) -> None:
    first, answer, second, last = calls(1, 2)
    write(tmp_path, "log", [start("log"), first, second, last, answer])
    branch = write(tmp_path, "log_b1", own("log_b1", "log", 2, 3))
    assert [len(it.turns) for it in read_session(branch).exchanges] == [1, 1, 1]


def test_a_branch_with_a_missing_parent_has_only_its_own_calls(tmp_path: Path) -> None:
    branch = write(tmp_path, "log_b1", own("log_b1", "log", 1, 3))
    session = read_session(branch)
    assert (inputs(session), session.parent) == (["Again?"], "log")


def test_a_branch_that_shares_no_calls_includes_no_parent_history(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1)])
    write(tmp_path, "log_b1", own("log_b1", "log", 1, 2))
    assert inputs(read_session(write(tmp_path, "log_b2", own("log_b2", "log_b1", 0, 3)))) == ["Again?"]


def test_side_calls_may_precede_the_fork_record(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1)])
    title = replace(request(CHAIN.calls[0], 1), thread="side", kind="side")
    later = [replace(it, seq=2) for it in calls(3) if isinstance(it, Request | Response)]
    branch = write(tmp_path, "log_b1", [start("log_b1"), title, fork("log", 1), *later])
    assert inputs(read_session(branch)) == ["Remember BANANA", "Again?"]


@pytest.mark.parametrize("parent", ["log_b1", "../log", "/etc/passwd", "log_b2"])
def test_cyclic_and_outside_parents_are_not_followed(tmp_path: Path, parent: str) -> None:
    write(tmp_path, "log", [start("log"), *calls(1)])
    write(tmp_path / "in", "log_b2", own("log_b2", "log_b1", 1, 2))
    branch = write(tmp_path / "in", "log_b1", own("log_b1", parent, 1, 3))
    shown = inputs(read_session(branch))
    assert shown == (["What was it?", "Again?"] if parent == "log_b2" else ["Again?"])


def test_a_chain_of_sixty_branches_is_read(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1)])
    for number in range(1, 60):
        parent = f"log_b{number - 1}" if number > 1 else "log"
        branch = write(tmp_path, f"log_b{number}", own(f"log_b{number}", parent, 1, 3))
    assert len(read_session(branch).exchanges) == 60


def test_a_log_that_contains_its_parent_records_is_read_as_complete(tmp_path: Path) -> None:
    """Even where a log of the parent's name is there."""
    write(tmp_path, "log", [start("log"), *calls(1, 2)])
    write(tmp_path, "log_b1", own("log_b1", "log", 2, 3))
    joined = [it for it in read_branch(tmp_path, "log_b1") if isinstance(it, Record)]
    copy = write(tmp_path, "copy", [replace(it, log=None, part=None) for it in joined])
    assert read_session(copy) == read_session(tmp_path / "log_b1.jsonl")
    assert [json.loads(line)["type"] for line in copy.read_bytes().splitlines()] == [
        *["session_start", *["request", "response"] * 2],
        *["session_start", "fork", "request", "response"],
    ]
