"""Nothing that a client sends can stop the tracker."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.agents import registry
from agent_logger.proxy.tracking.identity import ANY_SESSION, GATEWAYS, RETRY_COUNT
from agent_logger.proxy.tracking.tracker import TrackedAnswer
from tests.hostile import ODD_VALUES
from tests.proxy.tracking.captures import new_tracker
from tests.proxy.tracking.test_classify import asked

AGENTS = ["claude-cli/2", "codex_exec", "GeminiCLI", "opencode/1", "x"]
NAMES = [
    *(RETRY_COUNT, "originator", ANY_SESSION, *GATEWAYS),
    *(name for agent in registry.AGENTS for name in agent.wire.session_headers),
]
PATHS = [
    "/v1/messages",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1beta/models/g:generateContent",
    "/",
    "",
    "?",
]
KEYS = ["messages", "input", "contents", "tools", "metadata", "user_id", "model", "output_config", "format"]
KEYS += ["stop_sequences", "generationConfig", "generate", "previous_response_id", "prompt_cache_key", "role"]
KEYS += [
    "content",
    "text",
    "type",
    "parts",
    "tool_calls",
    "functionCall",
    "functionResponse",
    "thought",
    "output",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, min_size=1, max_size=6),
    max_leaves=15,
)
USER = {"role": "user", "content": "x"}
VALID = {"messages": [USER], "input": [USER], "contents": [{"role": "user", "parts": [{"text": "x"}]}]}
OBJECT = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PATHS), OBJECT | JSON, st.sampled_from(AGENTS), JSON), max_size=4),
    st.dictionaries(st.sampled_from(NAMES), st.text(max_size=5), max_size=2),
)
def test_malformed_calls_raise_no_exception(calls: list[tuple[str, Any, str, Any]], headers: dict[str, str]) -> None:
    tracker = new_tracker()
    for path, body, agent, answer in calls:
        decision = tracker.request(
            asked(path=path, body=json.dumps(body).encode(), headers={**headers, "user-agent": agent})
        )
        message = answer if isinstance(answer, dict) else None
        tracker.answered(
            decision, TrackedAnswer(ts="2026-11-15T10:15:00.000Z", status=200, complete=True, message=message)
        )


NO_TOOLS: dict[str, Any] = {}
TOOLS: dict[str, Any] = {"tools": [{}]}
ODD = [*ODD_VALUES, {"format": 3}, {"user_id": []}]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("key", KEYS[:15])
def test_malformed_field_values_raise_no_exception(key: str, agent: str) -> None:
    for odd in ODD:
        for path in PATHS:
            for other in NO_TOOLS, TOOLS:
                body = {**VALID, **other, key: odd}
                new_tracker().request(asked(path=path, body=body, headers={"user-agent": agent, "session-id": "s"}))
                new_tracker().request(asked(path=path, body=body, headers={"user-agent": agent}))
