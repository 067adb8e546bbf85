"""Exchanges of which only the sum is known count by it, and never beside what knows the responses."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_logger import SessionLogger
from agent_logger.catalog.catalog import Catalog
from agent_logger.home.facts import register_log_folder
from agent_logger.logs.reader import read_session
from agent_logger.model.prices import price
from agent_logger.model.session import Session, Usage

ID = "7b320356-a178-418e-a692-69ce6e1e657c"
MESSAGE = "msg_01abcdefghijklmnopqrstuv"
TOLD = {
    "input_tokens": 9,
    "output_tokens": 40,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 2,
}
SUM = Usage(input_tokens=9, output_tokens=40, cache_read_tokens=5, cache_write_tokens=2)
INIT = {"type": "system", "subtype": "init", "session_id": ID, "model": "claude-haiku-4-5", "cwd": "/p"}


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "session_id": ID, "message": {"content": content, **more}}


def result(**more: Any) -> dict[str, Any]:
    return {"type": "result", "session_id": ID, "is_error": False, "result": "Done.", "usage": TOLD, **more}


def by_model(**models: tuple[int, int, int, int]) -> dict[str, Any]:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return {it.replace("_", "-"): dict(zip(names, told, strict=True)) for it, told in models.items()}


def logged(folder: Path, *messages: dict[str, Any]) -> Session:
    logger = SessionLogger(folder)
    for message in (INIT, *messages):
        logger.log(message)
    logger.close()
    assert logger.path
    return read_session(logger.path)


def test_responses_without_usage_are_counted_by_the_result(tmp_path: Path) -> None:
    session = logged(tmp_path, said("I look."), said("Done."), result())
    assert session.usage == SUM
    assert [(it.usage, it.is_sum) for it in session.turns] == [(None, False), (SUM, True)]
    assert session.cost.nano_usd


def test_a_sum_over_several_requests_costs_the_same_whatever_its_size(tmp_path: Path) -> None:
    """Long requests cost more, but how long each was is not known, and the ledger does not guess either."""
    model = "claude-sonnet-4-5"
    small, large = 100_000, 900_000
    requests = [price(Usage(input_tokens=tokens), model).nano_usd or 0 for tokens in (small, large)]
    assert requests[0] * 9 < requests[1]
    costs = []
    for tokens in (small, large):
        told = result(modelUsage={model: {"inputTokens": tokens}}, usage={"input_tokens": tokens})
        costs.append(logged(tmp_path / str(tokens), said("I look."), said("Done."), told).cost.nano_usd or 0)
    assert costs[0] * 9 == costs[1]


def test_a_result_alone_forms_a_turn_and_other_models_become_side_turns(tmp_path: Path) -> None:
    told = by_model(claude_haiku_4_5=(9, 40, 5, 2), claude_opus_5=(3, 1, 0, 0))
    session = logged(tmp_path, result(modelUsage=told))
    assert [(it.model, it.thread, it.usage) for it in session.turns] == [
        ("claude-haiku-4-5", "main", SUM),
        ("claude-opus-5", "side", Usage(input_tokens=3, output_tokens=1)),
    ]


def test_responses_with_usage_are_not_counted_again_in_a_sum_turn(tmp_path: Path) -> None:
    begun = said("Done.", id=MESSAGE, model="claude-haiku-4-5", usage={**TOLD, "output_tokens": 1})
    [turn] = logged(tmp_path, begun, result(modelUsage=by_model(claude_haiku_4_5=(9, 40, 5, 2)))).turns
    assert (turn.message_id, turn.is_sum) == (MESSAGE, False)


def test_a_sum_turn_does_not_count_when_the_agent_transcript_exists(home: Path) -> None:
    ours = home / ".agent-logger"
    register_log_folder(ours, home / "s")
    logged(home / "s", said("Done."), result())
    with Catalog.open(ours) as catalog:
        [alone] = catalog.sessions()
        assert (alone.id, alone.turns, alone.usage) == (ID, 1, SUM)
        path = home / ".claude" / "projects" / "-p" / f"{ID}.jsonl"
        path.parent.mkdir(parents=True)
        head = {"sessionId": ID, "cwd": "/p", "timestamp": datetime.now(UTC).isoformat(), "uuid": "u"}
        message: dict[str, Any] = {
            "id": MESSAGE,
            "model": "claude-haiku-4-5",
            "usage": {**TOLD, "output_tokens": 39},
        }
        message |= {
            "role": "assistant",
            "content": [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn",
        }
        path.write_text(json.dumps({"type": "assistant", **head, "message": message}) + "\n")
        catalog.refresh()
        [both] = catalog.sessions()
        whole = catalog.session(ID)
        assert catalog.total().responses == 1
    assert both.usage.output_tokens == 39
    assert whole and whole.usage.output_tokens == 39
