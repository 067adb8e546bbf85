"""What `goose run` prints: with `--output-format stream-json`, a line for each piece of a message, and one at the end;
with `json`, all messages of the session in one object.

A text is put together from its pieces. The sums that Goose prints are those of the session so far, not of the run: the
usage of the run is not known from them.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from agent_logger.agents.goose.rows import OWN_ID, Metadata
from agent_logger.messages.sdk import (
    Result,
    SdkBlock,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.providers.blocks.base import joined_text


class _Call(msgspec.Struct, frozen=True):
    name: str = ""
    arguments: Raw = Raw(b"null")


class _ToolCall(msgspec.Struct, frozen=True):
    value: _Call = _Call()


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    content: Any = None
    is_error: bool = False


class _ToolResult(msgspec.Struct, frozen=True):
    status: str = ""
    value: _Value = _Value()
    error: str | None = None


class _Content(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str | None = None
    tool_call: _ToolCall = _ToolCall()
    tool_result: _ToolResult = _ToolResult()


class _Message(msgspec.Struct, frozen=True):
    id: str | None = None
    role: str = ""
    content: list[_Content] = []
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class _Summary(msgspec.Struct, frozen=True):
    status: str | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    message: _Message = _Message()
    messages: list[_Message] | None = None
    metadata: _Summary = _Summary()
    error: str | None = None


class GooseOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        message = first.get("message")
        if first.get("type") == "message" and isinstance(message, dict):
            return "created" in message
        return "messages" in first and "metadata" in first

    def __init__(self) -> None:
        self._id: str | None = None  # of the message that is being printed
        self._text = ""  # of that message, so far
        self._last_text: str | None = None
        self._failure: str | None = None

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            head = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            return []
        if head.messages is not None:
            return self._whole(line, head.messages)
        message = SdkMessage(line, head.type)
        match head.type:
            case "message":
                return [message, *self._parts(message, head.message)]
            case "error":
                self._failure = head.error or "error"
                return [message]
            case "complete":
                return [*self._flushed(message), self._result(message)]
        return [message]

    def _whole(self, line: bytes, messages: list[_Message]) -> list[SdkMessage]:
        """Return the messages since the last prompt, and the result."""
        prompts = [
            at
            for at, message in enumerate(messages)
            if message.role == "user" and any(part.type == "text" for part in message.content)
        ]
        first = prompts[-1] + 1 if prompts else 0
        head = SdkMessage(line, "messages")
        translations = [part for message in messages[first:] for part in self._parts(head, message)]
        return [*translations, *self._flushed(head), self._result(head)]

    def _parts(self, head: SdkMessage, message: _Message) -> Iterator[SdkMessage]:
        """Yield what is complete. The line itself is recorded once, apart from them."""
        if message.id != self._id:
            yield from self._flushed(head)
        self._id = message.id
        for part in message.content:
            if part.type == "text" and message.role == "assistant":
                if self._is_notice(message):
                    self._failure = part.text
                else:
                    self._text += part.text
            elif block := _block(part):
                yield from self._flushed(head)
                kind = "user" if part.type == "toolResponse" else "assistant"
                yield translated(head, kind, block, again=True)

    def _flushed(self, head: SdkMessage) -> Iterator[SdkMessage]:
        if self._text:
            self._last_text, self._text = self._text, ""
            yield translated(head, "assistant", text_block(self._last_text), again=True)

    @staticmethod
    def _is_notice(message: _Message) -> bool:
        """Whether Goose itself says this, in the model's place: that a call has failed."""
        return message.metadata.inference is None and bool(OWN_ID.fullmatch(message.id or ""))

    def _result(self, message: SdkMessage) -> SdkMessage:
        failure = self._failure
        result = Result(
            is_error=failure is not None,
            result=None if failure else self._last_text,
            errors=[failure] if failure else None,
        )
        return SdkMessage(message.raw, "result", message.type, message.session_id, result=result)


def _block(part: _Content) -> SdkBlock | None:
    match part.type:
        case "thinking":
            return thought(part.thinking)
        case "toolRequest":
            call = part.tool_call.value
            return tool_use(part.id, call.name, call.arguments)
        case "toolResponse":
            result = part.tool_result
            text = joined_text(result.value.content) or result.error or ""
            failed = result.status == "error" or result.value.is_error
            return tool_result(part.id, None, text, is_error=failed)
    return None


OUTPUT = GooseOutput
