"""The output of `droid exec -o json` and `-o stream-json`. The first is one object, the second a line for each message,
tool call and result, with an end that repeats the answer.

The tokens at the end are those of the session so far, and of its sub-agents that have ended.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.messages import sdk
from agent_logger.messages.sdk import (
    Result,
    SdkMessage,
    reported_usage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.providers.json_values import fields_of
from agent_logger.providers.lenient import REFUSED


class _Line(msgspec.Struct, frozen=True):
    type: str
    subtype: str | None = None
    session: str | None = msgspec.field(name="session_id", default=None)
    source: str | None = None
    role: str | None = None
    text: str | None = None
    id: str | None = None
    tool: str | None = msgspec.field(name="toolName", default=None)
    parameters: Any = None
    is_failure: bool = msgspec.field(name="isError", default=False)
    value: Any = None
    error: Any = None
    message: str | None = None
    answer: str | None = msgspec.field(name="finalText", default=None)
    turns: int | None = msgspec.field(name="numTurns", default=None)
    milliseconds: int | None = msgspec.field(name="durationMs", default=None)
    usage: Any = None


class DroidOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        is_start = first.get("type") == "system" and "reasoning_effort" in first
        return is_start or "factory_credits" in fields_of(first.get("usage"))

    def __init__(self) -> None:
        self._error: str | None = None

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = msgspec.json.decode(line, type=_Line)
        except REFUSED:
            return []
        message = SdkMessage(line, decoded.type, decoded.subtype, decoded.session)
        match decoded.type, decoded.role:
            case (("system" | "result"), _):
                return [sdk.read(line)]  # like Claude Code's
            case "message", "assistant":
                return [translated(message, "assistant", text_block(decoded.text or ""))]
            case "reasoning", _:
                return [translated(message, "assistant", thought(decoded.text or ""))]
            case "tool_call", _:
                return [translated(message, "assistant", tool_use(decoded.id, decoded.tool, decoded.parameters))]
            case "tool_result", _:
                return [translated(message, "user", _result(decoded))]
            case "error", _:
                return self._failure(message, decoded)
            case "completion", _:
                return [_end(message, decoded)]
        return [message]

    def _failure(self, message: SdkMessage, line: _Line) -> list[SdkMessage]:
        """Take an error. The last one is the command line's own, and ends the run."""
        if line.message and self._error is None:
            self._error = line.message
        if line.source != "cli":
            return [message]
        result = Result(is_error=True, errors=[self._error] if self._error else None)
        return [replace(message, type="result", subtype="error", result=result)]


def _result(line: _Line) -> sdk.SdkBlock:
    error = fields_of(line.error).get("message")
    return tool_result(line.id, line.tool, line.value if error is None else error, is_error=line.is_failure)


def _end(message: SdkMessage, line: _Line) -> SdkMessage:
    result = Result(
        is_error=False,
        result=line.answer,
        num_turns=line.turns,
        duration_ms=line.milliseconds,
        usage=reported_usage(line.usage),
    )
    return replace(message, type="result", result=result)


OUTPUT = DroidOutput
