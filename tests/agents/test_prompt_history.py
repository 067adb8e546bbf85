"""The histories of prompts that Claude Code and Codex keep."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_logger.agents.claude_code import prompt_history as claude_code
from agent_logger.agents.codex import prompt_history as codex
from agent_logger.agents.prompt_history import prompts_of, session_of
from agent_logger.agents.source_files import File
from agent_logger.model.session import Session
from tests.agents.foreign import DATA, broken, lines
from tests.hostile import ODD_VALUES

REAL = DATA / "claude-cli/2.1.325/interactive_tui/home/.claude/history.jsonl"
CODEX = {"session_id": "019c41d9-0000-7000-8000-000000000001", "ts": 1794726819, "text": "fix it"}


def read(data: bytes) -> dict[str, Session]:
    reader = codex if b'"ts"' in data else claude_code
    found = prompts_of(reader, File("history.jsonl", (), chunks=lambda: [data]))
    return {name: session_of("claude-code", name, prompts) for name, prompts in found.items()}


def typed(text: str, session: str = "s", **fields: Any) -> dict[str, Any]:
    return {"display": text, "pastedContents": {}, "timestamp": 1794726819045, "sessionId": session, **fields}


def test_a_session_from_the_prompt_history_is_marked_prompts_only() -> None:
    [session] = read(REAL.read_bytes()).values()
    assert session.prompts_only
    assert (session.id, session.project) == ("9d27d5ee-9684-4e56-a8ab-f109d29993a1", "/home/user/project")
    assert session.title == "Write a tiny poem to poem.md and check it"
    assert [it.user_input for it in session.exchanges] == [session.title, "thanks, what next?", "/exit"]
    assert {(it.complete, it.end_reason) for it in session.exchanges} == {(False, "lost")}
    assert session.started == datetime(2026, 11, 15, 7, 13, 39, 45000, UTC)
    assert (session.turns, session.cost.nano_usd, session.witnesses) == ([], None, frozenset())


def test_codex_history_times_are_seconds_and_both_session_id_keys_are_read() -> None:
    older = {"conversation_id": "older", "ts": 1794726820, "text": "and that"}
    told = read(lines(CODEX, older))
    assert {name: it.title for name, it in told.items()} == {
        CODEX["session_id"]: "fix it",
        "older": "and that",
    }
    assert told["older"].started == datetime(2026, 11, 15, 7, 13, 40, tzinfo=UTC)


def test_pasted_text_replaces_its_placeholder() -> None:
    pasted = {"1": {"id": 1, "type": "text", "content": "def f(): ..."}, "2": {"contentHash": "ab12"}}
    [session] = read(
        lines(typed("why [Pasted text #1 +3 lines] and [Pasted text #2]?", pastedContents=pasted))
    ).values()
    assert session.exchanges[0].user_input == "why def f(): ... and [Pasted text #2]?"


def test_client_commands_create_no_session_and_no_title() -> None:
    told = read(lines(typed("/exit", "only"), typed("/model opus", "both"), typed("hello", "both")))
    assert {name: (it.title, len(it.exchanges)) for name, it in told.items()} == {"both": ("hello", 2)}


@given(broken(lines(typed("hi"), CODEX).splitlines()), st.sampled_from(ODD_VALUES))
def test_reading_malformed_histories_never_raises(data: bytes, odd: Any) -> None:
    read(data)
    read(lines(typed("x", timestamp=odd), {**CODEX, "ts": odd}, typed("y", pastedContents={"1": odd})))
