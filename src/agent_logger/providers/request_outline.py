"""What a request asks a model, read without touching the messages: they are cut out as the JSON they are.

A body may be half a megabyte of history, and is sent again, a little longer, with every turn. So only its outline is
decoded.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

Raw = msgspec.Raw
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to a model. `messages` are verbatim and in order: messages, input items or contents."""

    model: str | None
    messages: Sequence[Raw]
    stream: bool = False
    system: Raw | None = None  # where it stands beside the messages: system, instructions, systemInstruction
    tools: Sequence[str] = ()  # their names; the type of one that has none
    max_tokens: int | None = None
    user_id: str | None = None  # Anthropic's metadata.user_id
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    generate: bool = True  # Codex warms up a WebSocket with a request that generates nothing


_NONE = Raw(b"null")
_Messages = list[Raw] | None


class _Anthropic(msgspec.Struct):
    model: str | None = None
    messages: _Messages = None
    stream: bool | None = None
    system: Raw = _NONE
    tools: Raw = _NONE
    metadata: Raw = _NONE
    max_tokens: Raw = _NONE


class _Chat(msgspec.Struct):
    model: str | None = None
    messages: _Messages = None
    stream: bool | None = None
    tools: Raw = _NONE
    max_tokens: Raw = _NONE
    max_completion_tokens: Raw = _NONE
    prompt_cache_key: str | None = None


class _Completions(msgspec.Struct):
    model: str | None = None
    prompt: Raw = _NONE
    stream: bool | None = None
    max_tokens: Raw = _NONE


class _Ollama(msgspec.Struct):
    model: str | None = None
    messages: _Messages = None
    prompt: Raw = _NONE
    stream: bool | None = None
    system: Raw = _NONE
    tools: Raw = _NONE


class _Embeddings(msgspec.Struct):
    model: str | None = None


class _Responses(msgspec.Struct):
    model: str | None = None
    input: Raw = _NONE
    stream: bool | None = None
    instructions: Raw = _NONE
    tools: Raw = _NONE
    max_output_tokens: Raw = _NONE
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    generate: bool | None = None


class _Gemini(msgspec.Struct, rename="camel"):
    model: str | None = None
    contents: _Messages = None
    system_instruction: Raw = _NONE
    tools: Raw = _NONE
    generation_config: Raw = _NONE
    request: "_Gemini | None" = None  # Code Assist's


class _Named(msgspec.Struct):
    name: str | None = None


class _Tool(msgspec.Struct):
    name: str | None = None
    type: str | None = None
    function: _Named | None = None
    custom: _Named | None = None
    functionDeclarations: list[_Named] | None = None  # noqa: N815 - Gemini's name for it


class _Metadata(msgspec.Struct):
    user_id: str | None = None


class _Limits(msgspec.Struct, rename="camel"):
    max_output_tokens: Any = None


_raws = msgspec.json.Decoder(list[Raw])
_tools = msgspec.json.Decoder(list[_Tool] | None)
_metadata = msgspec.json.Decoder(_Metadata | None)
_limits = msgspec.json.Decoder(_Limits | None)
_number = msgspec.json.Decoder(int | None)
_MODEL_IN_PATH = re.compile(r"/models/([^/:?]+):")

ReadRequest = Callable[[bytes, str], Question | None]  # by a body, and the path it was sent to


def _read_as(kind: type[T]) -> Callable[[Callable[[T, str], Question]], ReadRequest]:
    """Make a reader of one kind of body; the reader returns `None` for a body of another kind."""
    decoder = msgspec.json.Decoder(kind)

    def decorate(reader: Callable[[T, str], Question]) -> ReadRequest:
        def read(body: bytes, path: str) -> Question | None:
            value = _read(decoder, body)
            return None if value is None else reader(value, path)

        return read

    return decorate


@_read_as(_Anthropic)
def anthropic(body: _Anthropic, _path: str) -> Question:
    metadata = _read(_metadata, body.metadata)
    return Question(
        model=body.model,
        messages=body.messages or (),
        stream=bool(body.stream),
        system=_given(body.system),
        tools=_names(body.tools),
        max_tokens=_read(_number, body.max_tokens),
        user_id=metadata.user_id if metadata else None,
    )


