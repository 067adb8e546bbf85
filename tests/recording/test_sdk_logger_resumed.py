"""What an exchange cost where the session has a history that this folder does not hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_logger import SessionLogger
from agent_logger.logs.log_records import read_log
from agent_logger.logs.reader import read_session
from agent_logger.model.records import ExchangeRecord, ExchangeStats
from tests.recording.run import run

ID = "1f320356-a178-418e-a692-69ce6e1e657c"
OPUS, HAIKU = "claude-opus-5-5", "claude-haiku-4-5"
Line = dict[str, Any]


def init(session: str = ID) -> Line:
    return {
        "type": "system",
        "subtype": "init",
        "session_id": session,
        "model": OPUS,
        "cwd": "/x",
        "tools": [],
    }


def said(number: int, block: Line | None = None, *, model: str = OPUS, parent: str | None = None) -> Line:
    inner = {
        "id": f"msg_01{number:022d}",
        "model": model,
        "content": [block or {"type": "text", "text": f"answer {number}"}],
        "usage": {"input_tokens": 30, "output_tokens": 1},
    }
    return {"type": "assistant", "session_id": ID, "parent_tool_use_id": parent, "message": inner}


def counted(given: int, output: int, cost: float, **more: Any) -> Line:
    return {"inputTokens": given, "outputTokens": output, "costUSD": cost, "costBasis": "list", **more}


def result(models: dict[str, Line], *, given: int = 30, output: int = 60, session: str = ID) -> Line:
    return {
        "type": "result", "subtype": "success", "is_error": False, "session_id": session, "num_turns": 1,
        "total_cost_usd": sum(it["costUSD"] for it in models.values()),
        "usage": {"input_tokens": given, "output_tokens": output}, "modelUsage": models,
    }  # fmt: skip


HISTORY = {OPUS: counted(60_000, 90_000, 5.0)}


def logged(folder: Path, *lines: Line, resumed_from: str | None = None) -> list[ExchangeStats]:
    with SessionLogger(folder, resumed_from=resumed_from) as logger:
        logger.log_user_input("go on")
        for line in lines:
            logger.log(line)
    assert logger.path
    found = [item.value for item in read_log(folder, logger.path.stem)]
    return [it.stats for it in found if isinstance(it, ExchangeRecord) and it.stats]


@pytest.mark.parametrize("resumed_from", [ID, None, "2a320356-a178-418e-a692-69ce6e1e657c"])
def test_a_resumed_session_without_its_log_is_not_charged_for_its_history(
    resumed_from: str | None, tmp_path: Path
) -> None:
    [stats] = logged(tmp_path, init(), said(1), result(HISTORY), resumed_from=resumed_from)
    assert (stats.cost_usd, stats.cost_from, stats.inherited) == (None, None, True)
    assert stats.reported_total_cost_usd == 5.0
    [path] = tmp_path.glob("*.jsonl")
    assert read_session(path).usage.output_tokens == 60


def test_from_the_second_result_on_the_cost_is_the_difference(tmp_path: Path) -> None:
    later = {OPUS: counted(60_030, 90_060, 5.5)}
    first, second = logged(tmp_path, init(), said(1), result(HISTORY), init(), said(2), result(later))
    assert first.inherited
    assert (second.cost_usd, second.cost_from) == (0.5, "difference")
    [path] = tmp_path.glob("*.jsonl")
    assert read_session(path).usage.output_tokens == 120


AGENT = {"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "Agent", "input": {}}
COMPACTED = {"type": "system", "subtype": "compact_boundary", "session_id": ID, "compact_metadata": {}}
OWN = [
    pytest.param([said(1)], {OPUS: counted(30, 60, 1.0)}, id="usage says the same"),
    pytest.param([said(1), said(2, parent="toolu_0123456789abcdef")], HISTORY, id="a sub-agent's message"),
    pytest.param([said(1, AGENT)], HISTORY, id="a tool call that starts a sub-agent"),
    pytest.param([said(1)], {OPUS: counted(30, 60, 1.0), HAIKU: counted(9, 9, 0.1)}, id="a title by another model"),
    pytest.param([], {OPUS: counted(30, 60, 1.0), HAIKU: counted(9, 9, 0.1)}, id="another model, in a result alone"),
    pytest.param([said(1), COMPACTED, said(2)], HISTORY, id="a compaction"),
    pytest.param([said(1), said(2)], {OPUS: counted(60, 120, 1.0)}, id="usage lacks the last response"),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "models"), OWN)
def test_counters_explained_by_the_exchange_are_its_own_cost(
    messages: list[Line], models: dict[str, Line], tmp_path: Path
) -> None:
    [stats] = logged(tmp_path, init(), *messages, result(models))
    assert (stats.cost_usd, stats.cost_from, stats.inherited) == (
        sum(it["costUSD"] for it in models.values()),
        "own",
        False,
    )


UNEXPLAINED = [
    pytest.param([said(1)], {**HISTORY, HAIKU: counted(9, 9, 0.1)}, id="a title explains itself alone"),
    pytest.param([COMPACTED], HISTORY, id="only a history can be compacted before anything was said"),
    pytest.param([], HISTORY, id="a result alone"),
]


@pytest.mark.parametrize(("messages", "models"), UNEXPLAINED)
def test_unexplained_counters_are_marked_as_inherited(
    messages: list[Line], models: dict[str, Line], tmp_path: Path
) -> None:
    [stats] = logged(tmp_path, init(), *messages, result(models))
    assert (stats.cost_usd, stats.inherited) == (None, True)


def test_sub_agent_use_does_not_explain_the_counters_of_a_resumed_session(tmp_path: Path) -> None:
    [stats] = logged(tmp_path, init(), said(1, AGENT), result(HISTORY), resumed_from=ID)
    assert (stats.cost_usd, stats.inherited) == (None, True)


def printing(folder: Path, *lines: Line) -> str:
    program = folder / "claude"
    text = "\n".join(json.dumps(line) for line in lines)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    return str(program)


def test_a_resuming_run_is_not_charged_for_the_history(tmp_path: Path) -> None:
    program = printing(tmp_path, init(), said(1), result(HISTORY))
    ways: list[dict[str, Any]] = [
        {"resume": ID},
        {"continue_": True},
        {"extra_args": ["--resume", ID]},
        {"record": False, "resume": ID},
    ]
    for number, options in enumerate(ways):
        found = run("go on", executable=program, sessions_dir=tmp_path / str(number), **options).metadata
        assert (found.cost, found.cost_from) == (None, None), options
        assert found.total_cost == 5.0, options


def test_a_new_run_with_only_a_result_has_the_full_cost(tmp_path: Path) -> None:
    program = printing(tmp_path, result(HISTORY))
    found = run("go on", executable=program, sessions_dir=tmp_path, extra_args=["--output-format", "json"])
    assert (found.metadata.cost, found.metadata.cost_from) == (5.0, "own")
    assert found.metadata.log
    assert read_session(Path(found.metadata.log)).usage.output_tokens == 90_000


def test_an_older_log_that_charged_the_history_is_read_without_the_history(tmp_path: Path) -> None:
    logged(tmp_path, init(), said(1), result(HISTORY))
    [path] = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["type"] == "exchange":
            line["stats"] |= {
                "cost_usd": 5.0, "cost_from": "own", "inherited": False, "model_usage": HISTORY,
            }  # fmt: skip
        if line["type"] == "session_end":
            line["total_cost_usd"] = 5.0
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = read_session(path)
    assert (session.usage.output_tokens, session.reported_cost_usd) == (60, None)
    later = {OPUS: counted(60_030, 90_060, 5.5)}
    stats = logged(tmp_path, init(), said(2), result(later))[-1]
    assert (stats.cost_usd, stats.cost_from) == (0.5, "difference")
    assert '"total_cost_usd":0.5' in path.read_text()
