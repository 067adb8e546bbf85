"""The lines of `codex exec --json`: a thread, its turns, the items of each.

An item that takes time has two lines, when it starts and when it has ended. `turn.completed` counts tokens over the
whole thread, also over processes.
"""

from typing import Any

import msgspec

from agent_logger.messages.sdk import (
    Init,
    Result,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.providers.token_counts import usage_of

MODEL = "unknown"  # no line names the model


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    type: str
    thread_id: str | None = None
    item: dict[str, Any] | None = None
    usage: Any = None
    error: _Failure | None = None


class CodexOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return str(first.get("type")).startswith(("thread.", "turn.", "item."))

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._text: str | None = None

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError):
            return []
        message = SdkMessage(line, decoded.type)
        match decoded.type:
            case "thread.started":
                head = SdkMessage(line, "system", "init", decoded.thread_id, init=Init())
                return [head]
            case "turn.completed" | "turn.failed":
                return [SdkMessage(line, "result", decoded.type, result=self._result(decoded))]
            case "item.started" | "item.completed" if decoded.item:
                return self._item(message, decoded.item, ended=decoded.type == "item.completed")
        return [message]

    def _item(self, message: SdkMessage, item: dict[str, Any], *, ended: bool) -> list[SdkMessage]:
        match item.get("type"):
            case "agent_message" if ended:
                self._text = _text(item)
                return [translated(message, "assistant", text_block(self._text))]
            case "reasoning" if ended:
                return [translated(message, "assistant", thought(_text(item)))]
            case "command_execution" | "file_change" | "mcp_tool_call" | "web_search" as kind:
                return self._tool(message, str(kind), item, ended=ended)
        return [message]

    def _tool(self, message: SdkMessage, kind: str, item: dict[str, Any], *, ended: bool) -> list[SdkMessage]:
        use_id, name = str(item.get("id")), str(item.get("tool") or kind)
        blocks = []
        if use_id not in self._started:
            self._started.add(use_id)
            blocks.append(translated(message, "assistant", tool_use(use_id, name, _input(item))))
        if ended:
            failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
            block = tool_result(use_id, name, _output(item), is_error=failed)
            blocks.append(translated(message, "user", block, again=bool(blocks)))
        return blocks

    def _result(self, line: _Line) -> Result:
        failed = line.type == "turn.failed"
        usage = usage_of(line.usage)
        counters = (
            {
                "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
                "cacheReadInputTokens": usage.cache_read_tokens,
                "cacheCreationInputTokens": usage.cache_write_tokens,
            }
            if usage
            else None
        )
        return Result(
            is_error=failed,
            result=None if failed else self._text,
            errors=[line.error.message] if line.error else None,
            model_usage={MODEL: counters} if counters else None,
        )


def _text(item: dict[str, Any]) -> str:
    return str(item.get("text") or "")


_OF_THE_RESULT = {"id", "type", "tool", "status", "aggregated_output", "exit_code", "result", "error"}


def _input(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in _OF_THE_RESULT}


def _output(item: dict[str, Any]) -> Any:
    return next((item[key] for key in ("aggregated_output", "result", "error") if item.get(key)), "")


OUTPUT = CodexOutput
