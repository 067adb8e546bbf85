"""The lines of `kimi --output-format stream-json`: the messages of the conversation, and what the client notes between
them. No line has usage or a model; the session is named in the last one, and in no line of a run that failed."""

from typing import Any

import msgspec

from agent_logger.messages.sdk import Result, SdkMessage, text_block, tool_result, tool_use, translated
from agent_logger.providers.blocks.base import arguments

RESUME_HINT = "session.resume_hint"


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct, frozen=True):
    id: str | None = None
    function: _Function = _Function()


class _Line(msgspec.Struct, frozen=True):
    role: str
    type: str | None = None  # of a line with the role `meta`
    content: Any = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    session_id: str | None = None


class KimiOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return first.get("role") == "meta" and str(first.get("type")).startswith(("system.", "session."))

    def __init__(self) -> None:
        self._text: str | None = None

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            return []
        message = SdkMessage(line, decoded.type or decoded.role, session_id=decoded.session_id)
        match decoded.role:
            case "assistant":
                return self._answer(message, decoded)
            case "tool":
                block = tool_result(decoded.tool_call_id, None, decoded.content, is_error=False)
                return [translated(message, "user", block)]
            case "meta" if decoded.type == RESUME_HINT:
                result = Result(is_error=False, result=self._text)
                return [SdkMessage(line, "result", decoded.type, decoded.session_id, result=result)]
        return [message]

    def _answer(self, message: SdkMessage, line: _Line) -> list[SdkMessage]:
        blocks = [text_block(line.content)] if isinstance(line.content, str) and line.content else []
        self._text = line.content if blocks and not line.tool_calls else self._text
        calls = ((call.id, call.function) for call in line.tool_calls or ())
        blocks += [tool_use(name, function.name, arguments(function.arguments)) for name, function in calls]
        return [translated(message, "assistant", block, again=bool(at)) for at, block in enumerate(blocks)] or [message]


OUTPUT = KimiOutput
