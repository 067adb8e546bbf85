"""The real SDK and its client against the scripted API: what they say is in the logs."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_logger import SessionLogger
from agent_logger.logs.log_records import read_exchanges
from agent_logger.model.records import ExchangeRecord
from tests.clients import ANTHROPIC_KEY, NOWHERE, Sandbox
from tests.fakeapi import FakeAPI
from tests.recording.test_sdk_logger_fixtures import Log, logs

pytestmark = [pytest.mark.needs("claude_agent_sdk"), pytest.mark.needs("claude")]

SECONDS = 120


def options(sandbox: Sandbox, url: str, **more: Any) -> Any:
    from claude_agent_sdk import ClaudeAgentOptions

    environment = {
        "HOME": str(sandbox.home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1",
    }
    return ClaudeAgentOptions(cwd=str(sandbox.project), env=environment, **more)


def answer(number: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 10 * number,
        "cache_creation_input_tokens": 100 * number,
        "cache_read_input_tokens": 1000 * number,
        "output_tokens": 20 * number,
    }
    return {"text": f"Answer {number}.", "usage": usage}


ANSWERS = {"lanes": [{"name": "main", "repeat": True, "turns": [answer(number) for number in (1, 2, 3, 4)]}]}
COSTS = [0.00114, 0.00228, 0.00342, 0.00456]  # of these four, as the client counts


async def ask(client: Any, logger: SessionLogger, text: str) -> None:
    logger.log_user_input(text)
    await client.query(text)
    async for message in client.receive_response():
        logger.log(message)


def talk(sandbox: Sandbox, url: str, logger: SessionLogger, *texts: str, **more: Any) -> SessionLogger:
    """One client, one input after the other; the logger is closed after it."""
    from claude_agent_sdk import ClaudeSDKClient

    async def main() -> None:
        async with logger, ClaudeSDKClient(options(sandbox, url, **more)) as client:
            for text in texts:
                await ask(client, logger, text)

    _run(main)
    return logger


def _run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main(), SECONDS)

    asyncio.run(bounded())


def exchanges(logger: SessionLogger) -> list[ExchangeRecord]:
    assert logger.path
    return read_exchanges(logger.path.parent, logger.path.stem)


def log(logger: SessionLogger) -> Log:
    assert logger.path and logger.session_id and logger.lost == 0
    return logs(logger.path.parent)[logger.session_id]


def costs(logger: SessionLogger) -> list[float | None]:
    return [it.stats.cost_usd if it.stats else None for it in exchanges(logger)]


def test_three_exchanges_of_one_client_are_recorded_with_their_costs(sandbox: Sandbox, tmp_path: Path) -> None:
    with FakeAPI(ANSWERS) as api:
        logger = talk(sandbox, api.url, SessionLogger(tmp_path / "s"), "one", "two", "three")
    assert [it.user_input for it in exchanges(logger)] == ["one", "two", "three"]
    assert costs(logger) == pytest.approx(COSTS[:3])
    assert log(logger).billed == (60, 120, 600, 6000)


def test_a_resumed_session_keeps_its_log_and_a_fork_gets_a_new_one(sandbox: Sandbox, tmp_path: Path) -> None:
    with FakeAPI(ANSWERS) as api:
        first = talk(sandbox, api.url, SessionLogger(tmp_path / "s"), "one")
        again = SessionLogger(tmp_path / "s", resumed_from=first.session_id)
        talk(sandbox, api.url, again, "two", resume=first.session_id)
        fork = SessionLogger(tmp_path / "s", resumed_from=first.session_id)
        talk(sandbox, api.url, fork, "three", resume=first.session_id, fork_session=True)
    assert (again.path, again.session_id) == (first.path, first.session_id)
    assert costs(again) == pytest.approx(COSTS[:2])
    assert fork.session_id != first.session_id
    assert log(fork).start.continues == first.session_id
    assert costs(fork) == pytest.approx([COSTS[2]])


def test_clearing_a_conversation_starts_a_new_log(sandbox: Sandbox, tmp_path: Path) -> None:
    with FakeAPI(ANSWERS) as api:
        logger = talk(sandbox, api.url, SessionLogger(tmp_path / "s"), "one", "/clear", "two")
    found = logs(tmp_path / "s")
    assert len(found) == 2
    before = log(logger).start.continues
    assert before and [it.user_input for it in found[before].exchanges] == ["one", "/clear"]
    assert costs(logger) == pytest.approx([0, COSTS[1]])


def test_tool_uses_are_counted_in_the_session_end(sandbox: Sandbox, tmp_path: Path) -> None:
    with FakeAPI("tools", {"CWD": str(sandbox.project)}) as api:
        logger = talk(sandbox, api.url, SessionLogger(tmp_path / "s"), "poem", allowed_tools=["Write", "Read", "Bash"])
    assert log(logger).end.tools_used == {"Write": 1, "Read": 1, "Bash": 2}
    assert log(logger).billed == (18, 290, 12430, 35690)


def test_sub_agent_messages_and_usage_are_recorded(sandbox: Sandbox, tmp_path: Path) -> None:
    (sandbox.project / "seed.txt").write_text("hello seed\n")
    with FakeAPI("subagent", {"CWD": str(sandbox.project)}) as api:
        logger = talk(
            sandbox,
            api.url,
            SessionLogger(tmp_path / "s"),
            "delegate",
            allowed_tools=["Task", "Agent", "Bash", "Read"],
        )
    assert log(logger).end.tools_used["Agent"] == 2
    assert log(logger).billed == (15, 295, 3520, 3410)
    [exchange] = exchanges(logger)
    agents = {it.tool_use_id for it in exchange.messages if it.name == "Agent"}
    assert {it.parent_tool_use_id for it in exchange.messages if it.parent_tool_use_id} == agents


@pytest.mark.parametrize(
    ("scenario", "more", "reason", "status"),
    [("err529", {}, "api_error", 529), ("maxturns", {"max_turns": 1}, "max_turns", None)],
)
def test_a_query_that_fails_is_recorded_and_still_raises(
    scenario: str, more: dict[str, Any], reason: str, status: int | None, sandbox: Sandbox, tmp_path: Path
) -> None:
    from claude_agent_sdk import query

    logger = SessionLogger(tmp_path / "s")

    async def main() -> None:
        async with logger:
            logger.log_user_input("go")
            stream = query(prompt="go", options=options(sandbox, api.url, allowed_tools=["Bash"], **more))
            async for _ in logger.wrap(stream):
                pass

    with FakeAPI(scenario, {"CWD": str(sandbox.project)}) as api, pytest.raises(Exception, match="error"):
        _run(main)
    [stats] = log(logger).stats
    assert (stats.is_error, stats.terminal_reason, stats.api_error_status) == (True, reason, status)
    assert log(logger).end.reason == "error"


STALL = {"lanes": [{"name": "main", "turns": [{**answer(1), "stall_after": 4}, answer(2), answer(3)]}]}


def test_an_interrupted_exchange_is_recorded_as_aborted(sandbox: Sandbox, tmp_path: Path) -> None:
    from claude_agent_sdk import ClaudeSDKClient

    logger = SessionLogger(tmp_path / "s")

    async def main() -> None:
        async with logger, ClaudeSDKClient(options(sandbox, api.url)) as client:
            logger.log_user_input("one")
            await client.query("one")
            stop = asyncio.create_task(_later(client.interrupt))
            async for message in client.receive_response():
                logger.log(message)
            await stop
            await ask(client, logger, "two")

    with FakeAPI(STALL) as api:
        _run(main)
    first, second = exchanges(logger)
    assert first.stats and (first.stats.is_error, first.stats.terminal_reason) == (True, "aborted_streaming")
    assert second.stats and (second.user_input, second.stats.is_error) == ("two", False)


async def _later(work: Callable[[], Awaitable[Any]]) -> None:
    await asyncio.sleep(3)
    await work()


def test_inputs_queued_during_an_answer_form_one_exchange(sandbox: Sandbox, tmp_path: Path) -> None:
    from claude_agent_sdk import ClaudeSDKClient

    logger = SessionLogger(tmp_path / "s")
    slow = {"lanes": [{"name": "main", "turns": [{**answer(1), "wait_ms": 1500}, answer(2), answer(3)]}]}

    async def main() -> None:
        async with logger, ClaudeSDKClient(options(sandbox, api.url)) as client:
            for text in ("one", "two", "three"):
                logger.log_user_input(text)
                await client.query(text)
            results = 0
            async for message in client.receive_messages():
                logger.log(message)
                results += type(message).__name__ == "ResultMessage"
                if results == 2:
                    break

    with FakeAPI(slow) as api:
        _run(main)
    assert [(it.user_input, it.user_inputs) for it in exchanges(logger)] == [
        ("one", None),
        ("two\nthree", ["two", "three"]),
    ]
    assert costs(logger) == pytest.approx(COSTS[:2])


def test_partial_messages_give_the_final_usage_for_a_streamed_prompt(sandbox: Sandbox, tmp_path: Path) -> None:
    from claude_agent_sdk import query

    logger = SessionLogger(tmp_path / "s")

    async def prompts() -> Any:
        yield {"type": "user", "session_id": "", "message": {"role": "user", "content": "go"}}

    async def main() -> None:
        async with logger:
            given = options(sandbox, api.url, include_partial_messages=True)
            stream = query(prompt=logger.wrap(prompts()), options=given)
            async for _ in logger.wrap(stream):
                pass

    with FakeAPI(ANSWERS) as api:
        _run(main)
    [exchange] = exchanges(logger)
    assert exchange.user_input == "go"
    assert [it.type for it in exchange.messages if it.source == "assistant"] == ["text"]
    usage = next(it.usage for it in exchange.messages if it.usage)
    assert b'"output_tokens":20' in bytes(usage)


def background(*after: dict[str, Any]) -> dict[str, Any]:
    """An agent that is started in the background and reports when its parent has yielded."""
    task = {"description": "Look", "prompt": "SUBTASK: look around.", "subagent_type": "general-purpose"}
    use = {"type": "tool_use", "name": "Agent", "input": {**task, "run_in_background": True}}
    first = {"content": [use], "usage": answer(1)["usage"]}
    return {
        "lanes": [
            {"name": "side", "match": {"no_tools": True}, "repeat": True, "turns": [answer(1)]},
            {"name": "sub", "match": {"first_user_re": "SUBTASK"}, "turns": [{**answer(2), "wait_ms": 1500}]},
            {"name": "main", "turns": [first, *after]},
        ]
    }


def test_a_background_agent_report_is_a_separate_exchange(sandbox: Sandbox, tmp_path: Path) -> None:
    from claude_agent_sdk import ClaudeSDKClient

    logger = SessionLogger(tmp_path / "s")

    async def main() -> None:
        given = options(sandbox, api.url, allowed_tools=["Task", "Agent"])
        async with logger, ClaudeSDKClient(given) as client:
            logger.log_user_input("go")
            await client.query("go")
            results = 0
            async for message in client.receive_messages():
                logger.log(message)
                results += type(message).__name__ == "ResultMessage"
                if results == 2:
                    break
            await ask(client, logger, "thanks")

    with FakeAPI(background(answer(1), answer(1), answer(3))) as api:
        _run(main)
    found = exchanges(logger)
    assert [it.user_input for it in found] == ["go", None, "thanks"]
    assert found[1].origin and b"task-notification" in bytes(found[1].origin)
    assert sum(it or 0 for it in costs(logger)) == pytest.approx(3 * COSTS[0] + COSTS[1] + COSTS[2])
    assert log(logger).billed == (80, 160, 800, 8000)


def test_a_killed_agent_leaves_an_incomplete_exchange(sandbox: Sandbox, tmp_path: Path) -> None:
    """What it had said is there; the exchange has no result."""
    from claude_agent_sdk import ClaudeSDKClient

    logger = SessionLogger(tmp_path / "s")

    async def main() -> None:
        async with logger, ClaudeSDKClient(options(sandbox, api.url, allowed_tools=["Bash"])) as client:
            logger.log_user_input("go")
            await client.query("go")
            async for message in client.receive_messages():
                logger.log(message)
                if type(message).__name__ == "UserMessage":  # a tool has run
                    os.kill(_child_named("claude"), signal.SIGKILL)

    with (
        FakeAPI("maxturns", {"CWD": str(sandbox.project)}) as api,
        pytest.raises(Exception, match=r"exit|closed|-9"),
    ):
        _run(main)
    [exchange] = exchanges(logger)
    assert (exchange.user_input, exchange.complete, exchange.end_reason) == ("go", False, "eof")
    assert [it.type for it in exchange.messages if it.source in ("assistant", "tool")][:2] == [
        "tool_use",
        "result",
    ]
    assert log(logger).end.reason == "error"


def _child_named(name: str) -> int:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    found = [it for task in tasks for it in (task / "children").read_text().split()]
    return next(int(it) for it in found if name in os.readlink(f"/proc/{it}/exe"))
