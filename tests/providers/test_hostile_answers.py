"""Whatever an upstream sends, reading it does not raise, and what is made of it can be written down."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.providers import answer as answers
from agent_logger.providers.answer import Answer
from agent_logger.providers.registry import ANTHROPIC, CHAT, GEMINI, RESPONSES, Dialect

DIALECTS = {dialect.name: dialect for dialect in (ANTHROPIC, CHAT, RESPONSES, GEMINI)}
# Other work on the machine is no fault of what is tested.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ALL = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)

# The words that readers look for, so that random JSON finds its way into them.
NAMES = tuple(
    """type index delta message content content_block text thinking signature partial_json input usage error code id
    model choices finish_reason tool_calls function arguments name role refusal reasoning_content x_groq
    response output output_index content_index summary_index item part status incomplete_details reason
    candidates parts thought thoughtSignature functionCall finishReason usageMetadata responseId promptFeedback
    input_tokens output_tokens cache_creation prompt_tokens cached_tokens promptTokenCount citation""".split()  # noqa: SIM905
)
VALUES = tuple(
    """message_start message_delta message_stop content_block_start content_block_delta error ping
    text_delta thinking_delta signature_delta input_json_delta citations_delta tool_use
    response.created response.completed response.failed response.output_item.added response.output_item.done
    response.content_part.added response.content_part.done response.output_text.delta
    response.reasoning_summary_text.delta response.function_call_arguments.delta message STOP [DONE]""".split()  # noqa: SIM905
)
LEAVES = (
    st.sampled_from(VALUES)
    | st.sampled_from([None, True, 0, 1, -1, 10**18, 10**40, 1.5, "", "{", '{"a":1}', "\ud83d", "\udc00", "[" * 500])
    | st.text(max_size=4)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)
EVENT = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5) | JSON
TYPED = st.builds(lambda kind, event: {**event, "type": kind}, st.sampled_from(VALUES), st.dictionaries(
    st.sampled_from(NAMES), JSON, max_size=5
))  # fmt: skip


def cut(dialect: Dialect, data: bytes, size: int) -> Answer:
    reader = dialect.reader()
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    return reader.finish()


def judge(dialect: Dialect, data: bytes) -> None:
    answer = dialect.read(data)
    msgspec.json.encode(answer)
    for word in (answer.message_id, answer.model, answer.stop_reason, answer.service_tier):
        assert word is None or isinstance(word, str)
    assert repr(cut(dialect, data, 3)) == repr(answer)


@ALL
@PATIENT
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_without_error(dialect: Dialect, data: bytes) -> None:
    judge(dialect, data)
    judge(dialect, b"data: " + data + b"\n\n")
    judge(dialect, b"{" + data)
    reader = dialect.reader(messages=True)
    reader.feed(data)
    msgspec.json.encode(reader.finish())


@ALL
@PATIENT
@given(events=st.lists(TYPED | EVENT, max_size=6))
def test_any_events_are_read_without_error(dialect: Dialect, events: list[Any]) -> None:
    texts = [json.dumps(event).encode() for event in events]
    judge(dialect, b"".join(b"data: %b\n\n" % text for text in texts))
    judge(dialect, b"[%b]" % b",".join(texts))
    reader = dialect.reader(messages=True)
    for text in texts:
        reader.feed(text)
        judge(dialect, text)
    msgspec.json.encode(reader.finish())


DEEP = b"[" * 100_000
ODD = [
    pytest.param(b'{"type":"message_start","message":' + DEEP, id="deep"),
    pytest.param(b'{"type":"message_delta","usage":{"output_tokens":1e400}}', id="beyond a double"),
    pytest.param(b'{"type":"content_block_delta","index":' + b"9" * 5_000 + b"}", id="a number without end"),
    pytest.param(b'{"type":"content_block_delta","index":NaN}', id="NaN"),
    pytest.param(b'{"type":"content_block_delta","delta":{"text":"\xff"}}', id="not UTF-8"),
    pytest.param(b'{"type":"content_block_delta","delta":[]}', id="another type"),
    pytest.param(b'{"type":"content_block_delta"}', id="nothing in it"),
    pytest.param(b"ping", id="not JSON"),
]


@pytest.mark.parametrize("odd", ODD)
def test_an_unreadable_event_is_skipped_and_makes_the_answer_incomplete(odd: bytes) -> None:
    before = b'data: {"type":"message_start","message":{"id":"msg_1","content":[]}}\n\n'
    after = b'data: {"type":"message_stop"}\n\n'
    assert ANTHROPIC.read(before + after).complete
    answer = ANTHROPIC.read(before + b"data: " + odd + b"\n\n" + after)
    assert (answer.message, answer.complete) == ({"id": "msg_1", "content": []}, False)


@ALL
@pytest.mark.parametrize("levels", [120, 900])
def test_a_message_nested_too_deeply_is_dropped(dialect: Dialect, levels: int) -> None:
    deep = b"[" * levels + b"]" * levels
    body = {
        ANTHROPIC: b'{"content":[{"type":"tool_use","input":%b}]}',
        CHAT: b'{"choices":[{"message":{"content":%b}}]}',
        RESPONSES: b'{"output":[{"content":%b}]}',
        GEMINI: b'{"candidates":[{"content":{"parts":[{"functionCall":%b}]},"finishReason":"STOP"}]}',
    }[dialect]
    answer = dialect.read(body % deep)
    assert (answer.complete, answer.message is not None) == ((levels == 120,) * 2)


def test_a_surrogate_pair_split_across_deltas_is_joined() -> None:
    pieces = [r"\ud83c", r"\udf89 x", r"\ud83c"]
    deltas = [b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % piece.encode() for piece in pieces]
    answer = CHAT.read(b"".join([*deltas, b"data: [DONE]\n\n"]))
    assert answer == Answer(message={"content": "\U0001f389 x\ufffd"}, complete=True)


def test_a_lone_surrogate_in_a_tool_input_is_replaced() -> None:
    begun = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}}}\n\n'
    told = json.dumps({"type": "content_block_delta", "delta": {"partial_json": r'{"a":"\ud83c x"}'}}).encode()
    answer = ANTHROPIC.read(begun + b"data: " + told + b"\n\n")
    assert answer.message
    assert msgspec.json.encode(answer.message["content"][0]["input"]) == b'{"a":"\xef\xbf\xbd x"}'


def test_an_array_with_a_lone_surrogate_is_complete() -> None:
    body = rb'[{"candidates":[{"content":{"parts":[{"text":"\ud83c"}]},"finishReason":"STOP"}]}]'
    assert GEMINI.read(body).complete
    assert GEMINI.read(body).message == {"role": "model", "parts": [{"text": "\ufffd"}]}


@ALL
def test_an_answer_over_the_size_limit_is_incomplete(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LIMIT_BYTES", 1000)
    body = b'{"error":{"message":"No"}}'
    assert cut(dialect, body + b" " * 900, 100).complete
    assert cut(dialect, body + b" " * 1000, 100).error
    assert not cut(dialect, body + b" " * 1000, 100).complete


def test_non_finite_token_counts_make_usage_unknown() -> None:
    told = rb'{"choices":[],"usage":{"prompt_tokens":1e400,"completion_tokens":2.0},"id":"\ud83c"}'
    answer = CHAT.read(b"data: " + told + b"\n\n")
    assert answer.usage is None  # not 2 tokens: what the prompt took is unknown
    assert answer.message_id == "\ufffd"
    answer = CHAT.read(b"data: " + told.replace(b"1e400", b"NaN") + b"\n\ndata: [DONE]\n\n")
    assert (answer.usage, answer.complete) == (None, False)


@ALL
@pytest.mark.parametrize("piece", [b"\n", b"\r", b" ", b"x", b"[", b"data: x\n", b"data: [\n"])
def test_feeding_many_small_pieces_takes_linear_time(dialect: Dialect, piece: bytes) -> None:
    """Quadratic, so many pieces would take longer than a test may."""
    reader = dialect.reader()
    for _ in range(100_000):
        reader.feed(piece)
    reader.finish()
