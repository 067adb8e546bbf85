"""The output of `grok --output-format json`, `streaming-json` or `streaming-messages-json`.

The first is one object, the second a line for each update with such an object as the last, the third are messages like
Claude Code's. All of them count the tokens of the process, by model, sub-agents that have ended included.
"""

from typing import Any

import msgspec
from msgspec import UNSET
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

UPDATES = frozenset({"available_commands", "text", "thought", "tool_call", "tool_call_update", "usage", "end"})
ENDED = ("completed", "failed")


class _Line(msgspec.Struct, frozen=True):
    type: str | None = None
    data: Any = None
    call: str | None = msgspec.field(name="toolCallId", default=None)
    tool: str | None = msgspec.field(name="toolName", default=None)
    given: Any = msgspec.field(name="rawInput", default=None)
    output: Any = msgspec.field(name="rawOutput", default=None)
    content: Any = None
    status: str | None = None
    text: str | None = None
    message: Any = None  # of an error, a text
    reason: str | None = msgspec.field(name="stopReason", default=None)
    session: str | None = msgspec.field(name="sessionId", default=None)
    usage: dict[str, Any] | None = None
    turns: int | None = msgspec.field(name="num_turns", default=None)
    models: dict[str, dict[str, Any]] | None = msgspec.field(name="modelUsage", default=None)


class GrokOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return first.get("type") in UPDATES or ("stopReason" in first and "sessionId" in first)

    def __init__(self) -> None:
        self._text = ""  # since the last tool
        self._started: set[str] = set()

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            return []
        message = SdkMessage(line, decoded.type or "result", session_id=decoded.session)
        match decoded.type:
            case "text" if isinstance(decoded.data, str):
                self._text += decoded.data
                return [translated(message, "assistant", text_block(decoded.data))]
            case "thought" if isinstance(decoded.data, str):
                return [translated(message, "assistant", thought(decoded.data))]
            case "tool_call" | "tool_call_update":
                return self._tool(message, decoded)
            case "end" | None if decoded.reason or decoded.models is not None:
                return [self._result(message, decoded)]
            case "error":
                result = Result(is_error=True, errors=[decoded.message] if isinstance(decoded.message, str) else None)
                return [SdkMessage(line, "result", "error", result=result)]
        return [message] if decoded.type in UPDATES else _messages(line)

    def _tool(self, message: SdkMessage, line: _Line) -> list[SdkMessage]:
        self._text = ""
        if line.type == "tool_call":
            return [translated(message, "assistant", tool_use(line.call, line.tool, line.given))]
        if line.status not in ENDED:
            return [message]
        from agent_logger.agents.grok_build.updates import Update, result_of

        read = result_of(Update(call=line.call, content=line.content, output=line.output, status=line.status))
        return [translated(message, "user", tool_result(line.call, None, read.text, is_error=read.is_error))]

    def _result(self, message: SdkMessage, line: _Line) -> SdkMessage:
        result = Result(
            is_error=line.reason not in (None, "end_turn"),
            num_turns=line.turns,
            result=line.text or self._text or None,
            stop_reason=line.reason,
            usage=reported_usage(line.usage),
            model_usage=line.models or None,
        )
        return replace(message, type="result", subtype=line.reason, result=result)


def _messages(line: bytes) -> list[SdkMessage]:
    """Read a message like Claude Code's. The ids of its responses are made up: `msg_0`, `msg_1`, in each run."""
    message = sdk.read(line)
    if message.is_text:
        return []
    inner = replace(message.inner, id=None, usage=UNSET) if message.inner else None
    return [replace(message, inner=inner)]


OUTPUT = GrokOutput
