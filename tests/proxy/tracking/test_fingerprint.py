"""One conversation has one fingerprint, however a client writes it; two have two."""

import hmac
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.providers.request_body import Api, read
from agent_logger.proxy.tracking.fingerprint import Fingerprints, hex_text, state_of

KEY = bytes(range(32))


def state(api: Api, *units: Any, fingerprints: Fingerprints | None = None) -> bytes:
    it = fingerprints or Fingerprints(KEY)
    rolled = it.roll(api, it.start(api), [msgspec.Raw(json.dumps(unit).encode()) for unit in units])
    return rolled.states[-1]


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


CACHED = {"cache_control": {"type": "ephemeral"}}
WRITE: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"a": 1}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1", "content": [text("done")]}
ITEM = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "x", "annotations": []}],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": "{}"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
FUNCTION = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": '{"a": 1}'}}
GEMINI_CALL = {"functionCall": {"name": "ls", "args": {"a": 1}}}
GEMINI_RESULT = {"functionResponse": {"name": "ls", "response": {"output": "x"}}}


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


SAME: list[Any] = [
    pytest.param(
        "gemini",
        content("model", {"text": "Hm", "thought": True}, GEMINI_CALL),
        content("model", {"text": "Hm\n[Thought: true]"}, GEMINI_CALL),
        id="a thought that is sent back as text after a resume",
    ),
    pytest.param("messages", user("x"), user([text("x")]), id="a string is one text block"),
    pytest.param("messages", user([text("x", **CACHED)]), user("x"), id="cache_control"),
    pytest.param(
        "messages",
        user([{**RESULT, "content": [text("done", **CACHED)], **CACHED}]),
        user([RESULT]),
        id="cache_control in a tool result",
    ),
    pytest.param("messages", said([WRITE]), said([{**WRITE, "input": {"a": 1, "b": False}}]), id="a tool's input"),
    pytest.param("messages", said([WRITE]), said([{**WRITE, **CACHED}]), id="cache_control of a tool use"),
    pytest.param("messages", said([text("x", citations=None)]), said("x"), id="null fields"),
    pytest.param("messages", said([text(""), WRITE]), said([WRITE]), id="an empty text of the model"),
    pytest.param("messages", user("x", output_config={"effort": "low"}), user("x"), id="fields beside the content"),
    pytest.param("messages", {"content": "x", "role": "user"}, user("x"), id="the order of keys"),
    pytest.param("chat", said(None, tool_calls=[FUNCTION]), said("", tool_calls=[FUNCTION]), id="no content"),
    pytest.param("chat", said(None, tool_calls=[FUNCTION]), {"role": "assistant", "tool_calls": [FUNCTION]}, id="none"),
    pytest.param(
        "chat",
        said("x", tool_calls=[FUNCTION]),
        said("x", tool_calls=[{**FUNCTION, "function": {"name": "write", "arguments": '{"a":1}'}}]),
        id="arguments serialised anew",
    ),
    pytest.param("chat", said("x", refusal=None, tool_calls=[]), said("x"), id="what only answers have"),
    pytest.param("responses", {**ITEM, "id": "msg_1", "status": "completed"}, ITEM, id="ids and status"),
    pytest.param("responses", {"role": "user", "content": "x"}, {**user([text("x")]), "type": "message"}, id="short"),
    pytest.param("responses", REASONING, {**REASONING, "content": None}, id="reasoning gains null"),
    pytest.param("responses", CALL, {**CALL, "arguments": '{"a":1}', "status": "completed"}, id="a function call"),
    pytest.param("responses", user("x"), user("x", internal_chat_message_metadata_passthrough={}), id="Codex's own"),
    pytest.param(
        "responses",
        REASONING,
        {**REASONING, "internal_chat_message_metadata_passthrough": {"turn_id": "t"}},
        id="Codex's own beside reasoning",
    ),
    pytest.param(
        "gemini",
        content("model", {"functionCall": {**GEMINI_CALL["functionCall"], "id": "1"}, "thoughtSignature": "s"}),
        content("model", GEMINI_CALL),
        id="a function call of Gemini",
    ),
    pytest.param(
        "gemini",
        content("user", GEMINI_RESULT, {"functionResponse": {**GEMINI_RESULT["functionResponse"], "id": "1"}}),
        content("user", GEMINI_RESULT),
        id="a result that is sent twice",
    ),
    pytest.param(
        "gemini",
        content("model", {"text": "hm", "thought": True}, {"text": "a"}, {"text": "b"}),
        content("model", {"text": "ab"}),
        id="thoughts and cut texts",
    ),
    pytest.param(
        "gemini",
        content("model", {"text": "a", "thoughtSignature": "s"}),
        content("model", {"text": "a"}),
        id="a signature of Gemini",
    ),
]
DIFFERENT: list[Any] = [
    pytest.param("messages", user("x"), said("x"), id="another role"),
    pytest.param("messages", user("x"), user([text("x"), text("")]), id="an empty text of the user"),
    pytest.param("messages", said([WRITE]), said([{**WRITE, "id": "t2"}]), id="another tool use"),
    pytest.param("messages", said([WRITE]), said([{**WRITE, "name": "Read"}]), id="another tool"),
    pytest.param(
        "messages",
        said([{"type": "thinking", "thinking": "a", "signature": "s"}]),
        said([{"type": "thinking", "thinking": "a", "signature": "t"}]),
        id="another thought",
    ),
    pytest.param(
        "messages",
        user([{**RESULT, "content": [{"type": "json", "value": CACHED}]}]),
        user([{**RESULT, "content": [{"type": "json", "value": {}}]}]),
        id="what only looks like cache_control",
    ),
    pytest.param(
        "chat",
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "content": "x"},
        id="id",
    ),
    pytest.param("responses", CALL, {**CALL, "call_id": "c2"}, id="another function call"),
    pytest.param("responses", REASONING, {**REASONING, "encrypted_content": "f"}, id="other reasoning"),
    pytest.param("gemini", content("user", {"text": "ab"}), content("user", {"text": "a"}, {"text": "b"}), id="parts"),
]


