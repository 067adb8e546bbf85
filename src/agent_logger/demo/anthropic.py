"""Anthropic's Messages API, as far as agents use it."""

from collections.abc import Iterator

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

COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class DemoMessage(msgspec.Struct):
    role: str
    content: str | list[Piece]


class DemoBody(msgspec.Struct):
    model: str
    messages: list[DemoMessage]
    system: str | list[Piece] = ""
    tools: list[msgspec.Raw] = []
    stream: bool = False


class DemoMessages:
    """A request to `/v1/messages`."""

    def __init__(self, request: DemoRequest) -> None:
        body = msgspec.json.decode(request.body, type=DemoBody)
        users = [text_of(message.content) for message in body.messages if message.role == "user"]
        self.prompt = ScriptPrompt(body.model, text_of(body.system), users, bool(body.tools), body.stream)

    def whole(self, turn: ScriptTurn) -> Json:
        return self._message(turn, _blocks(turn))

    def stream(self, turn: ScriptTurn) -> Iterator[DemoEvent]:
        blocks = _blocks(turn)
        message = self._message(turn, blocks)
        usage: Json = message["usage"]
        begun: Json = {"content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        yield event("message_start", message={**message, **begun})
        yield event("ping")
        for index, block in enumerate(blocks):
            yield event("content_block_start", index=index, content_block=_begun(block))
            for delta in _deltas(block, turn.pieces):
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=ended, usage={key: usage[key] for key in COUNTED})
        yield event("message_stop")

    def _message(self, turn: ScriptTurn, blocks: list[Block]) -> Json:
        implied = "tool_use" if any(isinstance(block, ScriptToolUse) for block in blocks) else "end_turn"
        return {
            "id": turn.id or new_id("msg_01"),
            "type": "message",
            "role": "assistant",
            "model": turn.model or self.prompt.model,
            "content": [_finished(block) for block in blocks],
            "stop_reason": turn.stop_reason or implied,
            "stop_sequence": None,
            "usage": _usage(turn.usage),
        }


def count_tokens(request: DemoRequest) -> Json:
    msgspec.json.decode(request.body, type=DemoBody)
    return {"input_tokens": max(1, len(request.body) // 4)}


def _blocks(turn: ScriptTurn) -> list[Block]:
    return with_ids([block for block in turn.blocks if not isinstance(block, RawItem)], "toolu_01")


def _usage(usage: ScriptUsage) -> Json:
    return {
        **{name: getattr(usage, name) for name in COUNTED},
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation_input_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "service_tier": "standard",
    }


def _finished(block: Block) -> Json:
    """The block with its keys in the vendor's order: type first, a tool's id before its name."""
    match block:
        case ScriptToolUse(name, arguments, id):
            return {"type": "tool_use", "id": id, "name": name, "input": arguments}
    plain: Json = msgspec.to_builtins(block)
    return plain


def _begun(block: Block) -> Json:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in _finished(block).items()}


def _deltas(block: Block, pieces: int) -> Iterator[Json]:
    match block:
        case ScriptText(text):
            for piece in cut(text, pieces):
                yield {"type": "text_delta", "text": piece}
        case Thinking(thinking, signature):
            for piece in cut(thinking, pieces):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": signature}
        case ScriptToolUse(_, arguments):
            for piece in ["", *cut(msgspec.json.encode(arguments).decode(), pieces)]:
                yield {"type": "input_json_delta", "partial_json": piece}
