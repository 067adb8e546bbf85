"""What `session_end` says was billed: every response once, whatever became of its exchange."""

from pathlib import Path
from typing import Any

from agent_logger import SessionLogger
from agent_logger.logs.log_records import read_log
from agent_logger.logs.reader import read_session
from agent_logger.model.records import SessionEnd, Tokens
from tests.recording.sdk_fixtures import CLI, SDK, lines, objects

ID = "1f320356-a178-418e-a692-69ce6e1e657c"
INIT = {"type": "system", "subtype": "init", "session_id": ID, "model": "claude-haiku-4-5", "cwd": "/x"}


def said(number: int, given: int, output: int, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": given, "output_tokens": output}
    content = [{"type": "text", "text": f"answer {number}"}]
    inner = {"id": f"msg_01{number:022d}", "model": "claude-haiku-4-5", "content": content, "usage": usage}
    return {"type": "assistant", "session_id": ID, "message": inner | more}


def result(given: int, output: int) -> dict[str, Any]:
    counted = {"inputTokens": given, "outputTokens": output, "costUSD": 0.1}
    usage = {"input_tokens": given, "output_tokens": output}
    return {
        "type": "result", "subtype": "success", "is_error": False, "session_id": ID, "total_cost_usd": 0.1,
        "usage": usage, "modelUsage": {"claude-haiku-4-5": counted},
    }  # fmt: skip


def billed(logger: SessionLogger) -> Tokens | None:
    assert logger.path
    found = [item.value for item in read_log(logger.path.parent, logger.path.stem)]
    return [it.billed_tokens for it in found if isinstance(it, SessionEnd)][-1]


def test_billed_tokens_include_an_exchange_without_a_result(tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as logger:
        logger.log_user_input("one")
        logger.log(INIT)
        logger.log(said(1, 100, 10))
        logger.log(said(1, 100, 10))  # the same response, its next block
        logger.log_user_input("two")
        logger.log(INIT)
        logger.log(said(2, 1000, 20))
        logger.log(result(1000, 20))
    assert billed(logger) == Tokens(input=1100, output=30, cache_creation=0, cache_read=0)
    assert logger.path
    assert read_session(logger.path).usage.input_tokens == 1100


def test_billed_tokens_use_the_final_usage_of_stream_events(tmp_path: Path) -> None:
    events = [
        {"type": "message_start", "message": {"id": "msg_01" + "0" * 21 + "1"}},
        {"type": "message_delta", "usage": {"output_tokens": 70}, "delta": {"stop_reason": "end_turn"}},
    ]
    with SessionLogger(tmp_path) as logger:
        logger.log(INIT)
        logger.log({"type": "stream_event", "session_id": ID, "event": events[0]})
        logger.log(said(1, 100, 1))
        logger.log({"type": "stream_event", "session_id": ID, "event": events[1]})
    assert billed(logger) == Tokens(input=100, output=70, cache_creation=0, cache_read=0)


def test_an_sdk_log_adds_up_to_the_usage_of_its_results(tmp_path: Path) -> None:
    """With sub-agents, whose last answers the SDK does not pass on."""
    with SessionLogger(tmp_path) as logger:
        for _, message in objects(SDK / "client_subagents" / "subagent.jsonl"):
            logger.log(message)
    assert logger.path
    session = read_session(logger.path)
    usage = session.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (
        15, 295, 3410, 3520,
    )  # fmt: skip
    assert session.cost.usd == 0.024242
    [rest] = session.not_itemised
    assert (rest.model, rest.exchange) == ("claude-opus-5-5", 1)
    assert all(turn.message_id for turn in session.turns)


def test_the_output_of_every_run_adds_up_to_the_usage_of_its_results(tmp_path: Path) -> None:
    for number, path in enumerate(sorted(CLI.glob("2.1.325/*/*stream*.stdout"))):
        with SessionLogger(tmp_path / str(number)) as logger:
            for line in lines(path):
                logger.log(line)
        assert logger.path
        told, end = read_session(logger.path).usage, billed(logger)
        if end:
            assert (told.input_tokens, told.output_tokens) == (end.input, end.output), path
            assert (told.cache_read_tokens, told.cache_write_tokens) == (end.cache_read, end.cache_creation)