@pytest.mark.parametrize(("api", "one", "other"), SAME)
def test_client_rewrites_of_a_message_do_not_change_the_fingerprint(api: Api, one: Any, other: Any) -> None:
    assert state(api, one) == state(api, other)


@pytest.mark.parametrize(("api", "one", "other"), DIFFERENT)
def test_other_changes_change_the_fingerprint(api: Api, one: Any, other: Any) -> None:
    assert state(api, one) != state(api, other)


ANSWERS: list[Any] = [
    pytest.param(
        "messages",
        {"id": "m", "role": "assistant", "content": [text("x"), WRITE]},
        [said([text("x"), WRITE])],
    ),
    pytest.param("messages", {"content": [text("x")]}, [said("x")]),
    pytest.param("chat", {"choices": [{"message": said("x", refusal=None)}]}, [said("x")]),
    pytest.param("chat", said("x", tool_calls=[FUNCTION]), [said("x", tool_calls=[FUNCTION])]),
    pytest.param("responses", {"id": "r", "output": [REASONING, ITEM, CALL]}, [REASONING, ITEM, CALL]),
    pytest.param(
        "gemini",
        {"candidates": [{"content": content("model", {"text": "x"})}]},
        [content("model", {"text": "x"})],
    ),
    pytest.param("gemini", {"parts": [{"text": "x"}]}, [content("model", {"text": "x"})]),
]


@pytest.mark.parametrize(("api", "answer", "sent_back"), ANSWERS)
def test_the_state_after_an_answer_equals_the_prefix_of_the_next_call(api: Api, answer: Any, sent_back: Any) -> None:
    fingerprints = Fingerprints(KEY)
    asked = content("user", {"text": "q"}) if api == "gemini" else user("q")
    after = fingerprints.after(api, state(api, asked), answer)
    assert after == state(api, asked, *sent_back)


