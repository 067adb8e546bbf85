"""The session logger through its public door."""

import asyncio
import dataclasses
import errno
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agent_logger
from agent_logger import SessionLogger
from agent_logger.errors import StoreError
from agent_logger.home.layout import facts_path
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.logs.reader import read_session
from agent_logger.model.records import ExchangeRecord, Gap, Record, Resume, SessionEnd, SessionStart

SESSION = "1f320356-a178-418e-a692-69ce6e1e657c"
OTHER = "2a320356-a178-418e-a692-69ce6e1e657c"
KEY = "sk-ant-api03-" + "FAKEfake0123456789" * 3

Line = dict[str, Any]


def init(session: str = SESSION, **more: Any) -> Line:
    return {
        "type": "system", "subtype": "init", "session_id": session, "model": "claude-haiku-4-5", "cwd": "/w",
        "tools": ["Bash"], "permissionMode": "default", "uuid": os.urandom(4).hex(), **more,
    }  # fmt: skip


def said(text: str, session: str = SESSION, **more: Any) -> Line:
    usage = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 5}
    inner = {"id": f"msg_{text}", "content": [{"type": "text", "text": text}], "usage": usage, **more}
    return {"type": "assistant", "session_id": session, "message": inner}


def result(cost: float, session: str = SESSION, **more: Any) -> Line:
    usage = {"input_tokens": 9, "output_tokens": 4}
    return {
        "type": "result", "subtype": "success", "is_error": False, "session_id": session, "num_turns": 1,
        "duration_ms": 10, "duration_api_ms": 20, "total_cost_usd": cost, "usage": usage, **more,
    }  # fmt: skip


def records(logger: SessionLogger) -> list[Record]:
    assert logger.path
    found = [item.value for item in read_log(logger.path.parent, logger.path.stem)]
    assert all(isinstance(it, Record) for it in found), found
    return [it for it in found if isinstance(it, Record)]


def exchanges(logger: SessionLogger) -> list[ExchangeRecord]:
    assert logger.path
    return read_exchanges(logger.path.parent, logger.path.stem)


def raw(value: object) -> bytes:
    assert isinstance(value, msgspec.Raw)
    return bytes(value)


def log_all(logger: SessionLogger, *happenings: Line | str) -> SessionLogger:
    for it in happenings:
        logger.log_user_input(it) if isinstance(it, str) else logger.log(it)
    return logger


def names(folder: Path) -> list[str]:
    UPKEEP.finish()
    return sorted(it.name for it in folder.glob("*.jsonl*"))


# ---------------------------------------------------------------- the log of the specification


def test_a_session_log_has_a_start_exchanges_and_an_end(tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as logger:
        log_all(logger, "write a poem", init(), said("a"), result(0.1), "more", init(), said("b"), result(0.3))
    start, first, second, end = records(logger)
    assert isinstance(start, SessionStart) and isinstance(end, SessionEnd)
    assert isinstance(first, ExchangeRecord) and isinstance(second, ExchangeRecord)
    assert (start.session_id, start.model, start.cwd) == (SESSION, "claude-haiku-4-5", "/w")
    assert (start.tools_available, start.permission_mode, start.witness) == (["Bash"], "default", "sdk")
    assert [it.user_input for it in (first, second)] == ["write a poem", "more"]
    assert [it.stats and it.stats.cost_usd for it in (first, second)] == pytest.approx([0.1, 0.2])
    assert (end.total_exchanges, end.total_cost_usd, end.total_duration_ms) == (2, 0.3, 20)
    assert end.total_tokens and (end.total_tokens.input, end.total_tokens.output) == (9, 4)
    assert (end.context_tokens, end.peak_context_tokens) == (8, 8)
    assert logger.path and logger.path.name.endswith("_1f320356.jsonl")
    assert (logger.session_id, logger.lost) == (SESSION, 0)


def test_blocks_are_recorded_with_their_type_and_content(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"b": 1, "a": 2}},
        {"type": "server_tool_use", "id": "t2", "name": "web_search", "input": {}},
        {"type": "hologram", "shape": "cat"},
    ]
    image = [{"type": "text", "text": "here:"}, {"type": "image", "source": {"data": "AAAA"}}]
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": image, "is_error": True}
    user = {
        "type": "user",
        "uuid": "u",
        "message": {"role": "user", "content": [answer]},
        "session_id": SESSION,
    }
    with SessionLogger(tmp_path) as logger:
        log_all(logger, "go", init(), said("x", content=blocks), user, result(0))
    [exchange] = exchanges(logger)
    thinking, use, server, odd, tool = exchange.messages[:5]
    assert (thinking.type, thinking.text) == ("thinking", "hm")
    assert (use.type, use.name, use.tool_use_id, raw(use.input)) == (
        "tool_use",
        "Bash",
        "t1",
        b'{"b":1,"a":2}',
    )
    assert (server.type, server.name, odd.type) == ("server_tool_use", "web_search", "hologram")
    assert json.loads(raw(odd.content))["shape"] == "cat"
    assert (tool.source, tool.type, tool.is_error, tool.output) == ("tool", "result", True, "here:")
    assert json.loads(raw(tool.content)) == image
    [end] = [it for it in records(logger) if isinstance(it, SessionEnd)]
    assert end.tools_used == {"Bash": 1, "web_search": 1}


