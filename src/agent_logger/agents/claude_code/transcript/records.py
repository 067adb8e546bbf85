"""The lines of Claude Code's session files, as types.

Names are the file's own, in Python's spelling. The same types read all versions: a field that a version does not write
is `None`. They also read the shapes that are in the specification's samples and that no version was seen to write: a
text as `message`, and `tool_use`, `tool_result` and `result` as lines of their own.
"""

from typing import Any, ClassVar

import msgspec

from agent_logger.messages.result_usage import ModelTotals
from agent_logger.model.session import Session, Usage
from agent_logger.providers.token_counts import MOST_TOKENS, usage_of

NOTHING = msgspec.Raw()  # stands for a value that is decoded where it is needed

_NAMES = {
    "session_id": "sessionId",
    "parent_uuid": "parentUuid",
    "git_branch": "gitBranch",
    "is_sidechain": "isSidechain",
    "agent_id": "agentId",
    "user_type": "userType",
    "forked_from": "forkedFrom",
    "is_meta": "isMeta",
    "is_compact_summary": "isCompactSummary",
    "prompt_source": "promptSource",
    "tool_use_result": "toolUseResult",
    "request_id": "requestId",
    "api_block_index": "apiBlockIndex",
    "is_api_error_message": "isApiErrorMessage",
    "is_aborted_mid_stream": "isAbortedMidStream",
    "cost_usd": "costUSD",
    "leaf_uuid": "leafUuid",
    "logical_parent_uuid": "logicalParentUuid",
    "compact_metadata": "compactMetadata",
    "message_id": "messageId",
    "tracking_path": "trackingPath",
    "ai_title": "aiTitle",
    "custom_title": "customTitle",
    "total_cost_usd": "totalCostUSD",
    "model_usage": "modelUsage",
    "tracked_file_backups": "trackedFileBackups",
    "backup_file_name": "backupFileName",
    "backup_time": "backupTime",
    "persisted_output_path": "persistedOutputPath",
    "pre_tokens": "preTokens",
    "post_tokens": "postTokens",
    "context_tokens": "contextTokens",
    "output_tokens": "outputTokens",
}


class ContentPart(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename=_NAMES):
    """A part of a line."""


class ReportedUsageLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A part of a line in the API's own spelling."""


class CacheCreation(ReportedUsageLine, frozen=True, kw_only=True):
    """Tokens written to the prompt cache, by how long they stay in it."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class MessageUsage(ReportedUsageLine, frozen=True, kw_only=True):
    """Tokens as the API reported them for one response, in its own names.

    Nearly all lines have those, so they are decoded straight into this type; `message_usage` converts a usage object
    with other names.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    service_tier: str | None = None

    def usage(self) -> Usage:
        """Return the tokens in the form that all agents share."""
        split = self.cache_creation
        long = (split.ephemeral_1h_input_tokens if split else 0) or 0
        write = self.cache_creation_input_tokens or ((split.ephemeral_5m_input_tokens or 0) + long if split else 0)
        return Usage(
            input_tokens=self.input_tokens or 0,
            output_tokens=self.output_tokens or 0,
            cache_read_tokens=self.cache_read_input_tokens or 0,
            cache_write_tokens=write,
            cache_write_1h_tokens=long if long <= write else write,
        )

    @property
    def is_understood(self) -> bool:
        """Whether there are counts, and all of them are possible."""
        given, output = self.input_tokens, self.output_tokens
        read, write = self.cache_read_input_tokens, self.cache_creation_input_tokens
        split = self.cache_creation
        if given is None and output is None and read is None and write is None and split is None:
            return False
        bits = (given or 0) | (output or 0) | (read or 0) | (write or 0)  # all of them, at once
        if split is not None:
            bits |= (split.ephemeral_5m_input_tokens or 0) | (split.ephemeral_1h_input_tokens or 0)
        return 0 <= bits < MOST_TOKENS


UNREAD_USAGE = MessageUsage()  # stands for a usage object that is not understood


