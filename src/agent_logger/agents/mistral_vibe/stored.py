"""What the store of version 3 has of one session: the history that is shown, the messages that the model gets, the
responses whose records are still there, and the tokens of all.

A generation is the state of the session at the end of a prompt. Its journal has what came after it; the journal before
it stays, older ones are deleted.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.mistral_vibe.documents import StoreIdentity
from agent_logger.agents.objects import object_as, time_of_ms
from agent_logger.agents.source_files import File, raw_lines_of
from agent_logger.model.session import Block
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import fitting

IMPORTED = "imported-"  # begins the ids of entries that were copied from another session
COMPACTION, AGENT = "compaction", "agent"  # purposes of responses
DISCARDED = "discarded"
COMPLETED = "completed"


class VibeEntry(msgspec.Struct, gc=False):
    """An entry of the history: a message, a thought, a tool call with its result, or a mark such as a compaction."""

    id: str = ""
    type: str = ""
    role: str | None = None
    content: Any = None
    text: str | None = None
    summary: Any = None
    source: str | None = None
    kind: str | None = None
    outcome: Any = None
    detail: Any = None
    details: Any = None
    state: Any = None
    created: Any = msgspec.field(name="createdAt", default=None)
    updated: Any = msgspec.field(name="updatedAt", default=None)
    status: str | None = msgspec.field(name="generationStatus", default=None)

    @property
    def started(self) -> datetime | None:
        return time_of_ms(self.created)

    @property
    def ended(self) -> datetime | None:
        return time_of_ms(self.updated) or self.started

    @property
    def is_input(self) -> bool:
        return self.type == "message" and self.role == "user"

    @property
    def is_compaction(self) -> bool:
        return self.type == "checkpoint" and self.kind == COMPACTION and self.status == COMPLETED

    @property
    def is_discarded(self) -> bool:
        return fields_of(self.outcome).get("type") == DISCARDED

    @property
    def action(self) -> str | None:
        """The id of the response that the entry is of: `assistant-<id>`, `reasoning-<id>-<number>`."""
        if self.type == "message" and self.role == "assistant":
            return self.id.removeprefix("assistant-")
        if self.type == "reasoning":
            return self.id.removeprefix("reasoning-").rpartition("-")[0]
        return None

    @property
    def tool(self) -> str:
        """The tool's name, without its group: `file_system.bash`."""
        return (text_of(fields_of(self.detail).get("toolName")) or "").rpartition(".")[2]

    @property
    def output(self) -> Json:
        return fields_of(fields_of(self.state).get("output"))


class VibeMessage(msgspec.Struct, gc=False):
    """A message that the model gets."""

    role: str | None = None
    content: Any = None
    name: str | None = None
    outcome: str | None = None
    call: str | None = msgspec.field(name="tool_call_id", default=None)


class _Context(msgspec.Struct, gc=False):
    message: VibeMessage = msgspec.field(default_factory=VibeMessage)
    source: str | None = None

    @property
    def is_input(self) -> bool:
        return self.message.role == "user" and self.source == "history"


class _LatestTurn(msgspec.Struct, gc=False):
    status: str | None = None
    error: Any = None


class _About(msgspec.Struct, gc=False):
    tokens: Any = msgspec.field(name="tokenUsage", default=None)


class _Envelope(msgspec.Struct, gc=False):
    """The state of a session without its history."""

    session: _About | None = None
    latest: _LatestTurn | None = msgspec.field(name="latestTurn", default=None)
    history: Any = None


class _Settings(msgspec.Struct, gc=False):
    model: str | None = msgspec.field(name="model_name", default=None)


class _Environment(msgspec.Struct, gc=False):
    folder: str | None = msgspec.field(name="working_directory", default=None)


class SessionMeta(msgspec.Struct, gc=False):
    """`meta.json`."""

    title: str | None = None
    environment: _Environment | None = None
    config: _Settings | None = None
    parent: str | None = msgspec.field(name="parent_session_id", default=None)


class _SessionMetadata(msgspec.Struct, gc=False):
    cwd: str | None = None
    spawned_by: str | None = msgspec.field(name="subagent_spawn_key", default=None)


class _ImportSource(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="session_id", default=None)


class _Import(msgspec.Struct, gc=False):
    source: _ImportSource | None = None


class RuntimeState(msgspec.Struct, gc=False):
    """`runtime-state.json`."""

    identity: StoreIdentity = msgspec.field(default_factory=StoreIdentity)
    about: _SessionMetadata = msgspec.field(name="session_metadata", default_factory=_SessionMetadata)
    imported: _Import | None = msgspec.field(name="import_provenance", default=None)

    @property
    def source_session(self) -> str | None:
        """The session that this one was forked or imported from."""
        imported = self.imported.source.session if self.imported and self.imported.source else None
        return imported or (self.identity.parent if self.identity.kind == "fork" else None)


