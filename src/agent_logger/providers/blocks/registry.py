"""The table of dialects: the author of a message, and its blocks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from agent_logger.model.session import Block
from agent_logger.providers.blocks import anthropic, gemini, openai_chat, openai_responses
from agent_logger.providers.blocks.base import value_of
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.registry import (
    ANTHROPIC,
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    GEMINI,
    OLLAMA,
    RESPONSES,
    Dialect,
)


def _nothing(_message: Json) -> Iterator[Block]:
    return iter(())


@dataclass(frozen=True, slots=True)
class _Read:
    answered: Callable[[Json], Iterator[Block]]
    sent: Callable[[Json], Iterator[Block]]  # one message of a request


_READ: Mapping[str, _Read] = {
    ANTHROPIC.name: _Read(anthropic.blocks_of, anthropic.blocks_of),
    **{dialect.name: _Read(openai_chat.answered, openai_chat.sent) for dialect in (CHAT, COMPLETIONS, OLLAMA)},
    EMBEDDINGS.name: _Read(_nothing, _nothing),
    RESPONSES.name: _Read(openai_responses.answered, openai_responses.sent),
    GEMINI.name: _Read(gemini.blocks_of, gemini.blocks_of),
}

IMAGE = "[image]"  # stands for one, where there is nothing else to read

By = Literal["model", "user", "client"]


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The content of one message of a request. `client`: instructions, which are nobody's words in the conversation."""

    by: By
    texts: Sequence[str] = ()
    results: Sequence[Block] = ()  # of tools


class _Head(msgspec.Struct, gc=False):
    role: Any = None
    type: Any = None


_head = msgspec.json.Decoder(_Head)


def by_of(dialect: Dialect, message: msgspec.Raw) -> By:
    """The author of a message, without reading the rest of it."""
    try:
        head = _head.decode(message)
    except (ValueError, RecursionError):
        return "client"
    return _by(dialect, head.role, head.type)


def message_content(dialect: Dialect, message: msgspec.Raw) -> MessageContent:
    fields = fields_of(value_of(message))
    by = _by(dialect, fields.get("role"), fields.get("type"))
    if by != "user":
        return MessageContent(by)
    blocks = list(_READ[dialect.name].sent(fields))
    texts = [block.text for block in blocks if block.kind == "text"]
    results = [block for block in blocks if block.kind == "tool_result"]
    if not texts and not results and any(block.kind == "image" for block in blocks):
        texts = [IMAGE]
    return MessageContent(by, texts, results)


def answer_blocks(dialect: Dialect, message: Any) -> list[Block]:
    return list(_READ[dialect.name].answered(fields_of(message)))


def message_blocks(dialect: Dialect, message: Json) -> list[Block]:
    """The blocks of one message of a request, whoever wrote it."""
    return list(_READ[dialect.name].sent(message))


def dialect_of_answer(message: Any) -> Dialect:
    """The dialect of an answer whose request is lost."""
    fields = fields_of(message)
    if "output" in fields:
        return RESPONSES
    if "parts" in fields:
        return GEMINI
    if fields.get("object") == "embeddings":
        return EMBEDDINGS
    return ANTHROPIC if fields.get("type") == "message" else CHAT


def _by(dialect: Dialect, role: Any, kind: Any) -> By:
    if role in ("assistant", "model"):
        return "model"
    if role in ("user", "tool", "function") or (dialect is GEMINI and role is None):
        return "user"
    if dialect is RESPONSES and role is None:  # an item that is no message
        return "user" if str(kind).endswith("_output") else "model"
    return "client"