def test_a_prompt_of_blocks_is_recorded_as_text_and_blocks(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "what is this?"}, {"type": "image", "source": {"data": "AAAA"}}]
    with SessionLogger(tmp_path) as logger:
        logger.log_user_input(blocks)
        log_all(logger, init(), result(0))
    [exchange] = exchanges(logger)
    assert exchange.user_input == "what is this?"
    assert json.loads(raw(exchange.user_content)) == blocks


ODD = [
    (42, "42"),
    (None, "None"),
    ("plain text", "plain text"),
    (b"bytes", "bytes"),
    (b"\xff", "/w=="),
    (("a", 1), "('a', 1)"),
    ({"no": "type"}, '{"no":"type"}'),
    ({1: 2}, '{"1":2}'),
    ({"type": 3}, '{"type":3}'),
]


@pytest.mark.parametrize(("odd", "kept"), ODD, ids=repr)
def test_objects_that_are_not_messages_are_recorded_as_raw_text(odd: object, kept: str, tmp_path: Path) -> None:
    with SessionLogger(tmp_path, strict=True) as logger:
        log_all(logger, "go", init())
        logger.log(odd)
        logger.log(result(0))
    [exchange] = exchanges(logger)
    assert [it.raw for it in exchange.messages if it.type == "unknown"] == [kept]


@pytest.mark.parametrize("text", ["half \ud83d", "nul \0", "line\u2028end", "\U0001f389"])
def test_any_text_can_be_logged(text: str, tmp_path: Path) -> None:
    with SessionLogger(tmp_path, strict=True) as logger:
        log_all(logger, text, init(), said(text), result(0))
    [exchange] = exchanges(logger)
    assert exchange.user_input == exchange.messages[0].text == text.replace("\ud83d", "\ufffd")


def test_an_empty_answer_is_recorded_with_its_usage(tmp_path: Path) -> None:
    with SessionLogger(tmp_path, strict=True) as logger:
        log_all(logger, "go", init(), said("x", content=[], stop_reason="end_turn"), result(0))
    assert logger.path
    [turn] = read_session(logger.path).turns
    assert (turn.message_id, turn.usage and turn.usage.cache_read_tokens, turn.stop_reason) == (
        "msg_x",
        5,
        "end_turn",
    )


def test_wrapped_prompts_do_not_set_the_session_id(tmp_path: Path) -> None:
    """The SDK's own examples call it `default`."""

    async def prompts() -> AsyncIterator[Line]:
        for text in ("one", "two"):
            yield {"type": "user", "session_id": "default", "message": {"role": "user", "content": text}}

    async def client(given: AsyncIterator[Line]) -> AsyncIterator[Line]:
        cost = 0.0
        async for prompt in given:
            cost += 0.1
            for it in (init(), said(f"to {prompt['message']['content']}"), result(cost)):
                yield it

    async def talk(logger: SessionLogger) -> int:
        return len([it async for it in logger.wrap(client(logger.wrap(prompts())))])

    with SessionLogger(tmp_path, strict=True) as logger:
        assert asyncio.run(talk(logger)) == 6
    assert [(it.user_input, it.messages[0].text) for it in exchanges(logger)] == [
        ("one", "to one"),
        ("two", "to two"),
    ]
    assert [type(it) for it in records(logger)] == [SessionStart, ExchangeRecord, ExchangeRecord, SessionEnd]


