"""OpenAI's chat completions and responses."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from agent_logger.demo.dialect import DemoEvent, Json, Piece, cut, event, new_id, text_of, with_ids
from agent_logger.demo.http import DemoRequest
from agent_logger.demo.script import (
    Block,
    RawItem,
    ScriptPrompt,
    ScriptText,
    ScriptToolUse,
    ScriptTurn,
    ScriptUsage,
    Thinking,
)

CREATED = 1767225600  # the first second of 2026


def _total_input(usage: ScriptUsage) -> int:
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def _arguments(tool: ScriptToolUse) -> str:
    return msgspec.json.encode(tool.input).decode()


class ChatMessage(msgspec.Struct):
    role: str
    content: str | list[Piece] | None = None


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


class ChatBody(msgspec.Struct):
    model: str
    messages: list[ChatMessage]
    tools: list[msgspec.Raw] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class ChatCompletions:
    """A request to `/v1/chat/completions`. The stream has usage only if it was asked for."""

    def __init__(self, request: DemoRequest) -> None:
        body = msgspec.json.decode(request.body, type=ChatBody)
        texts = [(message.role, text_of(message.content)) for message in body.messages]
        system = "\n".join(text for role, text in texts if role in ("system", "developer"))
        users = [text for role, text in texts if role == "user"]
        self.prompt = ScriptPrompt(body.model, system, users, bool(body.tools), bool(body.stream))
        self._wants_usage = body.stream_options is not None and body.stream_options.include_usage

    def whole(self, turn: ScriptTurn) -> Json:
        text, calls = _text_and_calls(turn)
        message: Json = {"role": "assistant", "content": text or None, "refusal": None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(turn, calls)}
        return {**self._head(turn, "chat.completion"), "choices": [choice], "usage": _chat_usage(turn.usage)}

    def stream(self, turn: ScriptTurn) -> Iterator[DemoEvent]:
        head = self._head(turn, "chat.completion.chunk")
        text, calls = _text_and_calls(turn)
        usage = {"usage": None} if self._wants_usage else {}

        def chunk(delta: Json, finish: str | None = None) -> DemoEvent:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return DemoEvent("", msgspec.json.encode({**head, "choices": [choice], **usage}))

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for piece in cut(text, turn.pieces) if text else []:
            yield chunk({"content": piece})
        for index, call in enumerate(calls):
            function = call["function"]
            begun = {**call, "index": index, "function": {**function, "arguments": ""}}
            yield chunk({"tool_calls": [begun]})
            for piece in cut(function["arguments"], turn.pieces):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(turn, calls))
        if self._wants_usage:
            yield DemoEvent("", msgspec.json.encode({**head, "choices": [], "usage": _chat_usage(turn.usage)}))
        yield DemoEvent("", b"[DONE]")

    def _head(self, turn: ScriptTurn, kind: str) -> Json:
        return {
            "id": turn.id or new_id("chatcmpl-", 29),
            "object": kind,
            "created": CREATED,
            "model": turn.model or self.prompt.model,
            "service_tier": "default",
            "system_fingerprint": "fp_scripted",
        }


def _text_and_calls(turn: ScriptTurn) -> tuple[str, list[Json]]:
    blocks = with_ids(turn.blocks, "call_")
    text = "".join(block.text for block in blocks if isinstance(block, ScriptText))
    calls = [
        {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": _arguments(block)}}
        for block in blocks
        if isinstance(block, ScriptToolUse)
    ]
    return text, calls


def _finish(turn: ScriptTurn, calls: list[Json]) -> str:
    return turn.stop_reason or ("tool_calls" if calls else "stop")


def _chat_usage(usage: ScriptUsage) -> Json:
    return {
        "prompt_tokens": _total_input(usage),
        "completion_tokens": usage.output_tokens,
        "total_tokens": _total_input(usage) + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


class InputItem(msgspec.Struct):
    """An item of `input`; those without a role are calls, their outputs, reasoning and the like."""

    type: str = "message"
    role: str = ""
    content: str | list[Piece] | None = None


class ResponsesBody(msgspec.Struct):
    model: str
    input: str | list[InputItem]
    instructions: str | None = None
    tools: list[msgspec.Raw] | None = None
    stream: bool | None = None
    previous_response_id: str | None = None
    generate: bool = True  # over WebSocket, Codex warms a connection up with false


class Responses:
    """A request to `/v1/responses`, or a `response.create` message over WebSocket."""

    def __init__(self, request: DemoRequest) -> None:
        self.body = body = msgspec.json.decode(request.body, type=ResponsesBody)
        items = [InputItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
        users = [text_of(item.content) for item in items if item.role == "user"]
        has_tools = bool(body.tools) or any(item.type == "additional_tools" for item in items)
        self.prompt = ScriptPrompt(body.model, body.instructions or "", users, has_tools, bool(body.stream))

    def whole(self, turn: ScriptTurn) -> Json:
        return {
            "id": turn.id or new_id("resp_", 48),
            "object": "response",
            "created_at": CREATED,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": self.body.instructions,
            "model": turn.model or self.prompt.model,
            "output": [_item(block) for block in with_ids(turn.blocks, "call_")],
            "parallel_tool_calls": True,
            "previous_response_id": self.body.previous_response_id,
            "tool_choice": "auto",
            "tools": [],
            "temperature": 1.0,
            "top_p": 1.0,
            "metadata": {},
            "usage": _responses_usage(turn.usage),
        }

    def stream(self, turn: ScriptTurn) -> Iterator[DemoEvent]:
        response, numbers = self.whole(turn), count()

        def numbered(name: str, /, **data: Any) -> DemoEvent:
            return event(name, sequence_number=next(numbers), **data)

        begun: Json = {**response, "status": "in_progress", "output": [], "usage": None}
        yield numbered("response.created", response=begun)
        yield numbered("response.in_progress", response=begun)
        for index, item in enumerate(response["output"]):
            for name, data in _item_events(item, index, turn.pieces):
                yield numbered(name, **data)
        yield numbered("response.completed", response=response)


def _item(block: Block) -> Json:
    match block:
        case ScriptText(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            head = {"id": new_id("msg_", 48), "type": "message", "status": "completed"}
            return {**head, "role": "assistant", "content": content}
        case ScriptToolUse(name, _, id):
            head = {"id": new_id("fc_", 48), "type": "function_call", "status": "completed"}
            return {**head, "call_id": id, "name": name, "arguments": _arguments(block)}
        case Thinking(thinking, signature):
            summary = [{"type": "summary_text", "text": thinking}]
            head = {"id": new_id("rs_", 48), "type": "reasoning"}
            return {**head, "summary": summary, "encrypted_content": signature}
        case RawItem(item):
            return item


def _item_events(item: Json, index: int, pieces: int) -> Iterator[tuple[str, Json]]:
    place: Json = {"item_id": item.get("id"), "output_index": index}
    begun: Json = {**item, "status": "in_progress"}
    match item["type"]:
        case "message":
            part = item["content"][0]
            yield "response.output_item.added", {"output_index": index, "item": {**begun, "content": []}}
            place["content_index"] = 0
            yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
            for piece in cut(part["text"], pieces):
                yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
            yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**place, "part": part}
        case "function_call":
            yield "response.output_item.added", {"output_index": index, "item": {**begun, "arguments": ""}}
            for piece in cut(item["arguments"], pieces):
                yield "response.function_call_arguments.delta", {**place, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", {**place, **done}
        case _:
            yield "response.output_item.added", {"output_index": index, "item": item}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _responses_usage(usage: ScriptUsage) -> Json:
    return {
        "input_tokens": _total_input(usage),
        "input_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": _total_input(usage) + usage.output_tokens,
    }