def message_usage(value: Any) -> MessageUsage | None:
    """Convert a usage object with any known names; None if there is none."""
    if value is None:
        return None
    usage = usage_of(value)
    if usage is None:
        return UNREAD_USAGE
    hour = usage.cache_write_1h_tokens
    tier = value.get("service_tier")
    return MessageUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_input_tokens=usage.cache_read_tokens,
        cache_creation_input_tokens=usage.cache_write_tokens,
        cache_creation=CacheCreation(ephemeral_1h_input_tokens=hour) if hour else None,
        service_tier=tier if isinstance(tier, str) else None,
    )


class MessageHead(ReportedUsageLine, frozen=True, kw_only=True):
    """What a message of the model says about itself."""

    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_reason_camel: str | None = msgspec.field(name="stopReason", default=None)
    usage: MessageUsage | None = None

    @property
    def stopped(self) -> str | None:
        """Why the model stopped, under either of the names that versions of the client use."""
        return self.stop_reason or self.stop_reason_camel


class ClaudeMessage(MessageHead, frozen=True, kw_only=True):
    """What the model said, or was sent. `content` is a text or a list of blocks, in the API's own form."""

    role: str | None = None
    content: Any = None


class InputOrigin(ContentPart, frozen=True, kw_only=True):
    """Where the text of a user line came from, if not from a person."""

    kind: str | None = None


class ForkedFrom(ContentPart, frozen=True, kw_only=True):
    """The session that this one was forked from."""

    session_id: str | None = None


class ToolUseResult(ContentPart, frozen=True, kw_only=True):
    """What the client knows of a tool's run beside what it sends to the model."""

    agent_id: str | None = None
    persisted_output_path: str | None = None


class CompactMetadata(ContentPart, frozen=True, kw_only=True):
    """What started a compaction, and the size of the context before and after it."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None


class CompactionMessage(ReportedUsageLine, frozen=True, kw_only=True):
    """A compaction's metadata in the messages of an SDK."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None


class Backup(ContentPart, frozen=True, kw_only=True):
    """A file's state: in the client's own shape a name that holds a hash, in the specification's the content."""

    backup_file_name: str | None = None
    backup_time: str | None = None
    content: str | None = None
    timestamp: str | None = None


class Snapshot(ContentPart, frozen=True, kw_only=True):
    """The state of files, by path."""

    tracked_file_backups: dict[str, Backup] = {}
    timestamp: str | None = None


class Attachment(ContentPart, frozen=True, kw_only=True):
    """What an attachment line carries; `type` says what it is."""

    type: str | None = None
    prompt: Any = None  # in `queued_command`: what a person typed while the agent was working


# ---------------------------------------------------------------- lines


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename=_NAMES):
    """Fields that every line may have."""

    TYPE: ClassVar[str] = ""

    type: str = ""
    timestamp: str | None = None
    session_id: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    forked_from: ForkedFrom | str | None = None


class UserRecord(SessionRecord, frozen=True, kw_only=True):
    """What the model was sent: a person's prompt, results of tools, texts of the client."""

    TYPE = "user"

    message: ClaudeMessage | str | None = None
    user_type: str | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    prompt_source: str | None = None
    origin: InputOrigin | str | None = None
    tool_use_result: ToolUseResult | str | list[Any] | None = None


class AssistantRecord(SessionRecord, frozen=True, kw_only=True):
    """A response of the model, or one block of it; the lines of one response have the same `message.id`."""

    TYPE = "assistant"

    message: ClaudeMessage | str | None = None
    user_type: str | None = None
    request_id: str | None = None
    api_block_index: int | None = None
    is_api_error_message: bool | None = None
    is_aborted_mid_stream: bool | None = None
    cost_usd: float | None = None
    usage: MessageUsage | None = None


class ToolUseRecord(SessionRecord, frozen=True, kw_only=True):
    """A tool call as a line of its own, in the specification's shape."""

    TYPE = "tool_use"

    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None


