"""The demo's conversation is a real one, over a socket, in the shape that recorders know."""

import importlib
import subprocess
import sys
import time
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from tests.pulse import Pulse

from agent_logger.demo.conversation import AgentMessage, DemoInput, Happening, converse, scripted_api
from agent_logger.demo.script import Lane, Scenario, ScriptTurn
from agent_logger.demo.server import ScriptedAPI

COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@pytest.fixture(scope="module")
def conversation() -> list[Happening]:
    with scripted_api(pace=0) as api:
        return list(converse(api.url, session_id="11111111-2222-4333-8444-555555555555"))


def messages(conversation: list[Happening], type_: str) -> list[dict[str, Any]]:
    told = (happening.message for happening in conversation if isinstance(happening, AgentMessage))
    return [message for message in told if message["type"] == type_]


def blocks(conversation: list[Happening], type_: str) -> list[dict[str, Any]]:
    spoken = messages(conversation, "assistant") + messages(conversation, "user")
    found = [block for message in spoken for block in message["message"]["content"]]
    return [block for block in found if block["type"] == type_]


def usage_by_message(answers: list[dict[str, Any]]) -> Counter[str]:
    """Every model response once, however many lines it was split into."""
    once = {answer["message"]["id"]: answer["message"]["usage"] for answer in answers}
    total: Counter[str] = Counter()
    for usage in once.values():
        total.update({key: usage[key] for key in COUNTED})
    return total


def test_three_exchanges_each_begin_with_an_input_and_an_init_and_end_with_a_result(
    conversation: list[Happening],
) -> None:
    shape = ["input" if isinstance(happening, DemoInput) else happening.message["type"] for happening in conversation]
    starts = [number for number, kind in enumerate(shape) if kind == "input"]
    exchanges = [shape[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    assert len(exchanges) == 3
    for exchange in exchanges:
        assert exchange[:2] == ["input", "system"]
        assert exchange.count("result") == 1
        assert exchange[-1] == "result"


def test_the_demo_thinks_runs_tools_with_one_failure_and_delegates_to_a_sub_agent(
    conversation: list[Happening],
) -> None:
    assert [block["name"] for block in blocks(conversation, "tool_use")] == ["Bash", "Edit", "Agent", "Grep"]
    assert len(blocks(conversation, "thinking")) == 2
    results = {block["tool_use_id"]: block for block in blocks(conversation, "tool_result")}
    outcomes = [results[block["id"]]["is_error"] for block in blocks(conversation, "tool_use")]
    assert outcomes == [True, False, False, False]
    [delegation] = [block for block in blocks(conversation, "tool_use") if block["name"] == "Agent"]
    helper = [m for m in messages(conversation, "assistant") if m["parent_tool_use_id"] == delegation["id"]]
    assert [block["type"] for m in helper for block in m["message"]["content"]] == ["tool_use", "text"]
    assert "kettle.py:2:" in results[helper[0]["message"]["content"][0]["id"]]["content"]


def test_every_message_has_one_block_and_carries_the_session_id(conversation: list[Happening]) -> None:
    spoken = messages(conversation, "assistant")
    assert all(len(message["message"]["content"]) == 1 for message in spoken)
    assert len({message["message"]["id"] for message in spoken}) == 8
    told = [happening.message for happening in conversation if isinstance(happening, AgentMessage)]
    assert {message["session_id"] for message in told} == {"11111111-2222-4333-8444-555555555555"}
    assert len({UUID(message["uuid"]) for message in told}) == len(told)


def test_results_report_usage_per_exchange_and_cost_per_session(conversation: list[Happening]) -> None:
    answers, results = messages(conversation, "assistant"), messages(conversation, "result")
    main = [answer for answer in answers if answer["parent_tool_use_id"] is None]
    total: Counter[str] = Counter()
    for result in results:
        total.update(result["usage"])
    assert total == usage_by_message(main)
    everything = usage_by_message(answers)
    [billed] = results[-1]["modelUsage"].values()
    assert (billed["outputTokens"], billed["cacheReadInputTokens"]) == (
        everything["output_tokens"],
        everything["cache_read_input_tokens"],
    )
    costs = [result["total_cost_usd"] for result in results]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(sum(everything[key] * usd for key, usd in zip(COUNTED, USD, strict=True)))
    assert [result["num_turns"] for result in results] == [2, 2, 2]


USD = (3e-6, 3.75e-6, 0.3e-6, 15e-6)  # claude-sonnet-4-5's list prices per token


def test_two_runs_have_distinct_message_ids(conversation: list[Happening]) -> None:
    with scripted_api(pace=0) as api:
        again = list(converse(api.url))
    ids = [{m["message"]["id"] for m in messages(run, "assistant")} for run in (conversation, again)]
    assert not ids[0] & ids[1]


def test_setting_pace_to_zero_removes_the_demo_delays() -> None:
    seconds, at_work = {}, {}
    for pace in (1.0, 0.0):
        with Pulse() as pulse, scripted_api(pace=pace) as api:
            started, began = pulse.now(), time.monotonic()
            list(converse(api.url))
            seconds[pace], at_work[pace] = time.monotonic() - began, pulse.now() - started
    assert seconds[1.0] > 2  # about 2.5 where nothing else runs
    assert at_work[1.0] < 10
    assert at_work[0.0] < 1  # about 0.1


@pytest.mark.alone
def test_messages_are_yielded_while_the_answer_streams() -> None:
    with Pulse() as pulse, scripted_api() as api:
        started = pulse.now()
        happenings = converse(api.url)
        [next(happenings) for _ in range(3)]
        assert pulse.now() - started < 1  # the first answer is streamed for half of one
        happenings.close()


@pytest.mark.needs("claude_agent_sdk")
def test_the_agent_sdk_parses_every_message(conversation: list[Happening]) -> None:
    parser = importlib.import_module("claude_agent_sdk._internal.message_parser")
    told = [happening.message for happening in conversation if isinstance(happening, AgentMessage)]
    names = Counter(type(parser.parse_message(message)).__name__ for message in told)
    assert names == {"SystemMessage": 3, "AssistantMessage": 12, "UserMessage": 5, "ResultMessage": 3}


@pytest.mark.needs("anthropic")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_the_anthropic_sdk_talks_to_the_scripted_api(stream: bool) -> None:
    anthropic = importlib.import_module("anthropic")
    scenario = Scenario(lanes=(Lane(turns=(ScriptTurn(text="Hello — 流れ.", stop_reason="max_tokens"),)),))
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with (
        ScriptedAPI(scenario) as api,
        anthropic.Anthropic(base_url=f"{api.url}/prefix", api_key="k") as client,
    ):
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    assert (message.content[0].text, message.stop_reason) == ("Hello — 流れ.", "max_tokens")


def test_the_demo_does_not_import_test_dependencies() -> None:
    code = (
        "import sys, agent_logger.demo.conversation; "
        "print(sorted({'aiohttp', 'brotli', 'websockets', 'anthropic', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
