"""The conversation of a session of version 2: a line for each message, and `meta.json`, written anew at each prompt. No
message has a time or tokens; the tokens of the whole session are in `meta.json`."""

from typing import Any

import msgspec

from agent_logger.agents.mistral_vibe.parts import VibePart, VibeTurn
from agent_logger.agents.objects import object_as, time_of
from agent_logger.agents.source_files import File, raw_lines_of
from agent_logger.messages.human_input import typed
from agent_logger.model.session import Block, Compaction, Usage
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import text_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

COMPACTED = "You are continuing a trajectory after a context compaction."
FAILED = "<tool_error>"


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct, gc=False):
    id: str | None = None
    function: _Function | None = None


class LoggedMessage(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = None
    reasoning: str | None = msgspec.field(name="reasoning_content", default=None)
    injected: bool = False
    calls: list[_Call] | None = msgspec.field(name="tool_calls", default=None)
    call: str | None = msgspec.field(name="tool_call_id", default=None)
    name: str | None = None
    id: str | None = msgspec.field(name="message_id", default=None)


class _Environment(msgspec.Struct, gc=False):
    folder: str | None = msgspec.field(name="working_directory", default=None)


class _Model(msgspec.Struct, gc=False):
    name: str | None = None
    alias: str | None = None


class _Config(msgspec.Struct, gc=False):
    active_model: str | None = None
    models: dict[str, Any] | list[Any] | None = None

    @property
    def model(self) -> str | None:
        """The name of the active model, which is given by its alias. Older versions have a list of models."""
        given = self.models.values() if isinstance(self.models, dict) else self.models or ()
        models = [fitting(_Model, model) for model in given]
        return next((model.name for model in models if model.alias == self.active_model), self.active_model)


class LoggedChild(msgspec.Struct, gc=False):
    session: str | None = msgspec.field(name="session_id", default=None)
    call: str | None = msgspec.field(name="tool_call_id", default=None)
    agent: str | None = None


class LoggedMeta(msgspec.Struct, gc=False):
    """`meta.json`."""

    id: str | None = msgspec.field(name="session_id", default=None)
    parent: str | None = msgspec.field(name="parent_session_id", default=None)
    started: str | None = msgspec.field(name="start_time", default=None)
    ended: str | None = msgspec.field(name="end_time", default=None)
    title: str | None = None
    environment: _Environment | None = None
    config: _Config | None = None
    stats: Any = None
    children: list[LoggedChild] = msgspec.field(name="child_sessions", default=[])

    @property
    def usage(self) -> Usage | None:
        counts = TokenCounts(self.stats)
        cached = counts("session_cached_tokens")
        return counts.usage(counts("session_prompt_tokens") - cached, counts("session_completion_tokens"), cached)


_decoder = msgspec.json.Decoder(LoggedMessage)


class MessageLog:
    """Builds the conversation of one part from its lines."""

    def __init__(self, part: VibePart, file: File, meta: LoggedMeta) -> None:
        self._part, self._conversation = part, part.conversation
        part.model = meta.config.model if meta.config else None
        part.usage = meta.usage
        part.project = meta.environment.folder if meta.environment else None
        part.title, part.source_session = meta.title, meta.parent
        part.started, part.ended = time_of(meta.started), time_of(meta.ended)
        messages: set[str] = set()
        for line in raw_lines_of(file, unfinished=True):
            message = object_as(_decoder, line)
            if message.id is None or message.id not in messages:  # a careless restore may repeat lines
                messages.add(message.id or "")
                self._take(message)
        self._conversation.see(part.started)
        self._conversation.see(part.ended)

    def _take(self, message: LoggedMessage) -> None:
        match message.role:
            case "user" if message.injected:
                if base.joined_text(message.content).startswith(COMPACTED):
                    self._part.compactions.append(Compaction(thread=self._part.thread))
            case "user":
                texts = [text_of(part.get("text")) or "" for part in base.parts_of(message.content)]
                self._conversation.ask(typed(texts) or "[image]", None)
            case "assistant":
                self._answer(message)
            case "tool":
                self._conversation.result(_result(message), None)

    def _answer(self, message: LoggedMessage) -> None:
        turn = VibeTurn(thread=self._part.thread, model=self._part.model)
        self._conversation.add(turn)
        if message.reasoning:
            self._conversation.put(turn, base.thinking(message.reasoning), None)
        if text := base.joined_text(message.content):
            self._conversation.put(turn, base.text(text), None)
        for call in message.calls or ():
            function = call.function or _Function()
            use = base.use(call.id, function.name, base.arguments(function.arguments))
            self._conversation.put(turn, use, None)


def _result(message: LoggedMessage) -> Block:
    text = base.joined_text(message.content)
    return base.result(message.call, text, name=message.name, is_error=text.startswith(FAILED))


def meta_in(text: str | None) -> LoggedMeta:
    return object_as(msgspec.json.Decoder(LoggedMeta), (text or "").encode())
