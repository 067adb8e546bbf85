"""Each way of using the logger records the prompts, how each exchange ended, and why."""

import asyncio
import builtins
import gc
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_logger import SessionLogger, read_session
from agent_logger.model.records import Resume, SessionEnd, SessionStart
from tests.clients import Sandbox
from tests.fakeapi import FakeAPI
from tests.recording.test_sdk_logger import SESSION, exchanges, init, log_all, records, result, said
from tests.recording.test_sdk_logger_fixtures import logs
from tests.recording.test_sdk_logger_live import ANSWERS, COSTS, STALL, options

Line = dict[str, Any]
End = tuple[str | None, str | None]  # the prompt of an exchange, and how it ended
SECONDS = 60


class Use(NamedTuple):
    """What a way of using the logger is given."""

    logger: SessionLogger
    options: Callable[..., Any]  # of the SDK


async def streamed(*texts: str) -> AsyncIterator[Line]:
    for text in texts:
        yield {"type": "user", "session_id": "", "message": {"role": "user", "content": text}}


async def read_all(messages: AsyncIterator[Any]) -> None:
    async for _ in messages:
        pass


def children() -> set[str]:
    return {child for task in Path(f"/proc/{os.getpid()}/task").iterdir() for child in children_of_thread(task)}


def children_of_thread(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []  # the thread has ended; another one has its children now


async def clients_gone(before: Collection[str] = ()) -> None:
    """The SDK ends a client that is left a moment later. `before`: processes that other tests share."""
    for _ in range(200):
        if not children() - set(before):
            return
        await asyncio.sleep(0.05)


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the SDK leaves open belongs to the test that left the SDK early, and not to the next one."""
    yield
    gc.collect()


pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]


# ---------------------------------------------------------------- ways, with the real SDK


async def logs_messages(use: Use) -> None:
    from claude_agent_sdk import query

    use.logger.log_user_input("one")
    async for message in query(prompt="one", options=use.options()):
        use.logger.log(message)


async def wraps_a_query(use: Use) -> None:
    from claude_agent_sdk import query

    await read_all(use.logger.wrap(query(prompt="one", options=use.options())))


async def wraps_a_query_whose_prompt_is_logged(use: Use) -> None:
    from claude_agent_sdk import query

    use.logger.log_user_input("one")
    await read_all(use.logger.wrap(query(prompt="Be brief.\none", options=use.options())))


async def wraps_a_query_of_streamed_prompts(use: Use) -> None:
    from claude_agent_sdk import query

    await read_all(use.logger.wrap(query(prompt=streamed("one", "two"), options=use.options())))


async def wraps_prompts_and_query(use: Use) -> None:
    from claude_agent_sdk import query

    prompts = use.logger.wrap(streamed("one", "two"))
    await read_all(use.logger.wrap(query(prompt=prompts, options=use.options())))


async def queries(use: Use) -> None:
    await read_all(use.logger.query(prompt="one", options=use.options()))


async def queries_with_streamed_prompts(use: Use) -> None:
    await read_all(use.logger.query(prompt=streamed("one", "two"), options=use.options()))


async def queries_and_resumes(use: Use) -> None:
    await queries(use)
    await read_all(use.logger.query(prompt="two", options=use.options(resume=use.logger.session_id)))


async def uses_a_client(use: Use) -> None:
    from claude_agent_sdk import ClaudeSDKClient

    async with ClaudeSDKClient(use.options()) as client:
        for text in ("one", "two"):
            use.logger.log_user_input(text)
            await client.query(text)
            await read_all(use.logger.wrap(client.receive_response()))


async def queries_without_a_client(use: Use) -> None:
    await read_all(use.logger.query(prompt="one", options=use.options(cli_path="/nowhere/claude")))


async def queries_a_session_that_does_not_exist(use: Use) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    await read_all(use.logger.query(prompt="one", options=use.options(resume=missing)))


async def fails_between_messages(use: Use) -> None:
    async for _ in use.logger.query(prompt="one", options=use.options()):
        raise RuntimeError("no more disks")


async def is_cancelled(use: Use) -> None:
    task = asyncio.create_task(queries(use))
    while use.logger.session_id is None:
        await asyncio.sleep(0.05)
    task.cancel()
    await task


async def leaves_early(use: Use) -> None:
    async for _ in use.logger.query(prompt="one", options=use.options()):
        break


BOTH = [("one", "result"), ("two", "result")]
WAYS = [
    pytest.param(logs_messages, ANSWERS, BOTH[:1], None, None, id="log"),
    pytest.param(wraps_a_query, ANSWERS, BOTH[:1], None, None, id="wrap"),
    pytest.param(wraps_a_query_whose_prompt_is_logged, ANSWERS, BOTH[:1], None, None, id="wrap, prompt logged"),
    pytest.param(wraps_a_query_of_streamed_prompts, ANSWERS, BOTH, None, None, id="wrap, prompts streamed"),
    pytest.param(wraps_prompts_and_query, ANSWERS, BOTH, None, None, id="wrap both"),
    pytest.param(queries, ANSWERS, BOTH[:1], None, None, id="query"),
    pytest.param(queries_with_streamed_prompts, ANSWERS, BOTH, None, None, id="query, prompts streamed"),
    pytest.param(queries_and_resumes, ANSWERS, BOTH, None, None, id="query, resumed"),
    pytest.param(uses_a_client, ANSWERS, BOTH, None, None, id="client"),
    pytest.param(
        queries_without_a_client, ANSWERS, [("one", "error")], "error", "Claude Code not found", id="no client"
    ),
    pytest.param(
        queries_a_session_that_does_not_exist, ANSWERS, [("one", "error")], "error", "No conversation", id="no session"
    ),
    pytest.param(fails_between_messages, ANSWERS, [("one", "error")], "error", "no more disks", id="exception"),
    pytest.param(is_cancelled, STALL, [("one", "cancelled")], "cancelled", "CancelledError", id="cancelled"),
    pytest.param(leaves_early, ANSWERS, [("one", "eof")], None, None, id="left"),
]


@pytest.mark.needs("claude_agent_sdk")
@pytest.mark.needs("claude")
@pytest.mark.parametrize(("way", "api", "ends", "reason", "text"), WAYS)
def test_each_way_records_its_prompts_its_ends_and_its_reason(
    way: Callable[[Use], Awaitable[None]],
    api: Any,
    ends: list[End],
    reason: str | None,
    text: str | None,
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    logger = SessionLogger(tmp_path / "s")

    async def main() -> None:
        try:
            async with logger:
                await asyncio.wait_for(way(Use(logger, lambda **more: options(sandbox, fake.url, **more))), SECONDS)
        finally:
            await clients_gone()

    with FakeAPI(api) as fake:
        if reason:
            with pytest.raises(BaseException, match=text if reason == "error" else None):
                asyncio.run(main())
        else:
            asyncio.run(main())
    assert logger.path and logger.lost == 0
    session = read_session(logger.path)
    assert [(it.user_input, it.end_reason) for it in session.exchanges] == ends
    end = records(logger)[-1]
    assert isinstance(end, SessionEnd) and end.reason == reason
    assert (text or "") in logger.path.read_text()


@pytest.mark.needs("claude_agent_sdk")
@pytest.mark.needs("claude")
def test_a_second_query_is_a_session_of_its_own_unless_it_resumes(sandbox: Sandbox, tmp_path: Path) -> None:
    """The first was left before its answer."""
    logger = SessionLogger(tmp_path / "s")

    async def main() -> None:
        async with logger:
            use = Use(logger, lambda **more: options(sandbox, api.url, **more))
            await leaves_early(use)
            first = logger.session_id
            await read_all(logger.query(prompt="two", options=use.options()))
            second = logger.session_id
            await read_all(logger.query(prompt="three", options=use.options(resume=second, fork_session=True)))
            found.extend([first, second, logger.session_id])
        await clients_gone()

    found: list[str | None] = []
    with FakeAPI(ANSWERS) as api:
        asyncio.run(asyncio.wait_for(main(), SECONDS))
    by_session = logs(tmp_path / "s")
    assert sorted(by_session) == sorted(filter(None, found))
    ordered = [by_session[name or ""] for name in found]
    assert [[it.user_input for it in log.exchanges] for log in ordered] == [["one"], ["two"], ["three"]]
    assert [log.start.continues for log in ordered] == [None, None, found[1]]


@pytest.mark.needs("claude_agent_sdk")
@pytest.mark.needs("claude")
def test_closing_a_query_ends_its_client(sandbox: Sandbox, tmp_path: Path) -> None:
    before = children()  # processes that other tests share

    async def main() -> None:
        async with SessionLogger(tmp_path / "s") as logger:
            async with aclosing(logger.query(prompt="one", options=options(sandbox, api.url))) as messages:
                async for _ in messages:
                    break
            await clients_gone(before)
            assert children() <= before

    with FakeAPI(STALL) as api:
        asyncio.run(asyncio.wait_for(main(), SECONDS))


@pytest.mark.needs("claude_agent_sdk")
@pytest.mark.needs("claude")
def test_a_query_by_another_logger_resumes_the_log(sandbox: Sandbox, tmp_path: Path) -> None:
    first, again = SessionLogger(tmp_path / "s"), SessionLogger(tmp_path / "s")

    async def main() -> None:
        use = Use(first, lambda **more: options(sandbox, api.url, **more))
        async with first:
            await queries(use)
        async with again:
            await read_all(again.query(prompt="two", options=use.options(resume=first.session_id)))

    with FakeAPI(ANSWERS) as api:
        asyncio.run(asyncio.wait_for(main(), SECONDS))
    assert again.path == first.path
    [resume] = [it for it in records(again) if isinstance(it, Resume)]
    assert resume.resumed_from == first.session_id
    assert [it.stats and it.stats.cost_usd for it in exchanges(again)] == pytest.approx(COSTS[:2])


# ---------------------------------------------------------------- without the SDK


def test_a_query_without_the_sdk_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(ModuleNotFoundError, match="pip install claude-agent-sdk"):
        SessionLogger(tmp_path).query(prompt="one")


def test_the_package_does_not_import_the_sdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    imported: list[str] = []
    real = builtins.__import__

    def noted(name: str, *more: Any) -> Any:
        imported.append(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", noted)
    with SessionLogger(tmp_path) as logger:
        log_all(logger, "one", init(), said("a"), result(1))
        asyncio.run(read_all(logger.wrap(streamed("two"))))
    assert not [name for name in imported if name.startswith("claude_agent_sdk")]


def test_an_exception_is_noted_once_and_without_keys(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "FAKEfake0123456789" * 3

    async def broken() -> AsyncIterator[Line]:
        yield init()
        raise ConnectionError(f"refused {key}")

    async def main() -> None:
        async with logger:
            logger.log_user_input("one")
            await read_all(logger.wrap(broken()))

    logger = SessionLogger(tmp_path)
    with pytest.raises(ConnectionError):
        asyncio.run(main())
    [exchange] = exchanges(logger)
    assert [it.type for it in exchange.messages] == ["exception"]
    assert logger.path and key not in logger.path.read_text()
    assert (read_session(logger.path).exchanges[0].printed or "").startswith("ConnectionError: refused")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ValueError("x"), "error"), (KeyboardInterrupt(), "interrupted"), (SystemExit(3), "exit")],
)
def test_a_block_records_what_ended_it(error: BaseException, reason: str, tmp_path: Path) -> None:
    logger = SessionLogger(tmp_path)
    with pytest.raises(type(error)), logger:
        log_all(logger, "one", init())
        raise error
    end = records(logger)[-1]
    assert isinstance(end, SessionEnd) and end.reason == reason
    assert logger.path
    [exchange] = read_session(logger.path).exchanges
    assert (exchange.user_input, exchange.end_reason) == ("one", reason)


def test_an_exception_after_the_result_makes_no_exchange(tmp_path: Path) -> None:
    logger = SessionLogger(tmp_path)
    with pytest.raises(ValueError), logger:
        log_all(logger, "one", init(), said("a"), result(1))
        raise ValueError("later")
    assert [it.end_reason for it in exchanges(logger)] == ["result"]


def test_threads_share_a_logger(tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as logger:
        log_all(logger, init())
        threads = [threading.Thread(target=logger.log_user_input, args=(f"from {n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log_all(logger, said("a"), result(1), said("b"), result(2))
    inputs = [text for it in exchanges(logger) for text in it.user_inputs or [it.user_input or ""]]
    assert sorted(filter(None, inputs)) == sorted(f"from {n}" for n in range(8))
    assert {it.end_reason for it in exchanges(logger)} == {"result"}


def test_loggers_that_write_one_session_at_once_share_no_number(tmp_path: Path) -> None:
    def talk(name: int) -> None:
        with loggers[name] as logger:
            for number in range(10):
                log_all(logger, f"{name}-{number}", init(), said(f"{name}{number}"), result(number))

    loggers = [SessionLogger(tmp_path) for _ in range(3)]
    threads = [threading.Thread(target=talk, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({logger.path for logger in loggers}) == 1
    found = exchanges(loggers[0])
    assert sorted(it.exchange for it in found) == list(range(1, 31))
    assert len({it.user_input for it in found}) == 30
    assert {it.end_reason for it in found} == {"result"}


def test_two_loggers_that_alternate_share_no_number(tmp_path: Path) -> None:
    one, two = SessionLogger(tmp_path), SessionLogger(tmp_path)
    with one, two:
        log_all(one, "a", init())
        log_all(two, "b", init())  # while the first exchange is in flight
        log_all(one, said("a"), result(1), "c", init())
        log_all(two, said("b"), result(2), "d", init(), said("d"), result(3))
        log_all(one, said("c"), result(4))
    found = exchanges(two)
    assert sorted((it.exchange, it.user_input) for it in found) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert {it.session_id for it in found} == {SESSION}
    assert len([it for it in records(one) if isinstance(it, SessionStart)]) == 1
