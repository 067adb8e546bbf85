"""What a run and its conversation cost, over runs that go on with each other."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_logger import run
from tests.recording.sdk_fixtures import CLI

ID = "1f320356-a178-418e-a692-69ce6e1e657c"


def playing(folder: Path, text: str) -> str:
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text.rstrip()}\nEND\n")
    program.chmod(0o755)
    return str(program)


def test_the_cost_of_a_conversation_follows_sessions_that_get_a_new_id_each_time(tmp_path: Path) -> None:
    """Claude Code 1.0.3 tells what each run cost, and never goes on under the same id."""
    resume, totals = None, []
    for number in (1, 2, 3):
        output = (CLI / f"1.0.3/resume_chain/0{number}.stdout").read_text()
        extra = ["--output-format", "json"]
        program = playing(tmp_path, output)
        found = run(
            "a b", resume=resume, executable=program, sessions_dir=tmp_path / "s", extra_args=extra
        ).metadata
        resume = found.session_id
        totals.append((found.cost, found.total_cost))
    assert totals == [(0.001005, 0.001005), (0.00201, 0.003015), (0.003015, 0.00603)]
    first = sorted((tmp_path / "s").glob("*.jsonl"))[0]
    first.unlink()
    program = playing(tmp_path, (CLI / "1.0.3/resume_chain/04.stdout").read_text())
    found = run(
        "a b", resume=resume, executable=program, sessions_dir=tmp_path / "s", extra_args=extra
    ).metadata
    assert (found.cost, found.total_cost) == (0.00402, None)  # a part is not the whole


def result(**more: Any) -> str:
    return json.dumps({"type": "result", "subtype": "success", "is_error": False, "session_id": ID, **more})


@pytest.mark.parametrize("resume", [None, ID])
def test_a_run_that_tells_its_own_cost_and_the_sessions_is_believed_in_both(
    resume: str | None, tmp_path: Path
) -> None:
    program = playing(tmp_path, result(cost_usd=0.05, total_cost=0.12))
    found = run("a b", resume=resume, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (found.cost, found.total_cost, found.total_cost_from) == (0.05, 0.12, "reported")


MODELS = {"claude-opus-5-5": {"inputTokens": 30, "outputTokens": 60, "costUSD": 0.3, "costBasis": "list"}}
MORE = {"claude-opus-5-5": {"inputTokens": 90, "outputTokens": 180, "costUSD": 0.9, "costBasis": "list"}}


def test_a_run_that_continues_names_the_session_whose_log_is_here(tmp_path: Path) -> None:
    program = playing(tmp_path, result(total_cost_usd=0.3, modelUsage=MODELS))
    first = run("a b", executable=program, sessions_dir=tmp_path / "s").metadata
    again = run("a b", continue_=True, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (first.resumed_from, again.resumed_from) == (None, ID)


def test_a_run_that_continues_names_the_session_whose_client_counts_on(tmp_path: Path) -> None:
    told = result(total_cost_usd=0.9, modelUsage=MORE, model_usage_since_last_result=MODELS)
    program = playing(tmp_path, told)
    options: list[tuple[dict[str, Any], str | None]] = [
        ({"continue_": True}, ID),
        ({"continue_": True, "record": False}, ID),
        ({"continue_": True, "fork": True}, None),
        ({}, None),
    ]
    for number, (given, resumed) in enumerate(options):
        found = run("a b", executable=program, sessions_dir=tmp_path / str(number), **given).metadata
        assert (found.resumed_from, found.cost) == (resumed, 0.3)


def test_a_run_that_continues_under_a_new_id_does_not_guess(tmp_path: Path) -> None:
    program = playing(tmp_path, (CLI / "1.0.3/resume_chain/02.stdout").read_text())
    found = run("a b", continue_=True, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (found.resumed_from, found.cost, found.total_cost) == (None, 0.00201, None)
