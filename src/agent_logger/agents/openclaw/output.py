"""What `openclaw agent --json` prints: one object at the end of a run, which the gateway puts into another as
`result`."""

from typing import Any

import msgspec

from agent_logger.messages.sdk import ReportedUsage, Result, SdkMessage
from agent_logger.providers.json_values import fields_of, text_of
from agent_logger.providers.lenient import REFUSED, fitting


class _Payload(msgspec.Struct):
    text: str | None = None


class _Usage(msgspec.Struct):
    input: int | None = None
    output: int | None = None
    cache_read: int | None = msgspec.field(name="cacheRead", default=None)
    cache_write: int | None = msgspec.field(name="cacheWrite", default=None)


class _AgentMeta(msgspec.Struct):
    session: str | None = msgspec.field(name="sessionId", default=None)
    model: str | None = None
    usage: _Usage | None = None  # of the run
    cost: float | None = msgspec.field(name="costUsd", default=None)
    turns: int | None = msgspec.field(name="assistantTurns", default=None)


class _Meta(msgspec.Struct):
    agent: _AgentMeta = msgspec.field(name="agentMeta", default_factory=_AgentMeta)
    aborted: bool = False
    duration_ms: int | None = msgspec.field(name="durationMs", default=None)
    stop_reason: str | None = msgspec.field(name="stopReason", default=None)
    error: Any = None


class _Printed(msgspec.Struct):
    payloads: list[_Payload] = []
    meta: _Meta = msgspec.field(default_factory=_Meta)
    error: Any = None
    ok: bool | None = None


class OpenclawOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        printed = fields_of(first.get("result")) or first
        return "payloads" in printed and "agentMeta" in fields_of(printed.get("meta"))

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            value = msgspec.json.decode(line)
        except REFUSED:
            return []
        fields = fields_of(value)
        printed = fitting(_Printed, fields_of(fields.get("result")) or fields)
        failure = _failure(printed.error) or _failure(printed.meta.error)
        if not failure and "payloads" not in (fields_of(fields.get("result")) or fields):
            return []
        meta = printed.meta
        texts = [payload.text for payload in printed.payloads if payload.text]
        is_error = bool(failure) or meta.aborted or printed.ok is False
        result = Result(
            is_error=is_error,
            result="\n".join(texts) or None,
            errors=[failure] if failure else None,
            num_turns=meta.agent.turns,
            duration_ms=meta.duration_ms,
            stop_reason=meta.stop_reason,
            usage=_reported(meta.agent.usage),
            total_cost_usd=meta.agent.cost or None,  # 0 without a price, too
        )
        return [SdkMessage(line, "result", "error" if is_error else "success", meta.agent.session, result=result)]


def _failure(error: Any) -> str | None:
    return text_of(error) or text_of(fields_of(error).get("message"))


def _reported(usage: _Usage | None) -> ReportedUsage | None:
    if usage is None:
        return None
    return ReportedUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_input_tokens=usage.cache_read,
        cache_creation_input_tokens=usage.cache_write,
    )


OUTPUT = OpenclawOutput
