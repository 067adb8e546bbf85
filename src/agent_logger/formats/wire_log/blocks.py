"""The messages of all dialects, as blocks: what models answer, and what clients send back to them.

Everything is read by shape. What is not known is kept as `other`, what has no shape at all is left out.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from agent_logger.session import Block, BlockKind
from agent_logger.wire.answer import Json, fields_of, parsed, text_of
from agent_logger.wire.dialects import (
    ANTHROPIC,
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    GEMINI,
    OLLAMA,
    RESPONSES,
    Dialect,
)

LIKE_CHAT = (CHAT, COMPLETIONS, OLLAMA)
IMAGE = "[image]"  # stands for one, where there is nothing else to read

By = Literal["model", "user", "client"]


@dataclass(frozen=True, slots=True)
class Told:
    """One message of a request. `client`: instructions, which are nobody's words in the conversation."""

    by: By
    texts: Sequence[str] = ()
    results: Sequence[Block] = ()  # of tools


class _Head(msgspec.Struct, gc=False):
    role: Any = None
    type: Any = None


_head = msgspec.json.Decoder(_Head)


def by_of(dialect: Dialect, message: msgspec.Raw) -> By:
    """Whose a message is, without reading the rest of it."""
    try:
        head = _head.decode(message)
    except (ValueError, RecursionError):
        return "client"
    return _by(dialect, head.role, head.type)


def told(dialect: Dialect, message: msgspec.Raw) -> Told:
    fields = fields_of(value_of(message))
    by = _by(dialect, fields.get("role"), fields.get("type"))
    if by != "user":
        return Told(by)
    blocks = list(_READ[dialect.name].sent(fields))
    texts = [block.text for block in blocks if block.kind == "text"]
    results = [block for block in blocks if block.kind == "tool_result"]
    if not texts and not results and any(block.kind == "image" for block in blocks):
        texts = [IMAGE]
    return Told(by, texts, results)


def answer_blocks(dialect: Dialect, message: Any) -> list[Block]:
    return list(_READ[dialect.name].answered(fields_of(message)))


def message_blocks(dialect: Dialect, message: Json) -> list[Block]:
    """Of one message of a request, whoever's it is."""
    if dialect is RESPONSES and not message.get("role"):
        sent = str(message.get("type")).endswith("_output")
        return list(_responses_sent(message) if sent else _item(message))
    by_model = _by(dialect, message.get("role"), message.get("type")) == "model"
    if dialect in LIKE_CHAT and not by_model and message.get("role") not in ("tool", "function"):
        return list(_chat_content(message.get("content")))
    read = _READ[dialect.name]
    return list(read.answered(message) if by_model and dialect is not RESPONSES else read.sent(message))


def item_blocks(item: Json) -> list[Block]:
    """Of one item of the responses API, as the model answered it."""
    return list(_item(item))


_EXIT_STATUS = re.compile(r"^(?:Process exited with|Exit) code:? (\d+)$", re.MULTILINE)


def item_result(item: Json) -> Block:
    """Of an item that holds what a tool gave. Commands of Codex tell their exit status in it, in a form of each
    version's own."""
    block = _result(item.get("call_id"), item.get("output"))
    if block.text.startswith("{"):
        told = fields_of(value_of(block.text))
        status = fields_of(told.get("metadata")).get("exit_code")
        if isinstance(told.get("output"), str) and status is not None:
            return replace(block, text=told["output"], is_error=status != 0)
    head = block.text[:400].split("\nOutput:", 1)[0]
    found = _EXIT_STATUS.search(head)
    failed = fields_of(item.get("output")).get("success") is False
    return replace(block, is_error=failed or bool(found and found[1] != "0"))


def part_block(part: Json) -> Block:
    """Of one part of a message of Gemini's API."""
    return _part(part)


def dialect_of_answer(message: Any) -> Dialect:
    """For an answer whose request is lost."""
    fields = fields_of(message)
    if "output" in fields:
        return RESPONSES
    if "parts" in fields:
        return GEMINI
    if fields.get("object") == "embeddings":
        return EMBEDDINGS
    return ANTHROPIC if fields.get("type") == "message" else CHAT


