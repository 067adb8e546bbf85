"""Runs of real clients that reached their turn limit, played again from what they printed."""

import json
from pathlib import Path

import pytest

from agent_logger import Failure
from agent_logger.catalog.joining.join import join
from agent_logger.logs.reader import read_session
from agent_logger.model.session import Exchange, Session, Turn
from agent_logger.views.outline import chapters
from tests.recording.run import run
from tests.recording.sdk_fixtures import CLI, DATA

OUTPUTS = [
    *sorted(DATA.glob("printed/claude-cli/*/max_turns_*.stdout")),
    *sorted(CLI.glob("2.1.325/limits/[js]*.stdout")),
]


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda it: "/".join(it.parts[-2:]))
def test_a_run_that_reached_its_turn_limit_failed(output: Path, tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\ncat {output}\n")
    program.chmod(0o755)
    extra = ["--output-format", "json"] if output.stem.endswith("json") else []
    found = run("a b", executable=str(program), sessions_dir=tmp_path / "s", extra_args=extra)
    assert (found.success, found.failure, found.data) == (False, Failure.MAX_TURNS, None)
    assert found.metadata.is_max_turns
    assert found.error
    assert found.metadata.log
    log = Path(found.metadata.log)
    [stats] = [line["stats"] for line in map(json.loads, log.read_text().splitlines()) if line["type"] == "exchange"]
    assert stats["is_error"] is True
    session = read_session(log)
    [exchange] = session.exchanges
    assert (exchange.complete, exchange.end_reason) == (False, "max_turns")
    [chapter] = chapters(session)
    assert chapter.remarks[0] == "incomplete (max_turns)"


def test_a_turn_limit_known_only_from_the_result_is_in_the_joined_session() -> None:
    def told(witness: str, *, complete: bool, reason: str) -> Session:
        turn = Turn(message_id="msg_01abcdefghijklmnopqrstuv", witnesses=frozenset({witness}))  # type: ignore[arg-type]
        exchange = Exchange(number=1, turns=[turn], complete=complete, end_reason=reason)
        return Session(id="s", exchanges=[exchange])

    file, run_log = (
        told("transcript", complete=True, reason="result"),
        told("run", complete=False, reason="max_turns"),
    )
    [exchange] = join([file, run_log]).exchanges
    assert (exchange.complete, exchange.end_reason) == (False, "max_turns")
