"""What real clients were answered is rejoined to what the fake API was told to say."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_logger.model.session import Usage
from agent_logger.providers.answer import Answer
from agent_logger.providers.registry import ANTHROPIC, CHAT, GEMINI, RESPONSES, Dialect
from tests.providers.captures import Capture, Json, answered, captures

ANSWERED = answered()
CALLS = pytest.mark.parametrize("capture", [pytest.param(it, id=it.name) for it in ANSWERED])
SUCCESSES = [it for it in ANSWERED if it.truth["status"] == 200]
SAID = pytest.mark.parametrize("capture", [pytest.param(it, id=it.name) for it in SUCCESSES])
Block = tuple[str, Any]


def read(capture: Capture, size: int | None = None) -> Answer:
    assert capture.dialect
    reader = capture.dialect.reader()
    step = size or len(capture.body)
    for start in range(0, len(capture.body), step):
        reader.feed(capture.body[start : start + step])
    return reader.finish()


def anthropic_blocks(message: Json) -> Iterator[Block]:
    for block in message["content"]:
        kind = block["type"]
        yield kind, (block["name"], block["input"]) if kind == "tool_use" else block[kind]


def chat_blocks(message: Json) -> Iterator[Block]:
    if message["content"]:
        yield "text", message["content"]
    for call in message.get("tool_calls", ()):
        yield "tool_use", (call["function"]["name"], json.loads(call["function"]["arguments"]))


def responses_blocks(message: Json) -> Iterator[Block]:
    for item in message["output"]:
        if item["type"] == "message":
            yield "text", item["content"][0]["text"]
        elif item["type"] == "reasoning":
            yield "thinking", item["summary"][0]["text"]
        else:
            yield "tool_use", (item["name"], json.loads(item["arguments"]))


def gemini_blocks(message: Json) -> Iterator[Block]:
    for part in message["parts"]:
        if "text" in part:
            yield "thinking" if part.get("thought") else "text", part["text"]
        else:
            yield "tool_use", (part["functionCall"]["name"], part["functionCall"]["args"])


BLOCKS: dict[str, Callable[[Json], Iterator[Block]]] = {
    ANTHROPIC.name: anthropic_blocks,
    CHAT.name: chat_blocks,
    RESPONSES.name: responses_blocks,
    GEMINI.name: gemini_blocks,
}


def scripted_blocks(turn: Json) -> Iterator[Block]:
    for block in turn.get("content") or [{"type": "text", "text": turn["text"]}]:
        kind = block["type"]
        yield kind, (block["name"], block["input"]) if kind == "tool_use" else block[kind]


def scripted_usage(turn: Json, dialect: Dialect) -> Usage:
    """OpenAI and Gemini do not tell what went into the cache: it is input like any other."""
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 1000,
        "output_tokens": 20,
    } | turn.get("usage", {})
    written = usage["cache_creation_input_tokens"]
    told = dialect is ANTHROPIC
    return Usage(
        input_tokens=usage["input_tokens"] + (0 if told else written),
        output_tokens=usage["output_tokens"],
        cache_read_tokens=usage["cache_read_input_tokens"],
        cache_write_tokens=written if told else 0,
    )


def test_captures_cover_every_dialect_streamed_and_not() -> None:
    kinds = Counter((it.dialect.name, it.streamed) for it in SUCCESSES if it.dialect)
    assert kinds == {
        ("messages", True): 162,
        ("messages", False): 3,
        ("chat", True): 7,
        ("chat", False): 5,
        ("responses", True): 13,
        ("responses", False): 2,
        ("gemini", True): 3,
        ("gemini", False): 2,
    }


def test_calls_other_than_model_answers_have_no_dialect() -> None:
    others = {(it.truth["kind"], it.path.partition("?")[0]) for it in captures() if not it.dialect}
    assert others == {
        ("count_tokens", "/v1/messages/count_tokens"),
        ("models", "/v1/models"),
        ("probe", "/"),
        ("probe", "/api/hello"),
    }


@CALLS
@pytest.mark.parametrize("size", [1, 2, 7, 64, 4096])
def test_answers_are_the_same_for_any_chunk_size(capture: Capture, size: int) -> None:
    assert read(capture, size) == read(capture)


@CALLS
def test_answer_completeness_matches_the_manifest(capture: Capture) -> None:
    assert read(capture).complete == capture.truth["complete"]


@CALLS
def test_raw_usage_matches_the_manifest(capture: Capture) -> None:
    answer, truth = read(capture), capture.truth["usage"]
    if truth is None:
        assert (answer.usage, answer.raw_usage) == (None, None)
        return
    assert answer.raw_usage
    assert {name: answer.raw_usage[name] for name in truth} == truth


@SAID
def test_message_and_usage_match_the_scripted_scenario(capture: Capture) -> None:
    answer = read(capture)
    assert capture.turn
    assert capture.dialect
    scripted = list(scripted_blocks(capture.turn))
    if capture.dialect is CHAT:
        scripted = [block for block in scripted if block[0] != "thinking"]
    if not answer.complete:
        return  # below
    assert answer.message
    assert list(BLOCKS[capture.dialect.name](answer.message)) == scripted
    if answer.usage or capture.truth["usage"]:
        assert answer.usage == scripted_usage(capture.turn, capture.dialect)


@pytest.mark.parametrize("capture", [pytest.param(it, id=it.name) for it in SUCCESSES if not it.truth["complete"]])
def test_a_cut_stream_is_assembled_up_to_the_cut(capture: Capture) -> None:
    answer = read(capture)
    assert capture.turn
    assert capture.dialect
    assert answer.message_id
    assert answer.message
    assert (answer.complete, answer.stop_reason) == (False, None)
    if capture.dialect.name == "messages":
        assert answer.usage
        assert answer.usage.output_tokens == 1  # as message_start told it
    *whole, (kind, last) = BLOCKS[capture.dialect.name](answer.message)
    scripted = list(scripted_blocks(capture.turn))
    assert whole == scripted[: len(whole)]
    assert kind == "tool_use" or scripted[len(whole)][1].startswith(last)


@CALLS
def test_ids_models_and_stop_reasons_match_the_wire(capture: Capture) -> None:
    """Looked for as text, which is another way to find them than reading the stream."""
    answer, truth = read(capture), capture.truth
    text = capture.body.decode()
    if truth["status"] != 200:
        assert (answer.message, answer.message_id, answer.model) == (None, None, None)
        assert answer.error
        assert f'"{answer.error.type}"' in text
        assert f'"{answer.error.message}"' in text
        return
    key = "responseId" if capture.provider == "gemini" else "id"
    assert f'"{key}":"{answer.message_id}"' in text.replace('": "', '":"')
    assert answer.model == ("fake-gemini" if capture.provider == "gemini" else truth["model"])
    if truth["complete"]:
        assert answer.stop_reason in ("end_turn", "tool_use", "stop", "tool_calls", "completed", "STOP")
        assert f'"{answer.stop_reason}"' in text


def test_an_error_event_in_a_stream_is_reported() -> None:
    (capture,) = [it for it in ANSWERED if it.name.endswith("sse_error_event/1")]
    answer = read(capture)
    assert answer.error
    assert (answer.error.type, answer.error.message) == ("overloaded_error", "Overloaded")
    assert answer.message
    assert answer.message["content"] == [{"type": "text", "text": "This answer ends with an e"}]