TOLD = [  # the JSON of a text, or of what a tool put out; what is read back; whether it is kept whole beside that
    (b'"a\\tb \\u00e9 \\/"', "a\tb \u00e9 /", False),
    (b'"no \xff UTF-8"', "no \ufffd UTF-8", False),
    (b'"half \\ud83d"', "half \ufffd", False),
    (b'[{"type": "text", "text": "in a \xff block"}]', "in a \ufffd block", True),
    (b"null", None, True),
    (b"12", None, True),
]


@pytest.mark.parametrize(("told", "text", "whole"), TOLD, ids=repr)
def test_client_lines_with_any_text_value_are_recorded(
    told: bytes, text: str | None, whole: bool, tmp_path: Path
) -> None:
    line = b'{"type":"%b","session_id":"%b","uuid":"u","message":{"content":[{"type":"%b","%b":%b}]}}'
    with SessionLogger(tmp_path, strict=True) as logger:
        log_all(logger, "go", init())
        logger.log(line % (b"assistant", SESSION.encode(), b"text", b"text", told))
        logger.log(line % (b"user", SESSION.encode(), b"tool_result", b"content", told))
        logger.log(result(0))
    [exchange] = exchanges(logger)
    assert len(records(logger)) == 3  # all of them can be read
    said, output = exchange.messages[:2]
    assert (said.text if said.type == "text" else None) == (None if whole else text)
    assert (output.output, output.content is not msgspec.UNSET) == (text or "", whole)


# ---------------------------------------------------------------- where exchanges begin and end


def ends(logger: SessionLogger) -> list[tuple[str | None, str | None]]:
    return [(it.user_input, it.end_reason) for it in exchanges(logger)]


BOUNDARIES = [
    pytest.param(["a", init(), said("1"), result(1)], [("a", "result")], id="a result"),
    pytest.param(["a", init(), said("1")], [("a", "eof")], id="the end of the stream"),
    pytest.param([said("1"), result(1)], [(None, "result")], id="nobody asked"),
    pytest.param(
        ["a", init(), said("1"), "b", init(), said("2"), result(1)],
        [("a", "input"), ("b", "result")],
        id="the agent goes on to the next input without a result",
    ),
    pytest.param(
        ["a", init(), said("1"), "b", said("2"), result(1), init(), said("3"), result(2)],
        [("a", "result"), ("b", "result")],
        id="an input while the agent is busy waits",
    ),
    pytest.param(["a", init(), said("1"), "b", result(1)], [("a", "result"), ("b", "eof")], id="nobody answers"),
    pytest.param(
        ["a", init(), said("1"), result(1), result(1, origin={"kind": "task-notification"})],
        [("a", "result"), (None, "result")],
        id="a background task reports",
    ),
    pytest.param(
        ["a", init(), result(1, origin={"kind": "task-notification"}), init(), said("1"), result(2)],
        [(None, "result"), ("a", "result")],
        id="a background task reports before the input is answered",
    ),
    pytest.param(["a", init(), result(1, origin={"kind": "human"})], [("a", "result")], id="a person is an origin too"),
    pytest.param(
        ["a", init(), said("1"), result(1), {"type": "system", "subtype": "status"}, "b", init(), result(2)],
        [("a", "result"), ("b", "result")],
        id="a note between two exchanges",
    ),
]


@pytest.mark.parametrize(("happenings", "expected"), BOUNDARIES)
def test_an_exchange_ends_with_the_expected_reason(
    happenings: list[Line | str], expected: list[tuple[str | None, str | None]], tmp_path: Path
) -> None:
    with SessionLogger(tmp_path, strict=True) as logger:
        log_all(logger, *happenings)
    assert ends(logger) == expected
    complete = [it.complete for it in exchanges(logger)]
    assert complete == [reason == "result" for _, reason in expected]