@_read_as(_Chat)
def chat(body: _Chat, _path: str) -> Question:
    return Question(
        model=body.model,
        messages=body.messages or (),
        stream=bool(body.stream),
        tools=_names(body.tools),
        max_tokens=_read(_number, body.max_completion_tokens) or _read(_number, body.max_tokens),
        prompt_cache_key=body.prompt_cache_key,
    )


@_read_as(_Completions)
def completions(body: _Completions, _path: str) -> Question:
    """The question of a completion: the prompt is one message of the user; several prompts are several."""
    return Question(
        model=body.model,
        messages=_prompts(body.prompt),
        stream=bool(body.stream),
        max_tokens=_read(_number, body.max_tokens),
    )


@_read_as(_Ollama)
def ollama(body: _Ollama, _path: str) -> Question:
    return Question(
        model=body.model,
        messages=body.messages if body.messages is not None else _prompts(body.prompt),
        stream=body.stream is not False,
        system=_given(body.system),
        tools=_names(body.tools),
    )


@_read_as(_Embeddings)
def embeddings(body: _Embeddings, _path: str) -> Question:
    """The question of an embedding: its texts are no messages."""
    return Question(model=body.model, messages=())


@_read_as(_Responses)
def responses(body: _Responses, _path: str) -> Question:
    return Question(
        model=body.model,
        messages=_items(body.input),
        stream=bool(body.stream),
        system=_given(body.instructions),
        tools=_names(body.tools),
        max_tokens=_read(_number, body.max_output_tokens),
        previous_response_id=body.previous_response_id,
        prompt_cache_key=body.prompt_cache_key,
        generate=body.generate is not False,
    )


@_read_as(_Gemini)
def gemini(request: _Gemini, path: str) -> Question:
    body = request.request or request
    match = _MODEL_IN_PATH.search(path)
    limits = _read(_limits, body.generation_config)
    most = limits.max_output_tokens if limits else None
    return Question(
        model=match[1] if match else request.model,
        messages=body.contents or (),
        stream=":stream" in path,
        system=_given(body.system_instruction),
        tools=_names(body.tools),
        max_tokens=most if isinstance(most, int) else None,
    )


def _items(given: Raw) -> Sequence[Raw]:
    """The items of an input. A text is short for one message of the user."""
    if _is_text(given):
        return (_typed(given),)
    return _read(_raws, given) or ()


def _prompts(given: Raw) -> Sequence[Raw]:
    """The prompts as messages. Prompts that are lists of tokens are left out: they say nothing to a reader."""
    several = [given] if _is_text(given) else _read(_raws, given)
    return [_typed(raw) for raw in several or () if _is_text(raw)]


def _is_text(given: Raw) -> bool:
    return bytes(given).startswith(b'"')


def _typed(text: Raw) -> Raw:
    return Raw(b'{"role":"user","content":%b}' % bytes(text))


def _names(tools: Raw) -> Sequence[str]:
    given = (name for tool in _read(_tools, tools) or () for name in _names_of(tool))
    return tuple(filter(None, given))


def _names_of(tool: _Tool) -> Sequence[str | None]:
    if tool.functionDeclarations is not None:
        return [declared.name for declared in tool.functionDeclarations]
    inner = tool.function or tool.custom
    return [(inner.name if inner else None) or tool.name or tool.type]


def _given(raw: Raw) -> Raw | None:
    return None if bytes(raw) == b"null" else raw


def _read(decoder: msgspec.json.Decoder[T], data: bytes | Raw) -> T | None:
    try:
        return decoder.decode(data)
    except (ValueError, RecursionError):
        pass
    try:
        return decoder.decode(_without_halves(bytes(data)))
    except (ValueError, RecursionError):
        return None


# A pair, which stays, or the half of one; an escaped backslash before `u` is none of them.
_HALVES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _without_halves(data: bytes) -> bytes:
    """Replace lone surrogates by U+FFFD, as our own records do: agents cut texts in the middle of a character."""
    return _HALVES.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)
