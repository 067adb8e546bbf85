"""Qwen Code's chats: Claude Code's lines around Gemini's contents, and what telemetry said of each call."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_logger.agents.qwen_code import session as qwen_code
from agent_logger.agents.registry import agent_called, recognise, resume_command
from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Usage
from tests.agents.foreign import broken, lines, shown, source

ID = "38c8e15b-1614-4a4f-8b5c-0e2f6f0e1a11"


def line(kind: str, at: int, **more: Any) -> dict[str, Any]:
    head = {"uuid": f"u{at}", "parentUuid": f"u{at - 1}" if at else None, "sessionId": ID}
    return {**head, "timestamp": f"2026-11-15T20:00:{at:02}.000Z", "type": kind, "cwd": "/p", **more}


def parts(role: str, *them: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(them)}


def called(at: int, response: str, asked: int, answered: int, **more: Any) -> dict[str, Any]:
    counts = {"input_token_count": asked, "output_token_count": answered, "cached_content_token_count": 5}
    event = {
        "event.name": "qwen-code.api_response",
        "response_id": response,
        "model": "qwen3",
        **counts,
        **more,
    }
    return line("system", at, subtype="ui_telemetry", systemPayload={"uiEvent": event})


def answer(at: int, asked: int, answered: int, *them: dict[str, Any]) -> dict[str, Any]:
    counts = {"promptTokenCount": asked, "candidatesTokenCount": answered, "cachedContentTokenCount": 5}
    return line("assistant", at, model="qwen3", message=parts("model", *them), usageMetadata=counts)


CALL = {"functionCall": {"id": "call_1", "name": "read_file", "args": {"path": "a"}}}
GAVE = {"functionResponse": {"id": "call_1", "name": "read_file", "response": {"error": "not found"}}}
CHAT = lines(
    line("user", 0, provenance="real_user", message=parts("user", {"text": "Read a"})),
    called(1, "chatcmpl-1", 20, 3),
    answer(2, 20, 3, {"text": "I read.", "thought": True}, {"text": "I look."}, CALL),
    line("tool_result", 3, message=parts("user", GAVE)),
    called(4, "chatcmpl-2", 30, 4),
    answer(5, 30, 4, {"text": "It is not there."}),
    line("user", 6, provenance="system", message=parts("user", {"text": "a reminder"})),
    called(7, "chatcmpl-3", 8, 1, subagent_id="memory-1", response_text="Kept."),
    called(8, "chatcmpl-4", 9, 2),
)


def test_a_session_has_its_tool_calls_and_side_calls() -> None:
    session = qwen_code.session_of(source(CHAT))
    assert (session.id, session.agent, session.title, session.project) == (ID, "qwen-code", "Read a", "/p")
    assert shown(session) == [
        (
            "Read a",
            [["(I read.)", "I look.", ">read_file", "<failed"], ["It is not there."], ["Kept."]],
        )
    ]
    assert [(it.message_id, it.thread) for it in session.turns] == [
        ("chatcmpl-1", "main"),
        ("chatcmpl-2", "main"),
        ("chatcmpl-3", "agent:memory-1"),
        ("chatcmpl-4", "side"),
    ]
    assert resume_command(session.agent, session.id) == ["qwen", "--resume", ID]


def test_each_call_is_billed_once_with_cache_reads_separate() -> None:
    responses = list(qwen_code.responses_of(source(CHAT)))
    assert [(it.message_id, it.usage) for it in responses] == [
        (f"chatcmpl-{at}", Usage(input_tokens=asked - 5, output_tokens=answered, cache_read_tokens=5))
        for at, (asked, answered) in enumerate([(20, 3), (30, 4), (8, 1), (9, 2)], 1)
    ]
    session = qwen_code.session_of(source(CHAT))
    assert session.usage == sum((it.usage for it in responses if it.usage), Usage())


def test_a_response_without_telemetry_has_no_id_and_is_counted() -> None:
    chat = lines(line("user", 0, message=parts("user", {"text": "Hi"})), answer(1, 9, 2, {"text": "Hello."}))
    [turn] = qwen_code.session_of(source(chat)).turns
    assert (turn.message_id, turn.usage) == (
        None,
        Usage(input_tokens=4, output_tokens=2, cache_read_tokens=5),
    )


def test_a_qwen_code_chat_is_recognised_and_listed(home: Path) -> None:
    assert recognise(f"chats/{ID}.jsonl", CHAT) is agent_called("qwen-code")
    path = home / ".qwen" / "projects" / "-p" / "chats" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(CHAT)
    with Catalog.open(home / ".agent-logger") as catalog:
        [found] = catalog.sessions()
    assert (found.id, found.agent, found.turns, found.exchanges) == (ID, "qwen-code", 4, 1)


@given(main=broken([it for it in CHAT.split(b"\n") if it]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_reading_damaged_chats_never_raises(main: bytes) -> None:
    session = qwen_code.session_of(source(main))
    assert session.agent == "qwen-code"
    assert len(list(qwen_code.responses_of(source(main)))) <= len(session.turns)


@pytest.mark.parametrize("first", [b"", b'{"type":"user"}\n', b"\xff"])
def test_other_files_are_not_recognised_as_qwen_code(first: bytes) -> None:
    assert recognise(f"chats/{ID}.jsonl", first) is not agent_called("qwen-code")