def value_of(raw: msgspec.Raw | str) -> Any:
    """None for what cannot be read."""
    try:
        return parsed(raw if isinstance(raw, str) else bytes(raw).decode())
    except (ValueError, RecursionError):
        return None


def _by(dialect: Dialect, role: Any, kind: Any) -> By:
    if role in ("assistant", "model"):
        return "model"
    if role in ("user", "tool", "function") or (dialect is GEMINI and role is None):
        return "user"
    if dialect is RESPONSES and role is None:  # an item that is no message
        return "user" if str(kind).endswith("_output") else "model"
    return "client"


# ---------------------------------------------------------------- Anthropic


def _anthropic(message: Json) -> Iterator[Block]:
    for block in _parts(message.get("content")):
        yield _anthropic_block(block)


def _anthropic_block(block: Json) -> Block:
    kind = text_of(block.get("type")) or ""
    if kind == "text":
        return _text(block.get("text"))
    if kind == "thinking":
        return Block(kind="thinking", text=text_of(block.get("thinking")) or "")
    if kind.endswith("tool_use"):  # server_tool_use, mcp_tool_use
        given = block.get("input") if "partial_json" not in block else block["partial_json"]
        return _use(block.get("id"), block.get("name"), given)
    if kind.endswith("tool_result"):  # web_search_tool_result, ...
        failed = block.get("is_error") is True or "error_code" in fields_of(block.get("content"))
        return _result(block.get("tool_use_id"), block.get("content"), is_error=failed)
    return _other(block, "image" if kind == "image" else "other")


# ---------------------------------------------------------------- chat completions


def _chat_answer(message: Json) -> Iterator[Block]:
    for name in ("reasoning_content", "reasoning", "thinking"):
        if thought := text_of(message.get(name)):
            yield Block(kind="thinking", text=thought)
            break
    yield from _chat_content(message.get("content"))
    if refusal := text_of(message.get("refusal")):
        yield _text(refusal)
    for call in _parts(message.get("tool_calls")):
        function = fields_of(call.get("function") or call.get("custom"))
        given = function.get("arguments", function.get("input"))
        yield _use(call.get("id"), function.get("name"), _arguments(given))
    if function := fields_of(message.get("function_call")):  # as it was before tools
        yield _use(None, function.get("name"), _arguments(function.get("arguments")))


def _chat_sent(message: Json) -> Iterator[Block]:
    if message.get("role") == "user":
        yield from _chat_content(message.get("content"))
    else:
        name = text_of(message.get("name")) or text_of(message.get("tool_name"))  # Ollama's
        yield _result(message.get("tool_call_id"), message.get("content"), name=name)


def _chat_content(content: Any) -> Iterator[Block]:
    for part in _parts(content):
        kind = part.get("type")
        if kind in ("text", "refusal"):
            yield _text(part.get(kind))
        elif kind == "thinking":  # Mistral
            yield Block(kind="thinking", text=joined_text(part.get("thinking")))
        else:
            yield _other(part, "image" if kind == "image_url" else "other")


# ---------------------------------------------------------------- responses

# Items of tools that the provider runs hold what came out of them.
_RUN_BY_PROVIDER = {"mcp_call": "output", "code_interpreter_call": "outputs", "file_search_call": "results"}
_RUN_BY_CLIENT = {
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
} | {"computer_call"}


def _responses_answer(message: Json) -> Iterator[Block]:
    for item in _parts(message.get("output")):
        yield from _item(item)


def _item(item: Json) -> Iterator[Block]:
    kind = text_of(item.get("type")) or ""
    if kind == "message":
        yield from _responses_content(item)
    elif kind == "reasoning":
        thought = joined_text(item.get("summary")) or joined_text(item.get("content"))
        yield Block(kind="thinking", text=thought)
    elif kind.endswith("_call"):
        name = text_of(item.get("name")) or kind.removesuffix("_call")
        called = item.get("call_id") or item.get("id")
        yield _use(called, name, _given(item))
        if kind not in _RUN_BY_CLIENT:
            yield _result(called, item.get(_RUN_BY_PROVIDER.get(kind, "")), is_error=bool(item.get("error")))
    else:
        yield _other(item)


