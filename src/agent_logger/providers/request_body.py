"""A request body as far as tracking looks into it.

The history is split into its units (messages; items of the responses API; contents of Gemini) as raw JSON, in one pass
and without decoding them: agents send all of it again with every call.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Api = Literal["messages", "chat", "responses", "gemini"]
NOTHING = msgspec.Raw(b"")
_ADDITIONAL_TOOLS = (
    b'"additional_tools"'  # Codex gives most of its models their tools as an item of the history
)
HEAD_BYTES = 200  # of an item, that say its type


class RequestBody(msgspec.Struct):
    messages: list[msgspec.Raw] | None = None
    input: list[msgspec.Raw] | str | None = None
    contents: list[msgspec.Raw] | None = None
    prompt: msgspec.Raw = NOTHING
    suffix: msgspec.Raw = NOTHING
    tools: msgspec.Raw = NOTHING
    metadata: msgspec.Raw = NOTHING
    model: msgspec.Raw = NOTHING
    output_config: msgspec.Raw = NOTHING
    stop_sequences: msgspec.Raw = NOTHING
    temperature: msgspec.Raw = NOTHING
    generation_config: msgspec.Raw = msgspec.field(default=NOTHING, name="generationConfig")
    generate: msgspec.Raw = NOTHING
    previous_response_id: msgspec.Raw = NOTHING
    prompt_cache_key: msgspec.Raw = NOTHING

    def units(self, api: Api) -> Sequence[msgspec.Raw]:
        if api == "responses":
            return [_typed(self.input)] if isinstance(self.input, str) else self.input or ()
        if api == "chat" and self.messages is None:
            return self._prompts()
        return (self.contents if api == "gemini" else self.messages) or ()

    def _prompts(self) -> Sequence[msgspec.Raw]:
        """The prompts of an API without messages: each stands for one of the user's messages."""
        given = value(self.prompt)
        return [
            _typed(text) for text in (given if isinstance(given, list) else [given]) if isinstance(text, str)
        ]

    @property
    def has_tools(self) -> bool:
        if len(self.tools) > 2 and bytes(self.tools) != b"null":  # `[]` is none
            return True
        items = self.input if isinstance(self.input, list) else ()
        return any(_ADDITIONAL_TOOLS in bytes(memoryview(raw)[:HEAD_BYTES]) for raw in items)


def _typed(prompt: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"role": "user", "content": prompt}))


_decode = msgspec.json.Decoder(RequestBody).decode


def read(data: bytes) -> RequestBody | None:
    """Read a request body. `None` if it is not a JSON object, or has the shape of none of the APIs."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return _read_slowly(data)


def _read_slowly(data: bytes) -> RequestBody | None:
    """Read a body that msgspec refuses because of lone surrogates: agents do cut texts in the middle of a character."""
    try:
        whole = json.loads(data)
        return _decode(json.dumps(mended(whole)).encode())
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None


def mended(value: Any) -> Any:
    """Replace every lone surrogate by text that says which one it was, always the same way."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [mended(item) for item in value]
    if isinstance(value, dict):
        return {mended(key): mended(item) for key, item in value.items()}
    return value


def value(raw: msgspec.Raw) -> Any:
    """The decoded value; `None` if it is missing, or cannot be decoded."""
    if not len(raw):
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def text(raw: msgspec.Raw) -> str | None:
    decoded = value(raw)
    return decoded if isinstance(decoded, str) else None


LONGEST_ID = 256  # characters; a longer one is not a name


def named_id(value: object) -> str | None:
    """The value, if it can be the name of a session."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable():
        return value
    return None


def only_text(unit: msgspec.Raw) -> str | None:
    """The text of a message that has one text and nothing else."""
    message = value(unit)
    texts = texts_in(message.get("content")) if isinstance(message, dict) else []
    return texts[0] if len(texts) == 1 else None


def texts_in(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
