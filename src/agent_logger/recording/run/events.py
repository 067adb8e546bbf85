"""The events of a run, for a program that follows it: texts, thoughts, tool calls and their results."""

from collections.abc import Iterator
from typing import Any, Literal, cast

import msgspec

from agent_logger.messages.entries import ExchangeEntry, entries
from agent_logger.messages.sdk import SdkMessage

EventType = Literal["content", "thinking", "tool_use", "tool_result"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened in a run.

    `content` and `thinking` have a `text`; `tool_use` has `tool`, `input`; `tool_result` has `tool`, `output`,
    `is_error`. What a sub-agent does has `parent_tool_use_id`, the tool use that started the sub-agent.
    """

    type: EventType
    timestamp: int  # milliseconds since the epoch; never less than that of the event before
    text: str | None = None
    tool: str | None = None
    input: Any = None
    output: str | None = None
    is_error: bool | None = None
    tool_use_id: str | None = None
    parent_tool_use_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that the event has by name, as values that JSON has."""
        return cast("dict[str, Any]", msgspec.to_builtins(self))


class Events:
    """The events of one run. Remembers tool uses, so that each result names its tool."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._last = 0

    def of(self, message: SdkMessage, milliseconds: int) -> list[Event]:
        if message.inner is None:
            return []
        self._last = max(self._last, milliseconds)
        return [event for entry in entries(message, "") for event in self._events(entry)]

    def _events(self, entry: ExchangeEntry) -> Iterator[Event]:
        match entry.source, entry.type:
            case "assistant", "text":
                yield self._event(entry, "content", text=entry.plain_text)
            case "assistant", "thinking":
                yield self._event(entry, "thinking", text=entry.plain_text)
            case "assistant", _ if entry.name:  # server tools too
                self._tools[entry.tool_use_id or ""] = entry.name
                given = msgspec.json.decode(entry.input) if entry.input else None
                yield self._event(entry, "tool_use", tool=entry.name, input=given)
            case "tool", _:
                tool = entry.name or self._tools.get(entry.tool_use_id or "")
                failed = bool(entry.is_error)
                yield self._event(entry, "tool_result", tool=tool, output=entry.plain_text, is_error=failed)

    def _event(self, entry: ExchangeEntry, kind: EventType, **fields: Any) -> Event:
        return Event(
            type=kind,
            timestamp=self._last,
            tool_use_id=entry.tool_use_id,
            parent_tool_use_id=entry.parent_tool_use_id,
            **fields,
        )
