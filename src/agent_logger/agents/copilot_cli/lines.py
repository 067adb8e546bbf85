"""The lines of Copilot CLI's sessions, decoded as far as they matter. Each is an event: `{type, data, id, timestamp,
parentId}`, and `agentId` if a sub-agent caused it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from agent_logger.agents.copilot_cli.damaged_lines import SplitRecord, may_be_deep, readable
from agent_logger.agents.objects import salvaged, time_of
from agent_logger.agents.source_files import File, raw_lines_of
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import REFUSED, fitting


class WorkingContext(msgspec.Struct, gc=False):
    cwd: str | None = None


class CopilotStart(msgspec.Struct, gc=False):
    """`session.start` and `session.resume`."""

    session: str | None = msgspec.field(name="sessionId", default=None)
    model: str | None = msgspec.field(name="selectedModel", default=None)
    context: WorkingContext | None = None


class SessionInfo(msgspec.Struct, gc=False):
    kind: str | None = msgspec.field(name="infoType", default=None)
    message: str | None = None


class ModelChange(msgspec.Struct, gc=False):
    model: str | None = msgspec.field(name="newModel", default=None)


class UserMessage(msgspec.Struct, gc=False):
    content: str | None = None
    source: str | None = None  # the sender, if that was not a person
    interaction: str | None = msgspec.field(name="interactionId", default=None)
    attachments: Any = None


class ToolRequest(msgspec.Struct, gc=False):
    call: str | None = msgspec.field(name="toolCallId", default=None)
    name: str | None = None
    arguments: Any = None
    server: str | None = msgspec.field(name="mcpServerName", default=None)
    tool: str | None = msgspec.field(name="mcpToolName", default=None)


class AssistantMessage(msgspec.Struct, gc=False):
    content: str | None = None
    thinking: str | None = msgspec.field(name="reasoningText", default=None)
    requests: list[ToolRequest] | None = msgspec.field(name="toolRequests", default=None)
    model: str | None = None
    response_id: str | None = msgspec.field(name="apiCallId", default=None)
    interaction: str | None = msgspec.field(name="interactionId", default=None)
    caller: str | None = msgspec.field(name="parentToolCallId", default=None)


class AnswerHead(msgspec.Struct, gc=False):
    """An `assistant.message` without its texts."""

    model: str | None = None
    response_id: str | None = msgspec.field(name="apiCallId", default=None)
    caller: str | None = msgspec.field(name="parentToolCallId", default=None)


class Accounting(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="sourceSessionId", default=None)


class CopilotUsage(msgspec.Struct, gc=False):
    model: str | None = None
    input: Any = msgspec.field(name="inputTokens", default=None)  # with what came from the cache or went into it
    output: Any = msgspec.field(name="outputTokens", default=None)
    cache_read: Any = msgspec.field(name="cacheReadTokens", default=None)
    cache_write: Any = msgspec.field(name="cacheWriteTokens", default=None)
    response_id: str | None = msgspec.field(name="apiCallId", default=None)
    endpoint: str | None = msgspec.field(name="apiEndpoint", default=None)
    milliseconds: Any = msgspec.field(name="duration", default=None)
    finish_reason: str | None = msgspec.field(name="finishReason", default=None)
    accounting: Accounting | None = None


class UsageRecord(msgspec.Struct, gc=False):
    usage: CopilotUsage | None = None
    caller: str | None = msgspec.field(name="parentToolCallId", default=None)


class ToolStart(msgspec.Struct, gc=False):
    call: str | None = msgspec.field(name="toolCallId", default=None)
    name: str | None = msgspec.field(name="toolName", default=None)
    arguments: Any = None
    caller: str | None = msgspec.field(name="parentToolCallId", default=None)


class ToolFailure(msgspec.Struct, gc=False):
    message: str | None = None


class ShellExecution(msgspec.Struct, gc=False):
    exit_code: Any = msgspec.field(name="exitCode", default=None)


class ToolEnd(msgspec.Struct, gc=False):
    call: str | None = msgspec.field(name="toolCallId", default=None)
    success: Any = True
    result: Any = None
    error: ToolFailure | str | None = None
    shell: ShellExecution | None = msgspec.field(name="shellExecution", default=None)
    caller: str | None = msgspec.field(name="parentToolCallId", default=None)


class AgentStart(msgspec.Struct, gc=False):
    """`subagent.started`"""

    call: str | None = msgspec.field(name="toolCallId", default=None)
    kind: str | None = msgspec.field(name="agentName", default=None)
    description: str | None = msgspec.field(name="agentDescription", default=None)
    name: str | None = msgspec.field(name="agentDisplayName", default=None)


class TurnMark(msgspec.Struct, gc=False):
    """`assistant.turn_start`, `assistant.turn_end` and `abort`"""

    interaction: str | None = msgspec.field(name="interactionId", default=None)
    caller: str | None = msgspec.field(name="parentToolCallId", default=None)


class SessionError(msgspec.Struct, gc=False):
    message: str | None = None


class Summary(msgspec.Struct, gc=False):
    """`session.compaction_complete`"""

    success: Any = True
    text: str | None = msgspec.field(name="summaryContent", default=None)
    tokens_before: Any = msgspec.field(name="preCompactionTokens", default=None)
    tokens_after: Any = msgspec.field(name="postCompactionTokens", default=None)
    trigger: str | None = None
    used: Any = msgspec.field(name="compactionTokensUsed", default=None)


class ModelCall(msgspec.Struct, gc=False):
    model: str | None = None
    response_id: str | None = msgspec.field(name="api_id", default=None)


class SideCall(msgspec.Struct, gc=False):
    """`model.model_call_success`: a call outside the conversation."""

    call: ModelCall | None = msgspec.field(name="modelCall", default=None)
    usage: Any = msgspec.field(name="responseUsage", default=None)


class AccountingSnapshot(msgspec.Struct, gc=False):
    start: Any = msgspec.field(name="sessionStartTime", default=None)


class Shutdown(msgspec.Struct, gc=False):
    models: dict[str, Any] | None = msgspec.field(name="modelMetrics", default=None)
    # Newer versions restore the counts when a session is resumed, and then write this.
    snapshot: AccountingSnapshot | None = msgspec.field(name="accountingSnapshot", default=None)


# What matters for the ledger, and what matters for the conversation beside it.
BILLING_EVENTS: Mapping[str, type[msgspec.Struct]] = {
    "session.start": CopilotStart,
    "session.resume": CopilotStart,
    "session.info": SessionInfo,
    "session.model_change": ModelChange,
    "session.usage_record": UsageRecord,
    "assistant.message": AnswerHead,
    "session.compaction_complete": Summary,
    "model.model_call_success": SideCall,
    "session.shutdown": Shutdown,
}
# The beginning of a session.
FIRST_EVENTS: Mapping[str, type[msgspec.Struct]] = {
    "session.start": CopilotStart,
    "session.info": SessionInfo,
    "user.message": TurnMark,
    "assistant.turn_start": TurnMark,
}
SESSION_EVENTS: Mapping[str, type[msgspec.Struct]] = {
    **BILLING_EVENTS,
    "user.message": UserMessage,
    "assistant.message": AssistantMessage,
    "assistant.turn_start": TurnMark,
    "assistant.turn_end": TurnMark,
    "abort": TurnMark,
    "tool.execution_start": ToolStart,
    "tool.execution_complete": ToolEnd,
    "subagent.started": AgentStart,
    "session.error": SessionError,
}

D = TypeVar("D")


class _Line(msgspec.Struct, Generic[D], gc=False):
    data: D
    id: str | None = None
    timestamp: str | None = None
    agent: str | None = msgspec.field(name="agentId", default=None)


class _Envelope(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    agent: str | None = msgspec.field(name="agentId", default=None)


class CopilotEvent(msgspec.Struct, gc=False):
    data: Any  # one of the classes above
    kind: str
    at: datetime | None
    id: str | None
    agent: str | None  # the sub-agent that caused it


Kinds = Mapping[str, type[msgspec.Struct]]

_DECODERS: Mapping[type[msgspec.Struct], Callable[[bytes], _Line[Any]]] = {
    data: msgspec.json.Decoder(_Line[data]).decode  # type: ignore[valid-type]
    for data in {*BILLING_EVENTS.values(), *FIRST_EVENTS.values(), *SESSION_EVENTS.values()}
}
_BEGINNING = re.compile(rb'\{"type":"([a-z_.]+)","data":')
_RECORD = b'{"type":"'


def events_in(file: File, kinds: Kinds) -> Iterator[CopilotEvent]:
    """Yield the events of these types, in order. An event that is in the file twice counts once."""
    ids: set[tuple[str, str]] = set()
    for event in _events(file, kinds):
        if not event.id:
            yield event
        elif (event.kind, event.id) not in ids:
            ids.add((event.kind, event.id))
            yield event


def _events(file: File, kinds: Kinds) -> Iterator[CopilotEvent]:
    split: SplitRecord | None = None
    for line in raw_lines_of(file, unfinished=True):
        match = _BEGINNING.match(line)
        kind = match[1].decode() if match else ""
        if match and kind not in kinds and line.endswith(b"}") and line.find(_RECORD, 1) < 0:
            record: CopilotEvent | Json | None = {}  # most bytes are in such lines
        else:
            record = _decoded(kind, kinds.get(kind), line)
        if split and not match and not _is_event(record):
            record = split.add(line)
        elif split:
            yield from _lenient_events(split.remains(), kinds)
            split = None
        if record is not None:
            split = None
            yield from [record] if isinstance(record, CopilotEvent) else _lenient_events([record], kinds)
        elif split is None:
            parts = list(salvaged(line))
            yield from _lenient_events(parts, kinds)
            split = SplitRecord(line) if match and not parts else None
    if split:
        yield from _lenient_events(split.remains(), kinds)


def _decoded(kind: str, data: type[msgspec.Struct] | None, line: bytes) -> CopilotEvent | Json | None:
    """Decode a line; into its fields if some of them do not fit. None if it is not a whole record."""
    try:
        if data is not None and not may_be_deep(line):
            decoded = _DECODERS[data](line)
            return CopilotEvent(decoded.data, kind, time_of(decoded.timestamp), decoded.id, decoded.agent)
    except REFUSED:
        pass
    return readable(line) if line.strip(b" \t\r\0") else {}


def _is_event(record: CopilotEvent | Json | None) -> bool:
    return type(record) is dict and "data" in record and type(record.get("timestamp")) is str


def _lenient_events(records: Iterable[Json], kinds: Kinds) -> Iterator[CopilotEvent]:
    for fields in records:
        envelope = fitting(_Envelope, fields)
        if data := kinds.get(envelope.type):
            fitted = fitting(data, fields.get("data"))
            yield CopilotEvent(fitted, envelope.type, time_of(envelope.timestamp), envelope.id, envelope.agent)
