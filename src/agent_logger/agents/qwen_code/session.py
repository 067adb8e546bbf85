"""Qwen Code's chats: `projects/<project>/chats/<id>.jsonl`, lines like Claude Code's with contents of Gemini's API.

A line of the assistant is one response. Before it comes the telemetry of the call, with the vendor's id; calls that the
client made aside, as to update its memory, have the telemetry alone.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import objects_of, time_of
from agent_logger.agents.source_files import SourceFiles
from agent_logger.messages.human_input import typed
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, SIDE, Block, Session, Usage
from agent_logger.providers.blocks.gemini import part_block
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

AGENT_NAME = "qwen-code"
FAMILY = "openai"  # the API it uses, whatever model it calls
ANSWERED = "qwen-code.api_response"
_NOTHING = re.compile(rb"\s*")


class _Message(msgspec.Struct):
    parts: list[Json] | None = None


class _Event(msgspec.Struct):
    """What telemetry says of a call."""

    name: str | None = msgspec.field(name="event.name", default=None)
    response_id: str | None = None
    subagent_id: str | None = None
    model: str | None = None
    response_text: str | None = None


class _Payload(msgspec.Struct):
    event: Json | None = msgspec.field(name="uiEvent", default=None)


class _Line(msgspec.Struct):
    type: str | None = None
    timestamp: str | None = None
    session: str | None = msgspec.field(name="sessionId", default=None)
    cwd: str | None = None
    provenance: Any = "real_user"
    model: str | None = None
    message: _Message | None = None
    usage: Json | None = msgspec.field(name="usageMetadata", default=None)
    payload: _Payload | None = msgspec.field(name="systemPayload", default=None)


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the file."""
    chat = _Chat(source)
    conversation = chat.conversation
    return Session(
        id=chat.id,
        agent=AGENT_NAME,
        title=conversation.title(),
        project=chat.project,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        side_turns=[turn.as_turn() for turn in chat.aside],
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    chat = _Chat(source)
    for turn in (*chat.conversation.turns(), *chat.aside):
        if turn.is_counted:
            yield turn.as_response(family=FAMILY, session=chat.id, project=chat.project, agent=AGENT_NAME)


class _Chat:
    def __init__(self, source: SourceFiles) -> None:
        self.conversation = Conversation()
        self.aside: list[OpenTurn] = []
        self.id = source.main.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        self.project: str | None = None
        self._call: OpenTurn | None = None  # a call whose line is to come
        for line in objects_of(source.main, _NOTHING):
            self._take(fitting(_Line, line))
        self._put_aside()

    def _take(self, line: _Line) -> None:
        self.id = line.session or self.id
        self.project = self.project or line.cwd
        at, parts = time_of(line.timestamp), (line.message.parts if line.message else None) or ()
        blocks = [part_block(part) for part in parts]
        match line.type:
            case "user":
                self._ask(line, blocks, at)
            case "assistant":
                self._answer(line, blocks, at)
            case "tool_result":
                for block in blocks:
                    self.conversation.result(block, at)
            case "system" if line.payload and line.payload.event:
                self._happened(line.payload.event, at)

    def _ask(self, line: _Line, blocks: list[Block], at: datetime | None) -> None:
        text = typed(block.text for block in blocks if block.kind == "text")
        if line.provenance == "real_user" and (text or blocks):
            self.conversation.ask(text or "[image]", at)

    def _answer(self, line: _Line, blocks: list[Block], at: datetime | None) -> None:
        turn = OpenTurn(model=line.model)
        if line.usage is not None:
            turn.count(_usage(line.usage), None)
        if self._call and self._call.usage == turn.usage:
            turn.message_id, self._call = self._call.message_id, None
        self._put_aside()
        turn.see(at)
        self.conversation.see(at)
        self.conversation.add(turn)
        for block in blocks:
            self.conversation.put(turn, block, at)

    def _happened(self, fields: Json, at: datetime | None) -> None:
        event = fitting(_Event, fields)
        if event.name != ANSWERED:
            return
        self._put_aside()
        turn = OpenTurn(
            thread=f"{AGENT_PREFIX}{event.subagent_id}" if event.subagent_id else MAIN,
            model=event.model,
        )
        turn.count(_usage(fields), event.response_id)
        turn.see(at)
        if event.response_text:
            turn.blocks.append(Block(kind="text", text=event.response_text, at=at))
        self._call = turn

    def _put_aside(self) -> None:
        """Add a call that has no line in the conversation as a side turn."""
        if call := self._call:
            call.thread = SIDE if call.thread == MAIN else call.thread
            (self.aside if call.thread == SIDE else self.conversation.current().turns).append(call)
            self._call = None


def _usage(fields: Json) -> Usage | None:
    """Convert the token counts of a line, or of telemetry. The prompt includes what was read from the cache; the answer
    its thoughts, unless the total says otherwise."""
    counts = TokenCounts(fields)
    input_tokens = counts("prompt_token_count", "input_token_count")
    answered, thought = counts("candidates_token_count", "output_token_count"), counts("thoughts_token_count")
    cached = counts("cached_content_token_count")
    apart = thought if counts("total_token_count") == input_tokens + answered + thought else 0
    return counts.usage(input_tokens - cached, answered + apart, cached)
