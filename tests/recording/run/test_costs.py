"""What a run and its conversation cost, over runs that go on with each other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.recording.run import run
from tests.recording.sdk_fixtures import CLI

ID = "1f320356-a178-418e-a692-69ce6e1e657c"


def playing(folder: Path, text: str) -> str:
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text.rstrip()}\nEND\n")
    program.chmod(0o755)
    return str(program)


def test_the_conversation_cost_accumulates_over_runs_with_new_session_ids(tmp_path: Path) -> None:
    """Claude Code 1.0.3 tells what each run cost, and never goes on under the same id."""
    resume, totals = None, []
    for number in (1, 2, 3):
        output = (CLI / f"1.0.3/resume_chain/0{number}.stdout").read_text()
        extra = ["--output-format", "json"]
        program = playing(tmp_path, output)
        found = run("a b", resume=resume, executable=program, sessions_dir=tmp_path / "s", extra_args=extra).metadata
        resume = found.session_id
        totals.append((found.cost, found.total_cost))
    assert totals == [(0.001005, 0.001005), (0.00201, 0.003015), (0.003015, 0.00603)]
    first = sorted((tmp_path / "s").glob("*.jsonl"))[0]
    first.unlink()
    program = playing(tmp_path, (CLI / "1.0.3/resume_chain/04.stdout").read_text())
    found = run("a b", resume=resume, executable=program, sessions_dir=tmp_path / "s", extra_args=extra).metadata
    assert (found.cost, found.total_cost) == (0.00402, None)  # a part is not the whole


def result(**more: Any) -> str:
    return json.dumps({"type": "result", "subtype": "success", "is_error": False, "session_id": ID, **more})


@pytest.mark.parametrize("resume", [None, ID])
def test_reported_run_cost_and_session_cost_are_both_used(resume: str | None, tmp_path: Path) -> None:
    program = playing(tmp_path, result(cost_usd=0.05, total_cost=0.12))
    found = run("a b", resume=resume, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (found.cost, found.total_cost, found.total_cost_from) == (0.05, 0.12, "reported")


MODELS = {"claude-opus-5-5": {"inputTokens": 30, "outputTokens": 60, "costUSD": 0.3, "costBasis": "list"}}
MORE = {"claude-opus-5-5": {"inputTokens": 90, "outputTokens": 180, "costUSD": 0.9, "costBasis": "list"}}


def test_a_continued_run_names_the_session_with_a_log_in_the_folder(tmp_path: Path) -> None:
    program = playing(tmp_path, result(total_cost_usd=0.3, modelUsage=MODELS))
    first = run("a b", executable=program, sessions_dir=tmp_path / "s").metadata
    again = run("a b", continue_=True, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (first.resumed_from, again.resumed_from) == (None, ID)


def test_a_continued_run_names_the_session_whose_counters_continue(tmp_path: Path) -> None:
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


def test_a_continued_run_with_a_new_session_id_names_no_resumed_session(tmp_path: Path) -> None:
    program = playing(tmp_path, (CLI / "1.0.3/resume_chain/02.stdout").read_text())
    found = run("a b", continue_=True, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (found.resumed_from, found.cost, found.total_cost) == (None, 0.00201, None)


def test_the_cost_of_a_continued_session_includes_a_first_run_that_printed_only_its_result(tmp_path: Path) -> None:
    """The counters by model exceed the usage of the main thread. In a run that began the session they are its own."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    models = {"claude-x": {"inputTokens": 30, "outputTokens": 60, "costUSD": 0.3, "costBasis": "list"}}
    program = playing(tmp_path, result(total_cost_usd=0.3, usage=usage, modelUsage=models))
    assert run("a b", executable=program, sessions_dir=tmp_path / "s").metadata.cost == 0.3
    models = {"claude-x": {"inputTokens": 40, "outputTokens": 65, "costUSD": 0.4, "costBasis": "list"}}
    program = playing(tmp_path, result(total_cost_usd=0.4, usage=usage, modelUsage=models))
    again = run("a b", resume=ID, executable=program, sessions_dir=tmp_path / "s").metadata
    assert (again.cost, again.total_cost) == (0.1, 0.4)
