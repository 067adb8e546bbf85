"""The output of `gemini --output-format stream-json`, or `json`. Its counts are those of the process."""

from typing import Any

import msgspec

from agent_logger.messages.sdk import (
    Init,
    Inner,
    ReportedUsage,
    Result,
    SdkMessage,
    text_block,
    tool_result,
    tool_use,
    translated,
)

MODEL = "unknown"  # the model, where counts are given for all models together


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""


class _Tokens(msgspec.Struct, frozen=True):
    input: int | None = None  # uncached tokens; before 0.24 there is only `prompt`, with all tokens
    prompt: int = 0
    candidates: int = 0
    thoughts: int = 0
    cached: int = 0


class _Model(msgspec.Struct, frozen=True):
    input: int = 0
    output_tokens: int = 0
    cached: int = 0
    tokens: _Tokens | None = None  # in `json`, instead of the others

    def counted(self) -> dict[str, Any]:
        if tokens := self.tokens:
            uncached = tokens.prompt - tokens.cached if tokens.input is None else tokens.input
            return _counts(uncached, tokens.candidates + tokens.thoughts, tokens.cached)
        return _counts(self.input, self.output_tokens, self.cached)


def _counts(uncached: int, output: int, cached: int) -> dict[str, Any]:
    return {"inputTokens": uncached, "outputTokens": output, "cacheReadInputTokens": cached}


class _Stats(msgspec.Struct, frozen=True):
    duration_ms: int | None = None
    models: dict[str, _Model] = {}
    input_tokens: int = 0  # tokens of all models, including cached tokens: the only count before 0.24
    output_tokens: int = 0
    cached: int = 0

    def counted(self) -> dict[str, dict[str, Any]]:
        if self.input_tokens and not self.models:
            return {MODEL: _counts(self.input_tokens - self.cached, self.output_tokens, self.cached)}
        return {name: counts.counted() for name, counts in self.models.items()}


class _Line(msgspec.Struct, frozen=True):
    type: str | None = None
    session_id: str | None = None
    model: str | None = None
    role: str | None = None
    content: str = ""
    tool_name: str | None = None
    tool_id: str | None = None
    parameters: Any = None
    output: Any = None
    status: str | None = None
    response: str | None = None
    error: _Failure | None = None
    stats: _Stats | None = None


class GeminiOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        if first.get("type") == "message":
            return str(first.get("timestamp")).endswith("Z")  # messages of others have local times, or none
        return first.get("type") == "init" or ("type" not in first and "stats" in first)

    def __init__(self) -> None:
        self._text = ""

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            head = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            return []
        if head.type is None:
            return [self._result(line, head)] if head.stats or head.error else []
        message = SdkMessage(line, head.type, session_id=head.session_id)
        match head.type, head.role:
            case "init", _:
                return [SdkMessage(line, "system", "init", head.session_id, init=Init(model=head.model))]
            case "message", "user":
                return [SdkMessage(line, "user", inner=Inner(content=head.content))]
            case "message", _:
                self._text += head.content
                return [translated(message, "assistant", text_block(head.content))]
            case "tool_use", _:
                self._text = ""
                block = tool_use(head.tool_id, head.tool_name, head.parameters)
                return [translated(message, "assistant", block)]
            case "tool_result", _:
                output = head.error.message if head.error and not head.output else head.output
                block = tool_result(head.tool_id, None, output, is_error=head.status != "success")
                return [translated(message, "user", block)]
            case "result", _:
                return [self._result(line, head)]
        return [message]

    def _result(self, line: bytes, decoded: _Line) -> SdkMessage:
        stats = decoded.stats or _Stats()
        models = stats.counted()
        failed = decoded.error is not None or decoded.status not in (None, "success")
        result = Result(
            is_error=failed,
            result=decoded.response or self._text or None,
            errors=[decoded.error.message] if decoded.error else None,
            duration_ms=stats.duration_ms,
            usage=_sum(models),
            model_usage=models or None,
        )
        return SdkMessage(line, "result", decoded.status, decoded.session_id, result=result)


def _sum(models: dict[str, dict[str, Any]]) -> ReportedUsage | None:
    """Return the sum over the models: a total that equals its models says that these counts began with this process."""
    if not models:
        return None
    uncached, output, cached = (
        sum(column) for column in zip(*(counts.values() for counts in models.values()), strict=True)
    )
    return ReportedUsage(input_tokens=uncached, output_tokens=output, cache_read_input_tokens=cached)


OUTPUT = GeminiOutput
