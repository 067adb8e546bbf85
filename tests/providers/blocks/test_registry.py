"""Messages of every dialect as blocks: what models answer, what clients send back, and what is not as it should be."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.session import Block
from agent_logger.providers.blocks.registry import answer_blocks, by_of, message_blocks, message_content
from agent_logger.providers.registry import ANTHROPIC, CHAT, GEMINI, OLLAMA, RESPONSES, Dialect
from tests.hostile import ODD_VALUES


def short(blocks: list[Block]) -> list[str]:
    return [
        f"{block.kind} {block.name or ''}{block.input if block.kind == 'tool_use' else block.text}"
        + ("!" if block.is_error else "")
        for block in blocks
    ]


def chat(**message: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **message}


ANSWERED = [
    pytest.param(ANTHROPIC, {"content": "Hi"}, ["text Hi"], id="a text alone"),
    pytest.param(
        ANTHROPIC,
        {
            "content": [
                {"type": "server_tool_use", "name": "web", "partial_json": '{"q'},
                {"type": "new", "x": 1},
            ]
        },
        ['tool_use web{"q', "other "],
        id="an input that was cut, and a block that is not known",
    ),
    pytest.param(
        ANTHROPIC,
        {"content": [{"type": "web_search_tool_result", "content": {"type": "e", "error_code": "late"}}]},
        ['tool_result {"type":"e","error_code":"late"}!'],
        id="a server's tool that failed",
    ),
    pytest.param(CHAT, chat(reasoning="So.", content="Hi"), ["thinking So.", "text Hi"], id="a thought"),
    pytest.param(CHAT, chat(reasoning={"x": 1}, refusal="No."), ["text No."], id="a refusal, and no thought"),
    pytest.param(
        CHAT,
        chat(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "So."}]},
                {"type": "refusal", "refusal": "No."},
            ]
        ),
        ["thinking So.", "text No."],
        id="parts, as Mistral has them",
    ),
    pytest.param(
        CHAT,
        chat(
            tool_calls=[
                {"function": {"name": "f", "arguments": '{"a":1}'}},
                {"custom": {"name": "g", "input": "x"}},
                {},
            ]
        ),
        ["tool_use f{'a': 1}", "tool_use gx", "tool_use None"],
        id="calls of tools",
    ),
    pytest.param(CHAT, chat(function_call={"name": "f", "arguments": "{"}), ["tool_use f{"], id="before tools"),
    pytest.param(OLLAMA, chat(thinking="So.", content="Hi"), ["thinking So.", "text Hi"], id="Ollama's thought"),
    pytest.param(
        RESPONSES,
        {
            "output": [
                {"type": "reasoning", "summary": [{"text": "So."}]},
                {
                    "type": "mcp_call",
                    "id": "m",
                    "name": "f",
                    "arguments": "{}",
                    "output": "o",
                    "error": "late",
                },
                {"type": "web_search_call", "action": {"q": 1}},
            ]
        },
        ["thinking So.", "tool_use f{}", "tool_result o!", "tool_use web_search{'q': 1}", "tool_result "],
        id="tools that the provider runs",
    ),
    pytest.param(
        GEMINI,
        {
            "parts": [
                {"text": "So.", "thought": True},
                {"functionCall": {"name": "f", "args": {"a": 1}}},
                {"fileData": {"mimeType": "image/png"}},
            ]
        },
        ["thinking So.", "tool_use f{'a': 1}", "image "],
        id="parts of Gemini's",
    ),
]


@pytest.mark.parametrize(("dialect", "message", "blocks"), ANSWERED)
def test_model_answers_are_converted_to_blocks(dialect: Dialect, message: dict[str, Any], blocks: list[str]) -> None:
    assert short(answer_blocks(dialect, message)) == blocks


SENT = [
    pytest.param(CHAT, {"role": "tool", "tool_call_id": "c", "content": "out"}, ["tool_result out"], id="a result"),
    pytest.param(CHAT, {"role": "system", "content": "Be kind."}, ["text Be kind."], id="instructions"),
    pytest.param(CHAT, chat(content="Hi"), ["text Hi"], id="the model's own words"),
    pytest.param(
        OLLAMA,
        {"role": "tool", "tool_name": "f", "content": "out"},
        ["tool_result fout"],
        id="Ollama's result",
    ),
    pytest.param(RESPONSES, {"type": "function_call", "name": "f", "arguments": "{}"}, ["tool_use f{}"], id="a call"),
    pytest.param(
        RESPONSES,
        {"type": "function_call_output", "output": '{"output":"no","metadata":{"exit_code":2}}'},
        ["tool_result no!"],
        id="a command that failed",
    ),
    pytest.param(
        RESPONSES,
        {"type": "custom_tool_call_output", "output": {"success": False}},
        ['tool_result {"success":false}!'],
        id="a tool that says so",
    ),
    pytest.param(
        GEMINI,
        {"parts": [{"functionResponse": {"name": "f", "response": {"error": "late"}}}]},
        ["tool_result flate!"],
        id="a function that failed",
    ),
]


@pytest.mark.parametrize(("dialect", "message", "blocks"), SENT)
def test_client_messages_are_converted_to_blocks(dialect: Dialect, message: dict[str, Any], blocks: list[str]) -> None:
    assert short(message_blocks(dialect, message)) == blocks


@given(
    st.sampled_from([(it.values[0], it.values[1]) for it in (*ANSWERED, *SENT)]),
    st.data(),
)
def test_a_malformed_value_does_not_affect_other_blocks(
    case: tuple[Dialect, dict[str, Any]], data: st.DataObject
) -> None:
    """Nothing is raised, and what stands beside it is told as before."""
    dialect, message = case
    name = data.draw(st.sampled_from(["content", "parts", "output", "tool_calls", "extra"]))
    odd = {**message, name: data.draw(st.sampled_from(ODD_VALUES))}
    before = short(answer_blocks(dialect, message))
    if name == "extra":
        assert short(answer_blocks(dialect, odd)) == before
    for read in (answer_blocks, message_blocks):
        assert all(isinstance(it, Block) for it in read(dialect, odd))
    raw = msgspec.Raw(msgspec.json.encode({key: it for key, it in odd.items() if it != "\ud800"}))
    assert message_content(dialect, raw).by == by_of(dialect, raw)
