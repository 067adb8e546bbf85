"""Blocks of OpenAI's chat completions, and of the many hosts that copy the API."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from agent_logger.model.session import Block
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = UNSET
    input: Any = None  # of a custom tool

    @property
    def given(self) -> Any:
        return base.arguments(self.input if self.arguments is UNSET else self.arguments)


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Function | None = None


class _Message(msgspec.Struct):
    role: str | None = None
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None  # the same, of other hosts; an object of some
    thinking: Any = None  # and of Ollama
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None  # as it was before tools
    tool_call_id: str | None = None
    name: str | None = None
    tool_name: str | None = None  # Ollama's

    @property
    def thought(self) -> str | None:
        thoughts = (self.reasoning_content, self.reasoning, self.thinking)
        return next((text for text in thoughts if text and isinstance(text, str)), None)


class _Part(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    thinking: Any = None  # Mistral


def answered(message: Json) -> Iterator[Block]:
    return _by_model(fitting(_Message, message))


def sent(message: Json) -> Iterator[Block]:
    fitted = fitting(_Message, message)
    match fitted.role:
        case "assistant" | "model":
            yield from _by_model(fitted)
        case "tool" | "function":
            yield base.result(fitted.tool_call_id, fitted.content, name=fitted.name or fitted.tool_name)
        case _:
            yield from _content(fitted.content)


def _by_model(message: _Message) -> Iterator[Block]:
    if message.thought:
        yield base.thinking(message.thought)
    yield from _content(message.content)
    if message.refusal:
        yield base.text(message.refusal)
    for call in message.tool_calls or ():
        function = call.function or call.custom or _Function()
        yield base.use(call.id, function.name, function.given)
    if before := message.function_call:
        yield base.use(None, before.name, before.given)


def _content(content: Any) -> Iterator[Block]:
    for raw in base.parts_of(content):
        part = fitting(_Part, raw)
        match part.type:
            case "text":
                yield base.text(part.text)
            case "refusal":
                yield base.text(part.refusal)
            case "thinking":
                yield base.thinking(base.joined_text(part.thinking))
            case _:
                yield base.other(raw, "image" if part.type == "image_url" else "other")
