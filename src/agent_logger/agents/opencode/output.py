"""The lines of `opencode run --format json`: steps, each with texts and tools. The last step calls no tool."""

from typing import Any

import msgspec
from msgspec import Raw

from agent_logger.messages.sdk import (
    ReportedUsage,
    Result,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.providers.json_values import fields_of


class _Cache(msgspec.Struct, frozen=True):
    read: int = 0
    write: int = 0


class _Tokens(msgspec.Struct, frozen=True):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = _Cache()


class _State(msgspec.Struct, frozen=True):
    status: str = ""
    input: Raw = Raw(b"null")
    output: str | None = None
    error: str | None = None
    metadata: Any = None  # with the exit code of a command

    @property
    def failed(self) -> bool:
        code = fields_of(self.metadata).get("exit")
        return self.status == "error" or (type(code) is int and code != 0)


class _Part(msgspec.Struct, frozen=True):
    text: str = ""
    tool: str | None = None
    callID: str | None = None  # noqa: N815 (the client's name)
    state: _State = _State()
    reason: str | None = None
    tokens: _Tokens = _Tokens()
    cost: float = 0.0


class _ErrorData(msgspec.Struct, frozen=True):
    message: str | None = None
    statusCode: int | None = None  # noqa: N815


class _Error(msgspec.Struct, frozen=True):
    name: str = ""
    data: _ErrorData = _ErrorData()


class _Line(msgspec.Struct, frozen=True):
    type: str
    sessionID: str | None = None  # noqa: N815
    part: _Part = _Part()
    error: _Error | None = None


class OpencodeOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return "type" in first and "sessionID" in first

    def __init__(self) -> None:
        self._text: str | None = None
        self._steps: list[_Part] = []

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            head = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            return []
        part, message = head.part, SdkMessage(line, head.type, session_id=head.sessionID)
        match head.type:
            case "text":
                self._text = part.text
                return [translated(message, "assistant", text_block(part.text))]
            case "reasoning":
                return [translated(message, "assistant", thought(part.text))]
            case "tool_use":
                return self._tool(message, part)
            case "step_finish":
                self._steps.append(part)
                return [message] if part.reason == "tool-calls" else [self._result(message, None)]
            case "error":
                return [self._result(message, head.error or _Error())]
        return [message]

    def _tool(self, message: SdkMessage, part: _Part) -> list[SdkMessage]:
        """Return a tool's call and result: the line comes when the tool has ended."""
        use = tool_use(part.callID, part.tool, part.state.input)
        output = part.state.error if part.state.output is None else part.state.output
        result = tool_result(part.callID, part.tool, output, is_error=part.state.failed)
        return [translated(message, "assistant", use), translated(message, "user", result, again=True)]

    def _result(self, message: SdkMessage, error: _Error | None) -> SdkMessage:
        tokens, cost = [step.tokens for step in self._steps], sum(step.cost for step in self._steps)
        result = Result(
            is_error=error is not None,
            result=None if error else self._text,
            errors=[error.data.message or error.name] if error else None,
            api_error_status=error.data.statusCode if error else None,
            total_cost_usd=cost or None,  # opencode writes 0 where it knows no price
            num_turns=len(tokens) or None,
            usage=ReportedUsage(
                input_tokens=sum(usage.input for usage in tokens),
                output_tokens=sum(usage.output + usage.reasoning for usage in tokens),
                cache_creation_input_tokens=sum(usage.cache.write for usage in tokens),
                cache_read_input_tokens=sum(usage.cache.read for usage in tokens),
            )
            if tokens
            else None,
        )
        return SdkMessage(message.raw, "result", message.type, message.session_id, result=result)


OUTPUT = OpencodeOutput
