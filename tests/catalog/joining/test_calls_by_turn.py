"""Calls stand under the turn that they were made for."""

from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from agent_logger.catalog.joining.calls import WireCall, calls_of
from agent_logger.catalog.joining.calls_by_turn import calls_by_turn
from agent_logger.catalog.joining.join import join
from agent_logger.logs.reader import read_session
from agent_logger.model.session import SIDE, Session
from tests.agents.claude_code.claude_files import Fixture, fixture, fixtures
from tests.catalog.witnesses import timed, told
from tests.journal.wire_logs import calls, start, write
from tests.logs.wire_log.wire_records import talks, ts


def of(it: Fixture, folder: Path) -> list[tuple[Session, list[WireCall]]]:
    found = []
    sessions = told(it, folder / "sdk")
    for number, spoken in enumerate(talks()):
        if spoken.name == it.name and spoken.client_id:
            log = write(folder, f"log-{number}", timed(spoken))
            found.append((join(sessions[spoken.client_id]), calls_of([log])))
    return found


@pytest.mark.parametrize("recorded", fixtures(), ids=lambda it: it.name)
def test_every_call_belongs_to_exactly_one_turn(recorded: Fixture, tmp_path: Path) -> None:
    for session, made in of(recorded, tmp_path):
        under = calls_by_turn(session, made)
        assert sorted(it.seq for them in under.values() for it in them) == [it.seq for it in made]
        for at, turn in enumerate(session.turns):
            if "wire" in turn.witnesses and turn.thread != SIDE:
                assert turn.message_id in {it.message_id for it in under[at]}


def test_failed_attempts_belong_to_the_turn_of_the_successful_retry(tmp_path: Path) -> None:
    [(session, made)] = of(fixture("claude-cli/2.1.325/retry_then_ok"), tmp_path)
    under = calls_by_turn(session, made)
    [turn] = [at for at, it in enumerate(session.turns) if it.complete]
    assert [it.status for it in under[turn]] == [it.status for it in made]
    assert {it.status for it in made} > {200}
    assert under[turn][-1].message_id == session.turns[turn].message_id


def test_a_failed_attempt_does_not_belong_to_the_previous_turn(tmp_path: Path) -> None:
    first, answer, second, last = calls(1, 2)
    failed = replace(
        last, status=529, request_id=None, message=UNSET, message_id=None, usage=UNSET, chunks=None, body="{}"
    )
    again = [replace(second, seq=3, retry_of=2, ts=ts(3)), replace(last, seq=3, ts=ts(3.5))]
    log = write(tmp_path, "log", [start("log"), first, answer, second, failed, *again])
    session, found = read_session(log), calls_of([log])
    under = calls_by_turn(session, found)
    assert {at: [it.seq for it in them] for at, them in under.items()} == {0: [1], 1: [2, 3]}


def test_a_side_call_belongs_to_the_turn_at_its_time(tmp_path: Path) -> None:
    found = [it for it in of(fixture("claude-cli/2.1.325/interactive_tui"), tmp_path) if it[0].exchanges]
    [(session, made)] = found
    under = calls_by_turn(session, made)
    [title] = [it for it in made if it.thread == SIDE]
    assert title in under[0]
    assert session.turns[0].thread != SIDE


def test_calls_of_a_session_without_turns_have_no_turn(tmp_path: Path) -> None:
    [(session, made)] = of(fixture("claude-cli/2.1.325/api_error_400"), tmp_path)
    under = calls_by_turn(Session(id="s"), made)
    assert list(under) == [None]
    assert session.turns
    assert None not in calls_by_turn(session, made)
