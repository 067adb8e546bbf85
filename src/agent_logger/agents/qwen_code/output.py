"""The output of `qwen --output-format stream-json`, or `json`: Claude Code's messages, with ids and counts of its own.

A response is one message per block, under ids that occur nowhere else, and its input counts include what was cached.
"""

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agent_logger.messages import sdk
from agent_logger.messages.sdk import ReportedUsage, SdkMessage


class QwenOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return "qwen_code_version" in first

    def read(self, line: bytes) -> list[SdkMessage]:
        message = sdk.read(line)
        if message.is_text:
            return []
        inner, result = message.inner, message.result
        if inner:
            inner = replace(inner, id=None, usage=UNSET)
        if result and result.usage:
            result = replace(result, usage=_without_cached(result.usage))
        return [replace(message, inner=inner, result=result)]


def _without_cached(usage: ReportedUsage) -> ReportedUsage:
    input_tokens, cached = usage.input_tokens or 0, usage.cache_read_input_tokens or 0
    return replace(usage, input_tokens=max(0, input_tokens - cached))


OUTPUT = QwenOutput
