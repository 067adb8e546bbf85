"""The lines of `copilot -p --output-format json`: the events of the session's file, further ones for the screen, and a
result."""

from typing import Any

import msgspec

from agent_logger.agents.copilot_cli.lines import (
    AssistantMessage,
    CopilotStart,
    SessionError,
    ToolEnd,
    UserMessage,
)
from agent_logger.agents.copilot_cli.results import result_block, tool_name
from agent_logger.messages.sdk import (
    Inner,
    Result,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting

_KINDS = ("session.", "user.message", "assistant.", "model.call_")


class _Spent(msgspec.Struct, frozen=True):
    milliseconds: int | None = msgspec.field(name="sessionDurationMs", default=None)
    api_milliseconds: int | None = msgspec.field(name="totalApiDurationMs", default=None)


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    data: Json = {}
    agent: str | None = msgspec.field(name="agentId", default=None)
    session: str | None = msgspec.field(name="sessionId", default=None)
    exit_code: int | None = msgspec.field(name="exitCode", default=None)
    usage: _Spent | None = None


class CopilotOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        kind = first.get("type")
        is_event = isinstance(kind, str) and kind.startswith(_KINDS)
        return is_event and isinstance(first.get("data"), dict) and "parentId" in first

    def __init__(self) -> None:
        self._text: str | None = None
        self._errors: list[str] = []

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = fitting(_Line, msgspec.json.decode(line))
        except (ValueError, RecursionError):
            return []
        if not decoded.type:
            return []
        caller = decoded.data.get("parentToolCallId") if decoded.agent else None
        message = SdkMessage(
            line, decoded.type, parent_tool_use_id=caller if isinstance(caller, str) else decoded.agent
        )
        match decoded.type:
            case "session.start" | "session.resume":
                start = fitting(CopilotStart, decoded.data)
                return [msgspec.structs.replace(message, session_id=start.session)]
            case "user.message" if decoded.agent is None:
                prompt = fitting(UserMessage, decoded.data)
                return [message if prompt.source else _prompt(line, prompt.content or "")]
            case "assistant.message":
                return self._answer(message, fitting(AssistantMessage, decoded.data), is_main=decoded.agent is None)
            case "tool.execution_complete":
                block = result_block(fitting(ToolEnd, decoded.data))
                return [translated(message, "user", tool_result(block.id, None, block.text, is_error=block.is_error))]
            case "session.error" if decoded.agent is None:
                self._errors.append(fitting(SessionError, decoded.data).message or "error")
            case "result":
                return [self._result(line, decoded)]
        return [message]

    def _answer(self, message: SdkMessage, answer: AssistantMessage, *, is_main: bool) -> list[SdkMessage]:
        blocks = [thought(answer.thinking)] if answer.thinking else []
        if answer.content:
            blocks.append(text_block(answer.content))
        blocks += [tool_use(request.call, tool_name(request), request.arguments) for request in answer.requests or ()]
        if is_main:
            self._text = answer.content or self._text
        return [translated(message, "assistant", block, again=number > 0) for number, block in enumerate(blocks)] or [
            message
        ]

    def _result(self, line: bytes, decoded: _Line) -> SdkMessage:
        failed = bool(decoded.exit_code)
        spent = decoded.usage or _Spent()
        result = Result(
            is_error=failed,
            result=None if failed else self._text,
            errors=self._errors or None,
            duration_ms=spent.milliseconds,
            duration_api_ms=spent.api_milliseconds,
        )
        self._text, self._errors = None, []
        return SdkMessage(line, "result", "error" if failed else "success", decoded.session, result=result)


def _prompt(line: bytes, text: str) -> SdkMessage:
    return SdkMessage(line, "user", inner=Inner(content=text))


OUTPUT = CopilotOutput
