"""What OpenClaw prints under `run`."""

import json

from agent_logger.messages.sdk import Result
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA

RECORDED = DATA / "openclaw/2026.9.6"


def printed(data: bytes) -> tuple[str | None, Result]:
    output = RunOutput("openclaw")
    [message] = [message for message in [*output.feed(data), *output.end()] if message.result]
    assert message.result
    return message.session_id, message.result


def test_a_printed_object_has_the_answer_the_session_its_tokens_and_its_cost() -> None:
    data = (RECORDED / "tools/01.stdout").read_bytes()
    assert agent_printing(data) == "openclaw"
    session, result = printed(data)
    assert session == "cfac7f99-557b-45d5-bd56-8a2b40c351f6"
    assert (result.is_error, result.result, result.num_turns) == (False, "Two files; missing.txt is not there.", 3)
    assert result.usage and (result.usage.input_tokens, result.usage.cache_read_input_tokens) == (1973, 8448)
    assert result.total_cost_usd == 0.0038178


def test_the_gateway_prints_the_same_object_in_another() -> None:
    inner = json.loads((RECORDED / "tools/02.stdout").read_bytes())
    data = json.dumps({"runId": "1", "status": "ok", "result": inner}).encode()
    assert agent_printing(data) == "openclaw"
    assert printed(data)[1].result == "The function is greet."


def test_a_printed_error_is_a_failed_result() -> None:
    _, result = printed((RECORDED / "failures/03.stdout").read_bytes())
    assert result.is_error
    assert result.errors and result.errors[0].startswith("LLM request failed")