@pytest.mark.parametrize(
    "answer", [{}, {"content": []}, {"output": []}, {"choices": []}, {"choices": 3}, {"output": [1]}]
)
@pytest.mark.parametrize("api", ["messages", "chat", "responses", "gemini"])
def test_an_empty_answer_has_no_state(api: Api, answer: Any) -> None:
    fingerprints = Fingerprints(KEY)
    assert fingerprints.after(api, fingerprints.start(api), answer) is None


def test_a_fingerprint_is_a_chained_hmac_of_canonical_json() -> None:
    def chained(before: bytes, data: bytes) -> bytes:
        return hmac.digest(KEY, before + data, "sha256")

    start = hmac.digest(KEY, b"v1:messages", "sha256")
    first = chained(start, b'{"content":[{"text":"h\xc3\xa9","type":"text"}],"role":"user"}')
    second = chained(first, b'{"content":[{"text":"x","type":"text"}],"role":"assistant"}')
    assert state("messages", user("h\u00e9"), said("x")) == second
    assert hex_text(second) == "v1:" + second.hex()
    assert state_of(hex_text(second)) == second
    assert [state_of(it) for it in (None, "v2:00", "v1:zz", "00")] == [None] * 4


def test_cached_messages_give_the_same_fingerprint() -> None:
    it = Fingerprints(KEY)
    units = [user("a"), said("b"), user("c")]
    assert (
        state("messages", *units, fingerprints=it)
        == state("messages", *units, fingerprints=it)
        == state("messages", *units)
    )
    assert state("messages", user("a"), user("c"), fingerprints=it) == state("messages", user("a"), user("c"))
    assert state("chat", *units, fingerprints=it) != state("messages", *units)


def test_messages_with_lone_surrogates_are_fingerprinted() -> None:
    body = b'{"messages":[{"role":"user","content":"cut \\ud83d here"}]}'
    parsed = read(body)
    assert parsed
    it = Fingerprints(KEY)
    rolled = it.roll("messages", it.start("messages"), parsed.units("messages"))
    other = read(body.replace(b"\\ud83d", b"\\ud83e"))
    assert other
    assert rolled.states != it.roll("messages", it.start("messages"), other.units("messages")).states
    after = it.after("messages", rolled.states[-1], said("half \ud83d"))
    echoed = read(body[:-2] + b',{"role":"assistant","content":"half \\ud83d"}]}')
    assert echoed
    assert it.roll("messages", it.start("messages"), echoed.units("messages")).states[-1] == after


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "function", "parts", "functionCall"])
            | st.sampled_from(["functionResponse", "id", "output", "choices", "message", "candidates", "thought"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(["messages", "chat", "responses", "gemini"]), st.lists(JSON, max_size=4), JSON)
def test_messages_of_any_shape_raise_no_exception(api: Api, units: list[Any], answer: Any) -> None:
    it = Fingerprints(KEY)
    raws = [msgspec.Raw(json.dumps(unit).encode()) for unit in units]
    rolled = it.roll(api, it.start(api), raws)
    assert rolled.states == Fingerprints(KEY).roll(api, it.start(api), raws).states
    if isinstance(answer, dict):
        it.after(api, it.start(api), answer)


@given(st.binary(max_size=40) | JSON.map(lambda it: json.dumps(it).encode()))
def test_any_request_body_is_read_without_error(data: bytes) -> None:
    body = read(data)
    assert body is None or list(body.units("messages")) is not None


def test_a_deeply_nested_body_is_rejected_without_error() -> None:
    deep = b'{"messages":[{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    assert read(deep) is None


def test_fingerprinting_half_a_megabyte_of_known_history_takes_under_5_ms() -> None:
    units = [user([text(f"{n} " + 'some "words"\n' * 90)]) for n in range(400)]
    data = json.dumps({"messages": units}).encode()
    assert len(data) > 500_000
    it = Fingerprints(KEY)

    def roll() -> float:
        began = time.process_time()
        body = read(data)
        assert body
        it.roll("messages", it.start("messages"), body.units("messages"))
        return time.process_time() - began

    roll()
    assert min(roll() for _ in range(10)) < 0.005  # about 1 ms where nobody else works
