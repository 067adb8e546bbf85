"""What `opencode import` requires of a message and of a part.

The source of 1.18.18 says so; samples were tried with 1.18.33.

The import checks one row after the other while it writes them, and stops at the first that it refuses: the rest of the
session is then missing. Fields that are not listed here are not checked; the import drops those that it does not know.
A role or a type that is not listed may belong to a newer version, which accepts it.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from agent_logger.providers.json_values import refuse_constant

Object = dict[str, Any]
# JavaScript's limits: a larger number is not a number there, or not a whole one.
Finite = Annotated[float, Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]
Whole = Annotated[int, Meta(ge=0, le=2**53 - 1)]
SessionID = Annotated[str, Meta(pattern="^ses")]
WorkspaceID = Annotated[str, Meta(pattern="^wrk")]
MessageID = Annotated[str, Meta(pattern="^msg")]
PartID = Annotated[str, Meta(pattern="^prt")]
OptionalText = str | UnsetType
OptionalFlag = bool | UnsetType
OptionalObject = Object | UnsetType


class PartTimes(Struct):
    start: Whole
    end: Whole | UnsetType = UNSET


class WholeSpan(Struct):
    start: Whole
    end: Whole


class CacheTokens(Struct):
    read: Finite
    write: Finite


class MessageTokens(Struct):
    input: Finite
    output: Finite
    reasoning: Finite
    cache: CacheTokens
    total: Finite | UnsetType = UNSET


class FileDiff(Struct):
    additions: Finite
    deletions: Finite
    file: OptionalText = UNSET
    patch: OptionalText = UNSET
    status: Literal["added", "deleted", "modified"] | UnsetType = UNSET


# ---------------------------------------------------------------- sessions


class SessionModel(Struct):
    id: str
    provider: str = field(name="providerID")
    variant: OptionalText = UNSET


class PermissionRule(Struct):
    permission: str
    pattern: str
    action: Literal["allow", "deny", "ask"]


class Revert(Struct):
    message: MessageID = field(name="messageID")
    part: PartID | UnsetType = field(name="partID", default=UNSET)
    snapshot: OptionalText = UNSET
    diff: OptionalText = UNSET


# ---------------------------------------------------------------- messages


class MessageShape(Struct):
    id: MessageID


class UserTime(Struct):
    created: Annotated[float, Meta(ge=0, le=1.7976931348623157e308)]


class UserModel(Struct):
    provider: str = field(name="providerID")
    model: str = field(name="modelID")
    variant: OptionalText = UNSET


class UserSummary(Struct):
    diffs: list[FileDiff]
    title: OptionalText = UNSET
    body: OptionalText = UNSET


class UserShape(MessageShape, kw_only=True):
    time: UserTime
    agent: str
    model: UserModel
    summary: UserSummary | UnsetType = UNSET
    system: OptionalText = UNSET
    tools: dict[str, bool] | UnsetType = UNSET


class AssistantTime(Struct):
    created: Whole
    completed: Whole | UnsetType = UNSET


class AssistantPath(Struct):
    cwd: str
    root: str


class AssistantError(Struct):
    name: str
    data: Object


class AssistantShape(MessageShape, kw_only=True):
    time: AssistantTime
    parent: MessageID = field(name="parentID")
    model: str = field(name="modelID")
    provider: str = field(name="providerID")
    mode: str
    agent: str
    path: AssistantPath
    cost: Finite
    tokens: MessageTokens
    error: AssistantError | UnsetType = UNSET
    summary: OptionalFlag = UNSET
    variant: OptionalText = UNSET
    finish: OptionalText = UNSET


# ---------------------------------------------------------------- parts


class PartShape(Struct, kw_only=True):
    id: PartID
    message: MessageID = field(name="messageID")


class TextShape(PartShape, kw_only=True):
    text: str
    synthetic: OptionalFlag = UNSET
    ignored: OptionalFlag = UNSET
    time: PartTimes | UnsetType = UNSET
    metadata: OptionalObject = UNSET


class ReasoningShape(PartShape, kw_only=True):
    text: str
    time: PartTimes
    metadata: OptionalObject = UNSET


class FileShape(PartShape, kw_only=True):
    mime: str
    url: str
    filename: OptionalText = UNSET
    source: OptionalObject = UNSET


class PendingState(Struct):
    input: Object
    raw: str


class RunningState(Struct):
    input: Object
    time: PartTimes
    title: OptionalText = UNSET
    metadata: OptionalObject = UNSET


class CompletedState(Struct):
    input: Object
    output: str
    title: str
    metadata: Object
    time: WholeSpan
    attachments: list[Object] | UnsetType = UNSET


class FailedState(Struct):
    input: Object
    error: str
    time: WholeSpan
    metadata: OptionalObject = UNSET


class ToolShape(PartShape, kw_only=True):
    call: str = field(name="callID")
    tool: str
    state: Object  # see `STATES`
    metadata: OptionalObject = UNSET


class StepStartShape(PartShape, kw_only=True):
    snapshot: OptionalText = UNSET


class StepFinishShape(PartShape, kw_only=True):
    reason: str
    cost: Finite
    tokens: MessageTokens
    snapshot: OptionalText = UNSET


class SnapshotShape(PartShape, kw_only=True):
    snapshot: str


class PatchShape(PartShape, kw_only=True):
    hash: str
    files: list[str]


class AgentShape(PartShape, kw_only=True):
    name: str
    source: OptionalObject = UNSET


class SubtaskShape(PartShape, kw_only=True):
    prompt: str
    description: str
    agent: str
    model: OptionalObject = UNSET
    command: OptionalText = UNSET


class RetryTime(Struct):
    created: Whole


class RetryShape(PartShape, kw_only=True):
    attempt: Whole
    error: AssistantError
    time: RetryTime


class CompactionShape(PartShape, kw_only=True):
    auto: bool
    overflow: OptionalFlag = UNSET
    tail_start_id: MessageID | UnsetType = UNSET


ROLES: Mapping[str, type[Struct]] = {"user": UserShape, "assistant": AssistantShape}
TYPES: Mapping[str, type[Struct]] = {
    "text": TextShape,
    "reasoning": ReasoningShape,
    "file": FileShape,
    "tool": ToolShape,
    "step-start": StepStartShape,
    "step-finish": StepFinishShape,
    "snapshot": SnapshotShape,
    "patch": PatchShape,
    "agent": AgentShape,
    "subtask": SubtaskShape,
    "retry": RetryShape,
    "compaction": CompactionShape,
}
STATES: Mapping[str, type[Struct]] = {
    "pending": PendingState,
    "running": RunningState,
    "completed": CompletedState,
    "error": FailedState,
}


def fault_in_message(value: Object) -> str | None:
    """Return why `opencode import` refuses a message; None if it accepts it."""
    return _fault(value, "role", ROLES, MessageShape)


def fault_in_part(value: Object) -> str | None:
    """Return why `opencode import` refuses a part; None if it accepts it."""
    fault = _fault(value, "type", TYPES, PartShape)
    if fault is None and value["type"] == "tool":
        return _fault(value["state"], "status", STATES, None)
    return fault


def _fault(value: Object, tag: str, shapes: Mapping[str, type[Struct]], other: type[Struct] | None) -> str | None:
    name = value.get(tag)
    if type(name) is not str:
        return f"no `{tag}`"
    return misfit(value, shapes.get(name, other))


def misfit(value: Any, shape: Any) -> str | None:
    """Return why a value does not have a shape; None if it has."""
    try:
        msgspec.convert(value, shape or Any)
    except msgspec.ValidationError as error:
        return str(error)
    return None


# ---------------------------------------------------------------- JSON as JavaScript reads it


def read_json(text: str) -> Any:
    """Decode JSON. Raises `ValueError` for what is not JSON, and `RecursionError` for what is nested too deeply."""
    return json.loads(text, parse_float=_number, parse_constant=refuse_constant)


def read_object(text: str) -> Object:
    """Decode a JSON object. Raises what `read_json` does, and `ValueError` for any other value."""
    value = read_json(text)
    if type(value) is not dict:
        raise ValueError(f"it is {'an array' if type(value) is list else 'a single value'}")
    return value


def _number(text: str) -> float:
    """Read a number as JavaScript does, which has one kind of number: 5.0 is a whole one."""
    number = float(text)
    return int(number) if number.is_integer() else number
