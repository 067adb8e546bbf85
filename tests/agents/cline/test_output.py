"""What `cline --json` prints."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.cline.output import ClineOutput
from agent_logger.messages.sdk import SdkBlock, SdkMessage
from tests.agents.foreign import DATA

RECORDED = DATA / "cline/3.0.65"


def messages_in(path: Path) -> list[SdkMessage]:
    reader = ClineOutput()
    return [message for line in path.read_bytes().split(b"\n") if line for message in reader.read(line)]


@pytest.mark.parametrize("name", ["tools/02", "subagent/01", "parallel/01", "errors/01", "errors/02"])
def test_the_first_line_identifies_the_output(name: str) -> None:
    first = (RECORDED / f"{name}.stdout").read_bytes().split(b"\n", 1)[0]
    assert ClineOutput.recognises(json.loads(first))


def test_a_run_has_one_result_with_the_tokens_of_its_calls() -> None:
    [result] = [message.result for message in messages_in(RECORDED / "tools/02.stdout") if message.result]
    assert (result.is_error, result.result, result.num_turns) == (False, "Two files; missing.txt is not there.", 3)
    assert result.usage
    assert (result.usage.input_tokens, result.usage.output_tokens) == (5846 - 4608, 387)
    assert result.usage.cache_read_input_tokens == 4608
    assert result.total_cost_usd is None  # 0 stands for an unknown price


def test_the_result_of_a_run_leaves_out_its_sub_agents() -> None:
    [result] = [message.result for message in messages_in(RECORDED / "subagent/01.stdout") if message.result]
    assert result.usage
    assert result.usage.output_tokens == 61 + 23


def test_a_cut_answer_fails_the_run_and_has_no_usage() -> None:
    [result] = [message.result for message in messages_in(RECORDED / "errors/02.stdout") if message.result]
    assert (result.is_error, result.usage) == (True, None)
    assert result.errors


def test_tools_and_their_results_are_paired() -> None:
    blocks = [
        block
        for message in messages_in(RECORDED / "parallel/01.stdout")
        if message.inner
        for block in message.inner.content
        if isinstance(block, SdkBlock)
    ]
    used = [block.id for block in blocks if block.type == "tool_use"]
    results = {block.tool_use_id: block.is_error for block in blocks if block.type == "tool_result"}
    assert used == ["call_a", "call_b", "call_c", "call_d"]
    assert results == {"call_a": False, "call_b": True, "call_c": False, "call_d": True}


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"5", b'{"type":5}', b'{"type":"agent_event","event":7}', b"\xff"])
def test_a_line_that_is_none_of_its_own_is_passed_over(line: bytes) -> None:
    assert ClineOutput().read(line) == []