class VibeResponse(msgspec.Struct, gc=False):
    """A response whose records are still in the journal."""

    action: str
    purpose: str | None
    sequence: int
    parts: list[Json]
    usage: Any
    finish_reason: str | None
    at: datetime | None = None

    def tool_uses(self) -> list[Block]:
        return [block for block in spoken_in(self.parts) if block.kind == "tool_use"]


# ---------------------------------------------------------------- records of the journal


class _Record(msgspec.Struct, gc=False):
    type: str = ""
    sequence: int = 0
    payload: msgspec.Raw = msgspec.Raw(b"{}")


class _Request(msgspec.Struct, gc=False):
    purpose: str | None = None


class _Intent(msgspec.Struct, gc=False):
    action: str = msgspec.field(name="action_id", default="")
    request: _Request | None = None


class _Outcome(msgspec.Struct, gc=False):
    type: str | None = None
    result: Any = None
    call: str | None = msgspec.field(name="call_id", default=None)


class _Result(msgspec.Struct, gc=False):
    action: str = msgspec.field(name="action_id", default="")
    result: _Outcome | None = None


class _Command(msgspec.Struct, gc=False):
    action: str | None = msgspec.field(name="action_id", default=None)


class _Determinism(msgspec.Struct, gc=False):
    time: Any = msgspec.field(name="time_unix_ms", default=None)


class _CoreInput(msgspec.Struct, gc=False):
    command: _Command = msgspec.field(default_factory=_Command)
    determinism: _Determinism = msgspec.field(default_factory=_Determinism)


class _Input(msgspec.Struct, gc=False):
    input: _CoreInput = msgspec.field(default_factory=_CoreInput)


class _Operation(msgspec.Struct, gc=False):
    op: str = ""
    id: str | None = None
    entry: VibeEntry | None = None
    entries: list[VibeEntry] = []
    state: _Envelope | None = None


class _Delta(msgspec.Struct, gc=False):
    delta: list[_Operation] = []
    snapshot: _Envelope | None = None


_record = msgspec.json.Decoder(_Record)
_intent = msgspec.json.Decoder(_Intent)
_result = msgspec.json.Decoder(_Result)
_input = msgspec.json.Decoder(_Input)
_delta = msgspec.json.Decoder(_Delta)