def test_a_conversation_reset_starts_a_new_log_that_continues_the_old_one(tmp_path: Path) -> None:
    reset = {"type": "conversation_reset", "session_id": SESSION, "new_conversation_id": "x"}
    late = {"type": "system", "subtype": "background_tasks_changed", "session_id": SESSION}
    logger = log_all(SessionLogger(tmp_path), "a", init(), said("1"), result(0.5), "/clear", reset)
    log_all(logger, late, init(OTHER), result(0, OTHER), "b", init(OTHER), said("2", OTHER), result(0.2, OTHER))
    logger.close()
    assert ends(logger) == [(None, "result"), ("b", "result")]
    start = records(logger)[0]
    assert isinstance(start, SessionStart) and start.continues == SESSION
    first = next(tmp_path.glob("*_1f320356.jsonl"))
    assert [(it.user_input, it.end_reason) for it in read_exchanges(tmp_path, first.stem)] == [
        ("a", "result"),
        ("/clear", "reset"),
    ]
    assert [it.stats and it.stats.cost_usd for it in exchanges(logger)] == [0, 0.2]


def test_a_conversation_reset_between_exchanges_stands_in_the_new_log(tmp_path: Path) -> None:
    reset = {"type": "conversation_reset", "session_id": SESSION, "new_conversation_id": "x"}
    logger = log_all(SessionLogger(tmp_path), "a", init(), said("1"), result(0.5), reset, init(OTHER), "b")
    log_all(logger, said("2", OTHER), result(0.2, OTHER))
    logger.close()
    first = next(tmp_path.glob("*_1f320356.jsonl"))
    logged = read_exchanges(tmp_path, first.stem)
    assert [(it.user_input, it.end_reason) for it in logged] == [("a", "result")]
    assert "conversation_reset" in [message.type for it in exchanges(logger) for message in it.messages]


def test_an_input_is_logged_in_the_session_that_answers(tmp_path: Path) -> None:
    logger = log_all(SessionLogger(tmp_path), "a", init(), result(1), "b", init(OTHER), result(1, OTHER))
    logger.close()
    assert ends(logger) == [("b", "result")]
    assert len(names(tmp_path)) == 2
    first = next(tmp_path.glob("*_1f320356.jsonl"))
    assert len(read_exchanges(tmp_path, first.stem)) == 1


# ---------------------------------------------------------------- names, resume


def test_a_log_has_a_provisional_name_until_the_session_id_arrives(tmp_path: Path) -> None:
    logger = SessionLogger(tmp_path)
    assert (logger.path, logger.session_id) == (None, None)
    logger.log_user_input("go")
    assert logger.path and "unnamed" in logger.path.name
    assert [it.user_input for it in exchanges(logger)] == ["go"]
    logger.log(init())
    assert logger.path.name.endswith("_1f320356.jsonl")
    assert all("unnamed" not in it for it in names(tmp_path))
    logger.close()


