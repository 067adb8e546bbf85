"""The lines of `cline --json`: what the agent streams, its tools, and a result. No line names the session, and nothing
of its sub-agents is printed or counted."""

from typing import Any

import msgspec
from msgspec import Raw

from agent_logger.agents.objects import object_in
from agent_logger.messages.sdk import (
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
from agent_logger.providers.lenient import REFUSED


class _Usage(msgspec.Struct, frozen=True):
    inputTokens: int = 0  # noqa: N815 (the client's names)
    outputTokens: int = 0  # noqa: N815
    cacheReadTokens: int = 0  # noqa: N815
    cacheWriteTokens: int = 0  # noqa: N815
    totalCost: float = 0.0  # noqa: N815

    def reported(self) -> ReportedUsage:
        cached = self.cacheReadTokens + self.cacheWriteTokens
        return ReportedUsage(
            input_tokens=max(0, self.inputTokens - cached),
            output_tokens=self.outputTokens,
            cache_creation_input_tokens=self.cacheWriteTokens,
            cache_read_input_tokens=self.cacheReadTokens,
        )


class _Item(msgspec.Struct, frozen=True):
    """One of the results of a tool call."""

    result: Any = None
    success: bool = True


class _Event(msgspec.Struct, frozen=True):
    type: str | None = None
    contentType: str | None = None  # noqa: N815
    text: str | None = None
    reasoning: str | None = None
    toolName: str | None = None  # noqa: N815
    toolCallId: str | None = None  # noqa: N815
    input: Raw = Raw(b"null")
    output: Raw = Raw(b"null")
    error: Any = None


class _Line(msgspec.Struct, frozen=True):
    type: str
    event: _Event = _Event()
    finishReason: str | None = None  # noqa: N815
    iterations: int | None = None
    durationMs: int | None = None  # noqa: N815
    text: str | None = None
    message: str | None = None
    error: Any = None
    usage: _Usage | None = None


class ClineOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return first.get("type") in ("hook_event", "agent_event", "run_result") and "ts" in first

    def __init__(self) -> None:
        self._error: str | None = None

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            head = msgspec.json.decode(line, type=_Line)
        except REFUSED:
            return []
        message = SdkMessage(line, head.type)
        match head.type:
            case "agent_event":
                return [self._event(message, head.event)]
            case "run_result":
                return [self._result(message, head)]
            case "error":
                self._error = head.message or _text(head.error)
        return [message]

    def _event(self, message: SdkMessage, event: _Event) -> SdkMessage:
        match event.type, event.contentType:
            case "content_end", "text":
                return translated(message, "assistant", text_block(event.text or ""))
            case "content_end", "reasoning":
                return translated(message, "assistant", thought(event.reasoning or event.text or ""))
            case "content_start", "tool":
                return translated(message, "assistant", tool_use(event.toolCallId, event.toolName, event.input))
            case "content_end", "tool":
                return translated(message, "user", _tool_result(event))
            case "error", _:
                self._error = _text(event.error) or event.text
        return message

    def _result(self, message: SdkMessage, head: _Line) -> SdkMessage:
        usage, is_error = head.usage, head.finishReason != "completed"
        result = Result(
            is_error=is_error,
            result=None if is_error else head.text or None,
            errors=[self._error or head.text or head.finishReason or "failed"] if is_error else None,
            duration_ms=head.durationMs,
            num_turns=head.iterations,
            total_cost_usd=(usage.totalCost or None) if usage else None,  # Cline writes 0 where it knows no price
            usage=usage.reported() if usage and (usage.inputTokens or usage.outputTokens) else None,
        )
        return SdkMessage(message.raw, "result", message.type, result=result)


def _tool_result(event: _Event) -> SdkBlock:
    try:
        items = msgspec.json.decode(event.output, type=list[_Item])
    except REFUSED:
        items = []
    refusal = object_in(bytes(event.output)).get("error")
    failed = event.error is not None or refusal is not None or any(not item.success for item in items)
    texts = [item.result for item in items if isinstance(item.result, str)]
    output: Any = "\n".join(texts) if texts else (_text(event.error or refusal) or event.output)
    return tool_result(event.toolCallId, event.toolName, output, is_error=failed)


def _text(error: Any) -> str | None:
    value = error.get("message") if isinstance(error, dict) else error
    return value if isinstance(value, str) else None


OUTPUT = ClineOutput
