"""Answers of every dialect as their servers write them, event by event."""

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

EVENTS = b"text/event-stream"


@dataclass(frozen=True)
class Spoken:
    """One answer. `events`: pieces of its body; the last one is the last event of its dialect."""

    provider: str
    path: str
    content_type: bytes
    events: Sequence[bytes]
    behind: bytes = b""  # what servers write after the last event

    @property
    def body(self) -> bytes:
        return b"".join(self.events)

    def asked(self, text: str) -> bytes:
        """A request of one message."""
        message = {"role": "user", "content": text}
        gemini = [{"role": "user", "parts": [{"text": text}]}]
        every = {"messages": [message], "input": [message], "contents": gemini}
        key = next((key for name, key in KEYS if name in self.path), "messages")
        return json.dumps({"model": "m", "stream": True, key: every[key]}).encode()


KEYS = (("responses", "input"), ("ontent", "contents"))


def event(data: Any, name: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def anthropic(*texts: str, name: str = "msg_0123456789abcdef0123", output: int = 7) -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": name, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    return [
        {"type": "message_start", "message": {**message, "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": output},
        },
        {"type": "message_stop"},
    ]


def chat(*texts: str, name: str = "chatcmpl-0123456789abcdef", usage: dict[str, int] | None = None) -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event({"id": name, "model": "gpt-4o-mini", "choices": [choice]})

    told = usage or {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": text}) for text in texts),
        chunk({}, "stop"),
        event({"id": name, "model": "gpt-4o-mini", "choices": [], "usage": told}),
        event("[DONE]"),
    ]


def responses(last: str, *texts: str, name: str = "resp_0123456789abcdef0123", **more: Any) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": "".join(texts)}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    whole = {"id": name, "model": "gpt-4o-mini", "status": last, "output": [item]}
    usage = {"input_tokens": 10, "output_tokens": 7}
    return [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", "output_index": 0, "delta": text} for text in texts),
        {"type": f"response.{last}", "response": {**whole, "usage": usage, **more}},
    ]


def gemini(*texts: str) -> list[dict[str, Any]]:
    def chunk(text: str, **more: Any) -> dict[str, Any]:
        candidate = {"index": 0, "content": {"role": "model", "parts": [{"text": text}]}, **more}
        return {"candidates": [candidate], "responseId": "abcdefghijklmnopqrstuv", "modelVersion": "g"}

    usage = {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 7}}
    return [*(chunk(text) for text in texts), {**chunk("", finishReason="STOP"), **usage}]


def ollama(*texts: str) -> list[bytes]:
    said = [{"model": "llama", "message": {"role": "assistant", "content": text}} for text in texts]
    counts = {"done_reason": "stop", "prompt_eval_count": 10, "eval_count": 7}
    ended = {"model": "llama", "message": {"role": "assistant", "content": ""}, "done": True, **counts}
    return [json.dumps(it).encode() + b"\n" for it in [*({**it, "done": False} for it in said), ended]]


def on_bedrock(told: dict[str, Any]) -> bytes:
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(told).encode()).decode()}).encode()
    prelude = struct.pack(">II", 12 + len(payload) + 4, 0)
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def _named(events: Sequence[dict[str, Any]]) -> list[bytes]:
    return [event(it, it["type"]) for it in events]


def _body(told: Any) -> list[bytes]:
    text = json.dumps(told).encode()
    return [text[: len(text) // 2], text[len(text) // 2 :]]


SAID = ("Hello", " there", ", 世界")
_MESSAGE = {
    "id": "msg_0123456789abcdef0123",
    "type": "message",
    "model": "claude-sonnet-4-5",
    "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hello there, 世界"}],
    "usage": {"input_tokens": 10, "output_tokens": 7},
}
_GEMINI = "/v1beta/models/g:streamGenerateContent"
_CHUNKS = [json.dumps(it).encode() for it in gemini(*SAID)]

DIALECTS = {
    "messages": Spoken("anthropic", "/v1/messages", EVENTS, _named(anthropic(*SAID))),
    "chat": Spoken("openai", "/v1/chat/completions", EVENTS, chat(*SAID)),
    "responses": Spoken("openai", "/v1/responses", EVENTS, _named(responses("completed", *SAID))),
    "responses, at its limit": Spoken(
        "openai",
        "/v1/responses",
        EVENTS,
        _named(responses("incomplete", *SAID, incomplete_details={"reason": "max_output_tokens"})),
    ),
    "gemini": Spoken("gemini", f"{_GEMINI}?alt=sse", EVENTS, [event(it) for it in gemini(*SAID)]),
    "gemini, an array": Spoken(
        "gemini",
        _GEMINI,
        b"application/json",
        [b"[" + _CHUNKS[0], *(b",\r\n" + it for it in _CHUNKS[1:])],
        b"\n]",
    ),
    "ollama": Spoken("openai", "/api/chat", b"application/x-ndjson", ollama(*SAID)),
    "bedrock": Spoken(
        "anthropic",
        "/model/claude/invoke-with-response-stream",
        b"application/vnd.amazon.eventstream",
        [on_bedrock(it) for it in anthropic(*SAID)],
    ),
    "a body": Spoken("anthropic", "/v1/messages", b"application/json", _body(_MESSAGE)),
    "a body of no model": Spoken("openai", "/v1/files", b"application/json", _body({"data": [{"id": "file-1"}]})),
}