def test_a_session_without_an_id_is_recorded(tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as logger:
        logger.log_user_input("go")
    start, exchange, end = records(logger)
    assert isinstance(start, SessionStart) and (start.session_id, start.model) == (None, None)
    assert isinstance(exchange, ExchangeRecord) and isinstance(end, SessionEnd)


def test_a_resumed_session_continues_in_its_file(tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as first:
        log_all(first, "a", init(), said("1"), result(0.1))
    assert first.path is not None
    renamed = first.path.rename(first.path.with_name("my talk.jsonl"))
    with SessionLogger(tmp_path, resumed_from=SESSION) as second:
        log_all(second, "b", init(), said("2"), result(0.3))
    assert second.path == renamed
    kinds = [type(it) for it in records(second)]
    assert kinds == [SessionStart, ExchangeRecord, SessionEnd, Resume, ExchangeRecord, SessionEnd]
    assert [it.exchange for it in exchanges(second)] == [1, 2]
    end = records(second)[-1]
    assert isinstance(end, SessionEnd) and end.total_exchanges == 2


def test_sessions_with_the_same_short_id_get_separate_files(tmp_path: Path) -> None:
    twin = SESSION[:8] + OTHER[8:-1] + "0"
    loggers = [log_all(SessionLogger(tmp_path), "a", init(it)) for it in (SESSION, twin)]
    paths = [it.path for it in loggers]
    for logger in loggers:
        logger.close()
    assert paths[0] is not None
    assert paths[1] is not None
    assert paths[0] != paths[1]
    if paths[0].stem[:15] == paths[1].stem[:15]:  # begun in the same second
        assert paths[1].stem == paths[0].stem + "-2"


def test_logging_after_close_resumes_the_session(tmp_path: Path) -> None:
    logger = log_all(SessionLogger(tmp_path), "a", init(), result(1))
    logger.close()
    logger.close()
    log_all(logger, "b", init(), result(2)).close("bored")
    assert ends(logger) == [("a", "result"), ("b", "result")]
    end = records(logger)[-1]
    assert isinstance(end, SessionEnd) and (end.reason, end.total_exchanges) == ("bored", 2)


def test_a_session_id_with_path_separators_stays_in_the_folder(tmp_path: Path) -> None:
    with SessionLogger(tmp_path / "sessions") as logger:
        log_all(logger, "a", init("../../x"), result(1, "../../x"))
    assert logger.path and logger.path.parent == tmp_path / "sessions"
    assert logger.path.exists()


# ---------------------------------------------------------------- never harm the agent


def test_secrets_are_redacted_before_writing(tmp_path: Path) -> None:
    logger = SessionLogger(tmp_path / "s")
    log_all(logger, f"my key is {KEY}", init(), said(f"{KEY}!"))
    on_disk = b"".join(it.read_bytes() for it in (tmp_path / "s").glob("*.jsonl*"))
    assert b"my key is sk-ant-" in on_disk and KEY.encode() not in on_disk
    log_all(logger, result(0)).close(f"the API did not take {KEY}")
    assert logger.path and KEY.encode() not in logger.path.read_bytes()
    assert b"the API did not take sk-ant-" in logger.path.read_bytes()
    [exchange] = exchanges(logger)
    assert KEY not in (exchange.user_input or "")
    assert [(it.place, it.rule) for it in exchange.redactions or []] == [
        ("user_input", "anthropic"), ("messages[0]", "anthropic"), ("messages[0]", "anthropic"),
    ]  # fmt: skip


def in_the_way(tmp_path: Path) -> Path:
    """A file where the folder should be: nothing can be written, whoever asks."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "sessions"


def test_a_failing_disk_raises_no_exception_and_losses_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SessionLogger(in_the_way(tmp_path)) as logger:
        log_all(logger, "a", init(), said("1"), result(1), "b", init(), said("2"), result(2))
    assert logger.lost == 4  # start, two exchanges, end
    own = [it for it in caplog.records if it.name == "agent_logger"]
    assert len(own) == 1


def test_a_gap_record_counts_the_records_lost_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = log_all(SessionLogger(tmp_path), "a", init(), said("1"), result(1))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        log_all(logger, "b", init(), said("2"), result(2))
    assert logger.lost == 1
    log_all(logger, "c", init(), said("3"), result(3)).close()
    assert "b" not in [it.user_input for it in exchanges(logger)]
    assert sum(it.lost for it in records(logger) if isinstance(it, Gap)) == logger.lost


def test_a_strict_logger_raises_on_a_write_error(tmp_path: Path) -> None:
    logger = SessionLogger(in_the_way(tmp_path), strict=True)
    with pytest.raises(StoreError, match=r"unnamed.*Not a directory") as raised:
        logger.log_user_input("a")
    assert isinstance(raised.value.__cause__, NotADirectoryError)


def test_an_unusable_home_folder_does_not_stop_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home-file").write_text("")
    monkeypatch.setenv("AGENT_LOGGER_HOME", str(tmp_path / "home-file" / "x"))
    with SessionLogger(tmp_path / "s") as logger:
        log_all(logger, KEY, init(), result(1))
    assert logger.lost == 0
    assert KEY not in (exchanges(logger)[0].user_input or "")


def test_a_message_that_raises_on_access_counts_as_lost(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class BrokenMessage:
        content: str = ""

        def __getattribute__(self, name: str) -> Any:
            if name == "content":
                raise RuntimeError("no")
            return super().__getattribute__(name)

    with SessionLogger(tmp_path) as logger:
        log_all(logger, "a", init())
        logger.log(BrokenMessage())
        logger.log(result(1))
    assert (logger.lost, len(exchanges(logger))) == (1, 1)


def test_log_files_are_private_and_the_folder_is_registered(tmp_path: Path) -> None:
    with SessionLogger(tmp_path / "s") as logger:
        log_all(logger, "a", init(), result(1))
    assert logger.path
    assert stat.S_IMODE(logger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(logger.path.parent.stat().st_mode) == 0o700
    home = Path(os.environ["AGENT_LOGGER_HOME"])
    assert str(tmp_path / "s") in facts_path(home).read_text()


def test_threads_may_share_a_logger(tmp_path: Path) -> None:
    logger = log_all(SessionLogger(tmp_path), "a", init())

    def talk(name: int) -> None:
        for number in range(50):
            logger.log(said(f"{name}.{number}"))

    threads = [threading.Thread(target=talk, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log_all(logger, result(1)).close()
    [exchange] = exchanges(logger)
    texts = [it.text for it in exchange.messages if it.text]
    assert sorted(texts) == sorted(f"{name}.{number}" for name in range(8) for number in range(50))
    for name in range(8):
        own = [it for it in texts if it.startswith(f"{name}.")]
        assert own == sorted(own, key=lambda it: int(it.split(".")[1]))


# ---------------------------------------------------------------- async


def test_wrap_passes_messages_through_and_logs_prompts(tmp_path: Path) -> None:
    closed = []

    async def prompts() -> AsyncIterator[Line]:
        yield {"type": "user", "session_id": "", "message": {"role": "user", "content": "go"}}

    async def answers(given: AsyncIterator[Line]) -> AsyncIterator[Line]:
        try:
            async for _ in given:
                for message in (init(), said("1"), result(1)):
                    yield message
        finally:
            closed.append(True)

    async def main() -> SessionLogger:
        async with SessionLogger(tmp_path) as logger:
            got = [it["type"] async for it in logger.wrap(answers(logger.wrap(prompts())))]
        assert got == ["system", "assistant", "result"]
        return logger

    assert ends(asyncio.run(main())) == [("go", "result")]
    assert closed


def test_an_exception_sets_the_end_reason_to_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), SessionLogger(tmp_path) as logger:
        log_all(logger, "a", init())
        _ = 1 / 0
    end = records(logger)[-1]
    assert isinstance(end, SessionEnd) and end.reason == "error"


def test_the_package_exports_the_record_types() -> None:
    for name in ("SessionLogger", "SessionStart", "ExchangeRecord", "Message", "ExchangeStats", "SessionEnd"):
        assert name in dir(agent_logger) and getattr(agent_logger, name)


RESULTS = {
    "keys close together": ("sk" + "_live_A1b2C3d4E5f6G7h8 ") * 400_000,
    "long keys close together": ("sk" + "-ant-api03-" + "aB3-" * 24 + "\n") * 92_000,
    "heads of private keys": ("-----BEGIN " + "PRIVATE KEY-----\n") * 357_000,
    "bearer tokens": "Bearer A1b2C3d4E5f6G7h8 " * 400_000,
}


def caller_seconds(logger: SessionLogger, text: str) -> float:
    """How long the caller's thread works: the best of two."""
    message = {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "tool_result", "content": text}]},
    }
    times = []
    for _ in range(2):
        start = time.thread_time()
        logger.log(message)
        times.append(time.thread_time() - start)
    return min(times)