class ToolResultRecord(SessionRecord, frozen=True, kw_only=True):
    """The result of a tool as a line of its own, in the specification's shape."""

    TYPE = "tool_result"

    content: Any = None
    tool_use_id: str | None = None
    is_error: bool | None = None


class SummaryRecord(SessionRecord, frozen=True, kw_only=True):
    """A title for the session that has the line `leafUuid`, which may be in another file."""

    TYPE = "summary"

    summary: str | None = None
    leaf_uuid: str | None = None


class SystemRecord(SessionRecord, frozen=True, kw_only=True):
    """What the client notes: a retry, a compaction, the output of a command. `error` is that of a call that failed,
    with the `status` of the answer if there was one."""

    TYPE = "system"

    subtype: str | None = None
    message: Any = None
    content: Any = None
    is_meta: bool | None = None
    logical_parent_uuid: str | None = None
    compact_metadata: CompactMetadata | None = None
    error: msgspec.Raw = NOTHING


class RequestRecord(SessionRecord, frozen=True, kw_only=True):
    """A call that is about to be made. `params` is the request, with the `model`."""

    TYPE = "api-request"

    params: msgspec.Raw = NOTHING


class ResultRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended: the last line of the command's output."""

    TYPE: ClassVar[str] = "result"

    type: str = ""
    result: str | None = None
    session_id: str | None = None
    duration_ms: float | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None


class FileHistoryRecord(SessionRecord, frozen=True, kw_only=True):
    """Files that the agent is about to change: the client's shape is `snapshot`, the specification's `files`."""

    TYPE = "file-history-snapshot"

    message_id: str | None = None
    snapshot: Snapshot | None = None
    files: dict[str, Backup] = {}


class FileDeltaRecord(SessionRecord, frozen=True, kw_only=True):
    """Another file that the agent is about to change."""

    TYPE = "file-history-delta"

    tracking_path: str | None = None
    backup: Backup | None = None


class AttachmentRecord(SessionRecord, frozen=True, kw_only=True):
    """What the client sent to the model beside the conversation: reminders, inputs that were typed meanwhile."""

    TYPE = "attachment"

    attachment: Attachment | None = None


class TitleRecord(SessionRecord, frozen=True, kw_only=True):
    """The client's title; the last one counts."""

    TYPE = "ai-title"

    ai_title: str | None = None


class CustomTitleRecord(SessionRecord, frozen=True, kw_only=True):
    """The person's title."""

    TYPE = "custom-title"

    custom_title: str | None = None


class CostRecord(SessionRecord, frozen=True, kw_only=True):
    """The client's own total, written when it ends normally. `modelUsage` is the usage of the whole session, by
    model."""

    TYPE = "cost-state"

    total_cost_usd: float | None = None
    model_usage: dict[str, ModelTotals] | None = None  # the usage of the whole session


class OtherRecord(SessionRecord, frozen=True, kw_only=True):
    """A line of a type that a session does not need, or of a type newer than this."""


AnyRecord = SessionRecord | ResultRecord

RECORDS: dict[str, type[AnyRecord]] = {
    record.TYPE: record
    for record in (
        UserRecord,
        AssistantRecord,
        ToolUseRecord,
        ToolResultRecord,
        SummaryRecord,
        SystemRecord,
        ResultRecord,
        FileHistoryRecord,
        FileDeltaRecord,
        AttachmentRecord,
        TitleRecord,
        CustomTitleRecord,
        CostRecord,
        RequestRecord,
    )
}


# ---------------------------------------------------------------- token usage


class TokenUsage(ContentPart, frozen=True, kw_only=True):
    """The two numbers that the specification requires of a session."""

    context_tokens: int  # the input that the model last got, on the main thread
    output_tokens: int  # tokens of all responses, each once


def token_usage(session: Session) -> TokenUsage:
    """Return the two numbers of a session."""
    return TokenUsage(context_tokens=session.context_tokens or 0, output_tokens=session.usage.output_tokens)
