"""Google's generateContent, streamed as server-sent events or not."""

import re
from collections.abc import Iterator

import msgspec

from agent_logger.demo.dialect import DemoEvent, Json, Piece, cut, new_id, text_of
from agent_logger.demo.http import DemoRequest
from agent_logger.demo.script import (
    Block,
    ScriptPrompt,
    ScriptText,
    ScriptToolUse,
    ScriptTurn,
    ScriptUsage,
    Thinking,
)


class Content(msgspec.Struct):
    parts: list[Piece] = []
    role: str = "user"


class Body(msgspec.Struct, rename="camel"):
    contents: list[Content]
    system_instruction: Content | None = None
    tools: list[msgspec.Raw] | None = None


class GenerateContent:
    """A request to `/v1beta/models/<model>:generateContent` or `:streamGenerateContent?alt=sse`."""

    def __init__(self, request: DemoRequest) -> None:
        body = msgspec.json.decode(request.body, type=Body)
        model = re.sub(r".*/models/|:\w+$", "", request.path)
        system = text_of(body.system_instruction.parts) if body.system_instruction else ""
        users = [text_of(content.parts) for content in body.contents if content.role == "user"]
        self.prompt = ScriptPrompt(model, system, users, bool(body.tools), ":stream" in request.path)

    def whole(self, turn: ScriptTurn) -> Json:
        return self._chunk(turn, [part for block in turn.blocks for part in _parts(block, 1)], final=True)

    def stream(self, turn: ScriptTurn) -> Iterator[DemoEvent]:
        parts = [part for block in turn.blocks for part in _parts(block, turn.pieces)]
        identity = turn.id or new_id("", 23)
        for number, part in enumerate(parts, 1):
            chunk = self._chunk(turn, [part], final=number == len(parts))
            yield DemoEvent("", msgspec.json.encode({**chunk, "responseId": identity}))

    def _chunk(self, turn: ScriptTurn, parts: list[Json], *, final: bool) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        if final:
            candidate["finishReason"] = turn.stop_reason or "STOP"
        return {
            "candidates": [candidate],
            "usageMetadata": _usage(turn.usage, final=final),
            "modelVersion": turn.model or self.prompt.model,
            "responseId": turn.id or new_id("", 23),
        }


def count_tokens(request: DemoRequest) -> Json:
    return {"totalTokens": max(1, len(request.body) // 4)}


def _parts(block: Block, pieces: int) -> Iterator[Json]:
    match block:
        case ScriptText(text):
            yield from ({"text": piece} for piece in cut(text, pieces))
        case Thinking(thinking):
            yield from ({"text": piece, "thought": True} for piece in cut(thinking, pieces))
        case ScriptToolUse(name, arguments):
            yield {"functionCall": {"name": name, "args": arguments}}


def _usage(usage: ScriptUsage, *, final: bool) -> Json:
    asked = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    answered = usage.output_tokens if final else 1
    return {
        "promptTokenCount": asked,
        "cachedContentTokenCount": usage.cache_read_input_tokens,
        "candidatesTokenCount": answered,
        "totalTokenCount": asked + answered,
    }