class VibeStore:
    """The documents and the journal of one session, read."""

    def __init__(self, state: File, journal: list[File]) -> None:
        self.meta: SessionMeta | None = None
        self.runtime = RuntimeState()
        self._entries: dict[str, VibeEntry] = {}  # an entry may be there twice
        self.tokens: Any = None  # of all responses
        self.latest: _LatestTurn | None = None  # how the latest prompt ended
        self.responses: dict[str, VibeResponse] = {}
        # What the model got after each prompt that it still gets.
        self.prompts: list[tuple[str, list[VibeMessage]]] = []
        self._snapshot = -1  # the last record that the generation includes
        self._purposes: dict[str, str | None] = {}
        for entry in state.entries:
            if isinstance(entry, JsonEntry) and type(entry.value) is dict:
                self._take_document(entry.value)
        for file in journal:
            for line in raw_lines_of(file, unfinished=True):
                self._take_record(object_as(_record, line))

    @property
    def entries(self) -> list[VibeEntry]:
        """The history, without what was copied from another session."""
        return [entry for entry in self._entries.values() if not entry.id.startswith(IMPORTED)]

    # ------------------------------------------------------------ documents

    def _take_document(self, value: Json) -> None:
        if "runtime_state_version" in value:
            self.runtime = fitting(RuntimeState, value)
        elif "projection_state_version" in value:
            sequence = value.get("snapshot_sequence")
            self._snapshot = sequence if type(sequence) is int else -1
            self._take_envelope(fitting(_Envelope, value.get("snapshot")))
        elif "message" in value and "source" in value and "id" not in value:
            self._take_context(fitting(_Context, value))
        elif "environment" in value and "start_time" in value:
            self.meta = fitting(SessionMeta, value)
        elif "type" in value and "id" in value:
            entry = fitting(VibeEntry, value)
            self._entries[entry.id] = entry

    def _take_envelope(self, envelope: _Envelope) -> None:
        self.tokens = envelope.session.tokens if envelope.session else self.tokens
        self.latest = envelope.latest

    def _take_context(self, context: _Context) -> None:
        if context.is_input:
            self.prompts.append((base.joined_text(context.message.content), []))
        elif self.prompts:
            self.prompts[-1][1].append(context.message)

    # ------------------------------------------------------------ the journal

    def _take_record(self, record: _Record) -> None:
        payload, is_new = bytes(record.payload), record.sequence > self._snapshot
        match record.type:
            case "action_intent":
                intent = object_as(_intent, payload)
                self._purposes[intent.action] = intent.request.purpose if intent.request else None
            case "action_result":
                result = object_as(_result, payload)
                if result.result:
                    self._take_result(result.action, result.result, record.sequence, is_new=is_new)
            case "core_input":
                given = object_as(_input, payload).input
                if response := self.responses.get(given.command.action or ""):
                    response.at = time_of_ms(given.determinism.time)
            case "projection_delta" | "projection_advanced" | "session_relocated" if is_new:
                self._take_delta(object_as(_delta, payload))

    def _take_result(self, action: str, outcome: _Outcome, sequence: int, *, is_new: bool) -> None:
        fields = fields_of(outcome.result)
        if outcome.type == "completion_succeeded":
            purpose, parts = self._purposes.get(action), list(base.parts_of(fields.get("parts")))
            self.responses[action] = VibeResponse(
                action, purpose, sequence, parts, fields.get("usage"), text_of(fields.get("finish_reason"))
            )
            if is_new and purpose != COMPACTION and self.prompts:
                self.prompts[-1][1].append(VibeMessage(role="assistant", content=parts))
        elif outcome.call and is_new and self.prompts:
            content = fields.get("structured_content") or fields.get("error") or fields.get("content")
            result = base.result(outcome.call, content)
            message = VibeMessage(
                role="tool", content=result.text, call=outcome.call, outcome=text_of(fields.get("type"))
            )
            self.prompts[-1][1].append(message)

    def _take_delta(self, delta: _Delta) -> None:
        if delta.snapshot:  # an older version writes the whole state
            self._take_envelope(delta.snapshot)
            entries = fields_of(delta.snapshot.history).get("entries")
            given = [fitting(VibeEntry, entry) for entry in entries] if type(entries) is list else []
            self._entries = {entry.id: entry for entry in given}
        for operation in delta.delta:
            self._apply(operation)

    def _apply(self, operation: _Operation) -> None:
        entry = operation.entry
        match operation.op:
            case "append_entry" if entry:
                self._entries[entry.id] = entry
                if entry.is_input:
                    self.prompts.append((base.joined_text(entry.content), []))
            case "replace_entry" if entry and operation.id in self._entries:
                self._entries[operation.id] = entry
            case "remove_entry":
                self._entries.pop(operation.id or "", None)
            case "set_history_entries":
                self._entries = {entry.id: entry for entry in operation.entries}
            case "set_envelope" if operation.state:
                self._take_envelope(operation.state)


# ---------------------------------------------------------------- blocks


def spoken_in(content: Any) -> Iterator[Block]:
    """Yield the blocks of a response: what the model thought, wrote and called."""
    for part in base.parts_of(content):
        match part.get("type"):
            case "text":
                if text := text_of(part.get("text")):
                    yield base.text(text)
            case "reasoning":
                yield base.thinking(base.joined_text(part.get("content")) or base.joined_text(part.get("summary")))
            case "tool_call":
                yield base.use(text_of(part.get("id")), text_of(part.get("name")), _arguments(part))
            case _:
                yield base.other(part)


def _arguments(part: Json) -> Any:
    if "arguments_json" in part:
        return base.arguments(part["arguments_json"])
    given = fields_of(part.get("arguments"))
    return given["value"] if "value" in given else base.arguments(given.get("raw"))


def result_of(message: VibeMessage) -> Block:
    """Return what a tool answered. A command that ended with another code than 0 has failed."""
    text = base.joined_text(message.content)
    failed = message.outcome == "failure" or _exit_code(base.value_of(text)) != 0
    return base.result(message.call, text, name=message.name, is_error=failed)


def _exit_code(value: Any) -> int:
    code = fields_of(value).get("returncode")
    return code if type(code) is int else 0


def use_in(entry: VibeEntry) -> Block:
    return base.use(entry.id, entry.tool, fields_of(entry.detail).get("input"))


def result_in(entry: VibeEntry) -> Block:
    """Return the result in an entry of a tool call. What the model got is not there, only what was shown."""
    structured = entry.output.get("structured_content")
    error = fields_of(fields_of(entry.state).get("error")).get("message")
    state = fields_of(entry.state).get("status")
    content = error if error is not None else structured
    failed = state == "failed" or _exit_code(structured) != 0
    return base.result(entry.id, content, name=entry.tool, is_error=failed)