@pytest.mark.parametrize("name", RESULTS)
def test_a_hostile_result_takes_at_most_20_times_as_long_as_a_plain_one(name: str, tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as logger:
        plain = caller_seconds(logger, "The quick brown fox jumps over the lazy dog.\n" * 220_000)
        hostile = caller_seconds(logger, RESULTS[name])
    assert hostile < 20 * plain, f"{hostile:.2f} s, and {plain:.3f} s for plain text"
    assert logger.lost == 0


@pytest.mark.parametrize(("given", "stored"), [({"stdout": "x"}, b'{"stdout":"x"}'), (None, None)])
def test_the_structured_form_of_a_tools_result_is_kept_unless_there_is_none(
    given: object, stored: bytes | None, tmp_path: Path
) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    answered = {"type": "user", "session_id": SESSION, "message": {"role": "user", "content": [block]}}
    with SessionLogger(tmp_path, strict=True) as logger:
        log_all(logger, "go", init(), {**answered, "tool_use_result": given}, result(0))
    [exchange] = exchanges(logger)
    [told] = [it for it in exchange.messages if it.type == "result" and it.source == "tool"]
    assert (raw(told.tool_use_result) if told.tool_use_result else None) == stored


def test_a_writer_imports_no_reader_and_no_catalog() -> None:
    code = "import sys; from agent_logger import SessionLogger; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    unneeded = ("agent_logger.catalog", "agent_logger.agents.registry", "agent_logger.files.sealed", "backports.zstd")
    assert [name for name in loaded if name.startswith(unneeded)] == []
