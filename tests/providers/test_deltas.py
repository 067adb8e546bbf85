"""Keys that a model writes piece by piece: none of the pieces stays."""

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model.redaction.redactor import Redactor
from agent_logger.providers.deltas import split_texts

KEY = "sk-ant-api03-" + "".join(f"{n:02d}Qx" for n in range(20))
OPAQUE = "0paque/Value~9f8e7d6c5b4a39281706-tail"  # JSON may escape the slash

Event = Callable[[str], object]
DIALECTS: dict[str, Event] = {
    "anthropic": lambda text: {
        "type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}
    },
    "anthropic tool": lambda text: {"index": 0, "delta": {"type": "input_json_delta", "partial_json": text}},
    "chat": lambda text: {"choices": [{"index": 0, "delta": {"content": text}}]},
    "chat tool": lambda text: {
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 2, "function": {"arguments": text}}]}}]
    },
    "responses": lambda text: {"type": "response.output_text.delta", "output_index": 0, "delta": text},
    "completions": lambda text: {"choices": [{"index": 0, "text": text}]},
    "ollama": lambda text: {"model": "m", "message": {"role": "assistant", "content": text}, "done": False},
    "ollama's generate": lambda text: {"model": "m", "response": text, "done": False},
    "gemini": lambda text: {"candidates": [{"content": {"parts": [{"text": text}]}, "index": 0}]},
}  # fmt: skip


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted({place % len(text) for place in places}), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def windows(secret: str) -> set[bytes]:
    return {secret[at : at + 8].encode() for at in range(len(secret) - 7)}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("secret", [KEY, OPAQUE])
@given(places=st.lists(st.integers(0, 200), max_size=30))
def test_a_key_split_across_deltas_is_removed_completely(dialect: str, secret: str, places: list[int]) -> None:
    pieces = cut(f'Your "key" is\n{secret} and that is all.', places)
    events = [f"data: {json.dumps(DIALECTS[dialect](piece))}\n\n".encode() for piece in pieces]
    redactor = Redactor(bytes(32), [OPAQUE.encode()])
    found = redactor.redact_chunks(events, "chunks", split_texts(b"".join(events)))
    shown = b"".join(found.data)
    prefix = "sk-ant-" if secret == KEY else ""
    assert not [window for window in windows(secret.removeprefix(prefix)) if window in shown]
    assert len(found.data) == len(events)
    for event in found.data:
        json.loads(event.removeprefix(b"data: "))
    assert b"that is all" in shown or len(pieces) > 1


def test_interleaved_texts_are_redacted_separately() -> None:
    one, other = cut(KEY, [30]), ["nothing ", "of interest"]
    events = [
        b'data: {"index":%d,"delta":{"text":"%b"}}\n\n' % (index, text.encode())
        for pair in zip(one, other, strict=True)
        for index, text in enumerate(pair)
    ]
    found = Redactor(bytes(32)).redact_chunks(events, "chunks", split_texts(b"".join(events)))
    shown = b"".join(found.data)
    assert b"nothing " in shown and b"of interest" in shown
    assert not [window for window in windows(KEY.removeprefix("sk-ant-")) if window in shown]


def test_deltas_without_secrets_are_unchanged() -> None:
    events = [b'data: {"delta":{"text":"%b"}}\n\n' % text for text in (b"a \\n ", b"\\u00e9", b"b")]
    assert Redactor(bytes(32)).redact_chunks(events, "", split_texts(b"".join(events))).data == events
