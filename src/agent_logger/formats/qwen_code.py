"""Qwen Code's chats: `projects/<project>/chats/<id>.jsonl`, lines as Claude Code's with contents of Gemini's API.

A line of the assistant is one response. Before it stands what telemetry said of the call, with the vendor's id; calls
that the client made aside, as to keep its memory, stand there alone.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from agent_logger.formats.conversation import Conversation, OpenTurn
from agent_logger.formats.human_input import typed
from agent_logger.formats.objects import objects_of, time_of
from agent_logger.formats.responses import ModelResponse
from agent_logger.formats.source import Source
from agent_logger.formats.wire_log.blocks import part_block
from agent_logger.session import AGENT as AGENT_THREAD
from agent_logger.session import MAIN, SIDE, Block, Session, Usage
from agent_logger.wire.answer import Json, count, fields_of, text_of

AGENT = "qwen-code"
FAMILY = "openai"  # the API it speaks, whoever's model it asks
ANSWERED = "qwen-code.api_response"
_NOTHING = re.compile(rb"\s*")


def session_of(source: Source) -> Session:
    """Whatever is in the file, nothing is raised."""
    chat = _Chat(source)
    told = chat.told
    return Session(
        id=chat.id,
        agent=AGENT,
        title=told.title(),
        project=chat.project,
        started=told.started,
        ended=told.ended,
        exchanges=told.told(),
        side_turns=[turn.told() for turn in chat.aside],
    )


def responses_of(source: Source) -> Iterator[ModelResponse]:
    chat = _Chat(source)
    for turn in (*chat.told.turns(), *chat.aside):
        if turn.usage:
            yield ModelResponse(
                family=FAMILY,
                message_id=turn.message_id,
                request_id=None,
                model=turn.model,
                usage=turn.usage,
                tier=None,
                at=turn.started,
                session=chat.id,
                project=chat.project,
                agent=AGENT,
                thread=turn.thread,
                final=True,
                reported_cost_usd=None,
                witness="transcript",
            )


class _Chat:
    def __init__(self, source: Source) -> None:
        self.told = Conversation()
        self.aside: list[OpenTurn] = []
        self.id = source.main.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        self.project: str | None = None
        self._call: OpenTurn | None = None  # whose line is to come
        for line in objects_of(source.main, _NOTHING):
            self._take(line, time_of(line.get("timestamp")))
        self._put_aside()

    def _take(self, line: Json, at: datetime | None) -> None:
        self.id = text_of(line.get("sessionId")) or self.id
        self.project = self.project or text_of(line.get("cwd"))
        parts = fields_of(line.get("message")).get("parts")
        blocks = [part_block(it) for it in parts if type(it) is dict] if type(parts) is list else []
        match line.get("type"):
            case "user":
                self._ask(line, blocks, at)
            case "assistant":
                self._answer(line, blocks, at)
            case "tool_result":
                for block in blocks:
                    self.told.result(block, at)
            case "system":
                event = fields_of(fields_of(line.get("systemPayload")).get("uiEvent"))
                if event.get("event.name") == ANSWERED:
                    self._called(event, at)

    def _ask(self, line: Json, blocks: list[Block], at: datetime | None) -> None:
        text = typed(block.text for block in blocks if block.kind == "text")
        if line.get("provenance", "real_user") == "real_user" and (text or blocks):
            self.told.ask(text or "[image]", at)

    def _answer(self, line: Json, blocks: list[Block], at: datetime | None) -> None:
        turn = OpenTurn(model=text_of(line.get("model")), usage=_usage(fields_of(line.get("usageMetadata"))))
        if self._call and self._call.usage == turn.usage:
            turn.message_id, self._call = self._call.message_id, None
        self._put_aside()
        turn.see(at)
        self.told.see(at)
        self.told.add(turn)
        for block in blocks:
            self.told.put(turn, block, at)

    def _called(self, event: Json, at: datetime | None) -> None:
        self._put_aside()
        helper = text_of(event.get("subagent_id"))
        turn = OpenTurn(
            thread=f"{AGENT_THREAD}{helper}" if helper else MAIN,
            message_id=text_of(event.get("response_id")),
            model=text_of(event.get("model")),
            usage=_counted(event),
        )
        turn.see(at)
        if text := text_of(event.get("response_text")):
            turn.blocks.append(Block(kind="text", text=text, at=at))
        self._call = turn

    def _put_aside(self) -> None:
        """A call that no line of the conversation is of."""
        if call := self._call:
            call.thread = SIDE if call.thread == MAIN else call.thread
            (self.aside if call.thread == SIDE else self.told.current().turns).append(call)
            self._call = None


def _usage(told: Json) -> Usage | None:
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")
    return _of_counts(told, *names) if told else None


def _counted(event: Json) -> Usage:
    names = ("input_token_count", "output_token_count", "thoughts_token_count", "cached_content_token_count")
    return _of_counts(event, *names)


def _of_counts(told: Json, *names: str) -> Usage:
    """The prompt holds what came from the cache; the answer its thoughts, unless the total says otherwise."""
    asked, answered, thought, cached = (count(told, name) for name in names)
    total = count(told, "totalTokenCount") or count(told, "total_token_count")
    apart = thought if total == asked + answered + thought else 0
    return Usage(
        input_tokens=max(0, asked - cached), output_tokens=answered + apart, cache_read_tokens=cached
    )