def _given(item: Json) -> Any:
    if "arguments" in item:
        return _arguments(item["arguments"])
    names = ("input", "action", "code", "queries", "operation")
    return next((item[name] for name in names if name in item), None)


def _responses_sent(item: Json) -> Iterator[Block]:
    if item.get("role"):
        yield from _responses_content(item)
    else:
        yield item_result(item)


def _responses_content(item: Json) -> Iterator[Block]:
    for part in _parts(item.get("content")):
        kind = part.get("type")
        if kind in ("input_text", "output_text", "text"):
            yield _text(part.get("text"))
        elif kind == "refusal":
            yield _text(part.get("refusal"))
        else:
            yield _other(part, "image" if kind == "input_image" else "other")


# ---------------------------------------------------------------- Gemini


def _gemini(message: Json) -> Iterator[Block]:
    for part in _parts(message.get("parts")):
        yield _part(part)


def _part(part: Json) -> Block:
    if isinstance(part.get("text"), str):
        return Block(kind="thinking" if part.get("thought") is True else "text", text=part["text"])
    if call := fields_of(part.get("functionCall")):
        return _use(call.get("id"), call.get("name"), call.get("args"))
    if answer := fields_of(part.get("functionResponse")):
        given = fields_of(answer.get("response"))
        content = next(
            (given[name] for name in ("output", "error", "result", "content") if name in given), given
        )
        name = text_of(answer.get("name"))
        return _result(answer.get("id"), content, name=name, is_error="error" in given)
    mime = text_of(fields_of(part.get("inlineData") or part.get("fileData")).get("mimeType")) or ""
    return _other(part, "image" if mime.startswith("image/") else "other")


# ---------------------------------------------------------------- all of them


def _nothing(_message: Json) -> Iterator[Block]:
    return iter(())


@dataclass(frozen=True, slots=True)
class _Read:
    answered: Callable[[Json], Iterator[Block]]
    sent: Callable[[Json], Iterator[Block]]


_READ: Mapping[str, _Read] = {
    ANTHROPIC.name: _Read(_anthropic, _anthropic),
    **{it.name: _Read(_chat_answer, _chat_sent) for it in LIKE_CHAT},
    EMBEDDINGS.name: _Read(_nothing, _nothing),
    RESPONSES.name: _Read(_responses_answer, _responses_sent),
    GEMINI.name: _Read(_gemini, _gemini),
}


def _parts(content: Any) -> Iterator[Json]:
    """A text is short for one part."""
    if isinstance(content, str):
        if content:
            yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict):
                yield part


def _text(text: Any) -> Block:
    return Block(kind="text", text=text_of(text) or "")


def _use(called: Any, name: Any, given: Any) -> Block:
    return Block(kind="tool_use", id=text_of(called), name=text_of(name), input=given)


def _result(called: Any, content: Any, *, name: str | None = None, is_error: bool = False) -> Block:
    parts = list(_parts(content))
    told_all = isinstance(content, str | None) or (
        isinstance(content, list) and all(isinstance(part.get("text"), str) for part in parts)
    )
    return Block(
        kind="tool_result",
        text=joined_text(content) if isinstance(content, str | list | None) else _json(content),
        id=text_of(called),
        name=name,
        is_error=is_error,
        raw=None if told_all else content,
    )


def _other(part: Json, kind: BlockKind = "other") -> Block:
    return Block(kind=kind, raw=part)


def joined_text(content: Any) -> str:
    """Of a text, or of the parts that are text."""
    return "\n".join(part["text"] for part in _parts(content) if isinstance(part.get("text"), str))


def _arguments(given: Any) -> Any:
    """Those of a call that was cut, or that the model wrote wrong, stay the text that they are."""
    if not isinstance(given, str):
        return given
    value = value_of(given)
    return given if value is None else value


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, RecursionError):
        return ""
