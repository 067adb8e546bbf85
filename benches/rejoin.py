"""How fast streams are rejoined, beside the plain way: cut into lines, `json.loads` per event, nothing joined.

    python benches/rejoin.py

The best of several runs, in processor time; `ratio` is how many times as long the plain way takes. Streams are fed
event by event, as they come off the wire.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from agent_logger.providers.answer import Answer
from agent_logger.providers.registry import ANTHROPIC, CHAT, GEMINI, RESPONSES, Dialect

EVENTS = 2_000
PIECE = " and then the function"
RUNS = 7


def seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def sse(told: dict[str, Any], *, named: bool = True) -> bytes:
    name = f"event: {told['type']}\n" if named else ""
    return f"{name}data: {json.dumps(told, separators=(',', ':'))}\n\n".encode()


def anthropic() -> Iterator[bytes]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 9_000, "output_tokens": 1}
    message = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    yield sse({"type": "message_start", "message": message})
    yield sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for _ in range(EVENTS):
        yield sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": PIECE}})
    yield sse({"type": "content_block_stop", "index": 0})
    yield sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5_000}})
    yield sse({"type": "message_stop"})


def chat() -> Iterator[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    for _ in range(EVENTS):
        choice = {"index": 0, "delta": {"content": PIECE}, "logprobs": None, "finish_reason": None}
        yield sse({**head, "choices": [choice]}, named=False)
    yield sse({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, named=False)
    yield b"data: [DONE]\n\n"


def responses() -> Iterator[bytes]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield sse({"type": "response.created", "response": {"id": "resp_1", "model": "m", "output": []}})
    yield sse({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}})
    for number in range(EVENTS):
        yield sse({"type": "response.output_text.delta", "sequence_number": number, **place, "delta": PIECE})
    item = {"type": "message", "content": [{"type": "output_text", "text": PIECE * EVENTS}]}
    yield sse({"type": "response.output_item.done", "output_index": 0, "item": item})
    yield sse({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [item]}})


def gemini() -> Iterator[bytes]:
    for number in range(EVENTS):
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": PIECE}]}, "index": 0}
        if number == EVENTS - 1:
            candidate["finishReason"] = "STOP"
        usage = {"promptTokenCount": 9_000, "candidatesTokenCount": number}
        yield sse({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}, named=False)


def plainly(events: list[bytes]) -> list[Any]:
    lines = (line for event in events for line in event.split(b"\n"))
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ") and line != b"data: [DONE]"]


def rejoin(dialect: Dialect, events: list[bytes]) -> Answer:
    reader = dialect.reader()
    for event in events:
        reader.feed(event)
    return reader.finish()


def main() -> None:
    print(f"{'stream':<12}{'events':>8}{'ours':>12}{'events/s':>12}{'MB/s':>8}{'plain':>12}{'ratio':>8}")
    for dialect, made in ((ANTHROPIC, anthropic), (CHAT, chat), (RESPONSES, responses), (GEMINI, gemini)):
        events = list(made())
        size = sum(map(len, events))
        answer = rejoin(dialect, events)
        assert answer.complete
        assert PIECE * EVENTS in json.dumps(answer.message)
        ours = seconds(lambda dialect=dialect, events=events: rejoin(dialect, events))  # type: ignore[misc]
        plain = seconds(lambda events=events: plainly(events))  # type: ignore[misc]
        print(
            f"{dialect.name:<12}{len(events):>8}{ours * 1e3:>9.2f} ms{len(events) / ours:>12,.0f}"
            f"{size / ours / 1e6:>8.0f}{plain * 1e3:>9.2f} ms{plain / ours:>8.1f}"
        )
    request()


def request() -> None:
    text = "def elapsed(self) -> float:  # seconds\n" * 50
    history = [{"role": "user", "content": [{"type": "text", "text": text}]} for _ in range(250)]
    body = json.dumps({"model": "m", "messages": history, "stream": True}).encode()
    ours = seconds(lambda: ANTHROPIC.request(body))
    plain = seconds(lambda: json.loads(body))
    print(f"a request of {len(body) / 1e3:.0f} KB: {ours * 1e3:.2f} ms; json.loads {plain * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
