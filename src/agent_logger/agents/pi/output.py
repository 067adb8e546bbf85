"""The lines of `pi --mode json`: the session's header, then each message, while it is written and when it has ended."""

from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.agents.pi.lines import PiMessage, cost_of, usage_of, vendors_id
from agent_logger.messages.sdk import (
    Init,
    Inner,
    ReportedUsage,
    Result,
    SdkBlock,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.model.session import Usage
from agent_logger.providers.blocks.base import joined_text, parts_of
from agent_logger.providers.lenient import fitting


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    id: str | None = None
    cwd: str | None = None
    message: PiMessage | None = None
    final_error: str | None = msgspec.field(name="finalError", default=None)


class PiOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return first.get("type") == "session" and "version" in first and "cwd" in first

    def __init__(self) -> None:
        self._answer: PiMessage | None = None  # the latest
        self._text: str | None = None
        self._used: list[Any] = []  # of each answer that has ended

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = fitting(_Line, msgspec.json.decode(line))
        except (ValueError, RecursionError):
            return []
        message = SdkMessage(line, decoded.type)
        match decoded.type:
            case "":
                return []
            case "session":
                return [SdkMessage(line, "system", "init", decoded.id, init=Init(cwd=decoded.cwd))]
            case "message_end" if decoded.message:
                return self._message(message, decoded.message)
            case "agent_end" if self._answer and self._answer.stop_reason != "error":
                return [self._result(message, None)]  # after an error pi may try again
            case "auto_retry_end" if decoded.final_error:
                return [self._result(message, decoded.final_error)]
        return [message]

    def _message(self, line: SdkMessage, message: PiMessage) -> list[SdkMessage]:
        match message.role:
            case "user":
                return [SdkMessage(line.raw, "user", inner=Inner(content=joined_text(message.content)))]
            case "assistant":
                self._answer = message
                self._text = joined_text(message.content) or self._text
                self._used.append(message.usage)
                return [replace(line, type="assistant", inner=_inner(message), is_translated=True)]
            case "toolResult":
                text = joined_text(message.content)
                called = vendors_id(message.tool_call)
                block = tool_result(called, message.tool, text, is_error=message.is_error is True)
                return [translated(line, "user", block)]
        return [line]

    def _result(self, line: SdkMessage, error: str | None) -> SdkMessage:
        answer, text, used = self._answer, self._text, self._used
        self._answer, self._text, self._used = None, None, []
        failed = error or (answer.error if answer and answer.stop_reason == "aborted" else None)
        total = sum(filter(None, map(usage_of, used)), Usage())
        costs = [cost for usage in used if (cost := cost_of(usage))]
        result = Result(
            is_error=failed is not None,
            result=None if failed else text,
            errors=[failed] if failed else None,
            num_turns=len(used) or None,
            usage=ReportedUsage(**_counts(total)) if any(total.counts) else None,
            total_cost_usd=sum(costs) or None,
        )
        return SdkMessage(line.raw, "result", "error" if failed else "success", result=result)


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _inner(message: PiMessage) -> Inner:
    usage = usage_of(message.usage)
    return Inner(
        id=message.response_id,
        model=message.response_model or message.model,
        usage=msgspec.Raw(msgspec.json.encode(_counts(usage))) if usage else msgspec.UNSET,
        stop_reason=message.stop_reason,
        content=_blocks(message.content),
    )


def _blocks(content: Any) -> list[SdkBlock]:
    blocks = []
    for part in parts_of(content):
        match part:
            case {"type": "text", "text": str(text)}:
                blocks.append(text_block(text))
            case {"type": "thinking", "thinking": str(text)}:
                blocks.append(thought(text))
            case {"type": "toolCall", "id": str(called), "name": str(name)}:
                blocks.append(tool_use(vendors_id(called), name, part.get("arguments")))
    return blocks


OUTPUT = PiOutput
