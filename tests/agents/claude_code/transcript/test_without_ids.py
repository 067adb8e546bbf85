"""Tool lines with the fewest fields that the specification asks for: no ids."""

from typing import Any

import pytest

from agent_logger.agents.claude_code.transcript.session import session_of
from agent_logger.catalog.ledger.metrics import count_tool_calls, metrics_of
from agent_logger.model.session import Session
from tests.agents.claude_code.claude_files import source_of


def at(second: int) -> str:
    return f"2026-01-26T10:00:{second:02}.000Z"


def use(second: int, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": {"param": name}, "timestamp": at(second), **more}


def result(second: int, content: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "content": content, "timestamp": at(second), **more}


ASKED: list[dict[str, Any]] = [
    {"type": "user", "message": "User prompt", "timestamp": at(0)},
    {
        "type": "assistant",
        "message": {"usage": {"input_tokens": 100, "output_tokens": 50}},
        "timestamp": at(5),
    },
]


def read(*lines: dict[str, Any]) -> Session:
    return session_of(source_of([*ASKED, *lines]))


def calls_of(session: Session) -> list[tuple[str | None, str | None]]:
    return [(call.name, call.result) for call in session.tool_calls]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([use(6, "One"), result(7, "1"), use(8, "Two"), result(9, "2")], id="one after the other"),
        pytest.param([use(6, "One"), use(7, "Two"), result(8, "1"), result(9, "2")], id="side by side"),
        pytest.param(
            [
                use(6, "One"),
                use(7, "Two", tool_use_id="toolu_2"),
                result(8, "2", tool_use_id="toolu_2"),
                result(9, "1"),
            ],
            id="one of them with an id",
        ),
    ],
)
def test_tool_lines_without_an_id_are_matched_to_results_in_order(
    lines: list[dict[str, Any]],
) -> None:
    session = read(*lines)
    assert calls_of(session) == [("One", "1"), ("Two", "2")]
    assert count_tool_calls(session) == (2, 0)
    assert [(it.name, it.calls) for it in metrics_of(session).tools] == [("One", 1), ("Two", 1)]


def test_tool_blocks_without_an_id_are_matched_to_results_in_order() -> None:
    asked = {
        "type": "assistant",
        "timestamp": at(6),
        "message": {"content": [{"type": "tool_use", "name": "One"}]},
    }
    told = {
        "type": "user",
        "timestamp": at(7),
        "message": {"content": [{"type": "tool_result", "content": "1"}]},
    }
    session = read(asked, told)
    assert calls_of(session) == [("One", "1")]
    assert count_tool_calls(session) == (1, 0)


def test_a_tool_result_without_a_call_is_a_separate_tool_call() -> None:
    session = read(use(6, "One"), result(7, "1"), result(8, "2", is_error=True))
    assert calls_of(session) == [("One", "1"), (None, "2")]
    assert count_tool_calls(session) == (2, 1)
