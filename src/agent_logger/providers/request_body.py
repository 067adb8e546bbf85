"""A request body, as far as tracking and the readers of our logs look into it.

The history is split into its units (messages; items of the responses API; contents of Gemini) as raw JSON, in one pass
and without decoding them: agents send all of it again with every call.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

Api = Literal["messages", "chat", "responses", "gemini"]
NOTHING = msgspec.Raw(b"")
# Codex gives most of its models their tools as an item of the history.
_ADDITIONAL_TOOLS = b'"additional_tools"'
HEAD_BYTES = 200  # of an item, that say its type


class RequestBody(msgspec.Struct):
    messages: Sequence[msgspec.Raw] | None = None
    input: Sequence[msgspec.Raw] | str | None = None
    contents: Sequence[msgspec.Raw] | None = None
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
    system: msgspec.Raw = NOTHING
    instructions: msgspec.Raw = NOTHING
    system_instruction: msgspec.Raw = msgspec.field(default=NOTHING, name="systemInstruction")
    request: msgspec.Raw = NOTHING  # Code Assist's: a body of Gemini's
    session_id: msgspec.Raw = NOTHING  # in that body
    user_prompt_id: msgspec.Raw = NOTHING  # beside that body

    def units(self, api: Api) -> Sequence[msgspec.Raw]:
        if api == "responses":
            return [_typed(self.input)] if isinstance(self.input, str) else self.input or ()
        if api == "chat" and self.messages is None:
            return self._prompts()
        return (self.contents if api == "gemini" else self.messages) or ()

    def set_units(self, api: Api, units: Sequence[msgspec.Raw]) -> None:
        if api == "responses":
            self.input = units
        elif api == "gemini":
            self.contents = units
        else:
            self.messages = units

    @property
    def has_content(self) -> bool:
        """Whether there is something for a model to read, in the form of any of the APIs."""
        texts = (self.messages, self.input, self.contents)
        others = (self.prompt, self.request, self.previous_response_id)
        return any(text is not None for text in texts) or any(map(len, others))

    def _prompts(self) -> Sequence[msgspec.Raw]:
        """The prompts of an API without messages: each stands for one of the user's messages."""
        given = value(self.prompt)
        return [_typed(text) for text in (given if isinstance(given, list) else [given]) if isinstance(text, str)]

    @property
    def system_prompt(self) -> Any:
        """The prompt beside the messages, as it was sent; `None` if there is none."""
        prompts = map(value, (self.system, self.instructions, self.system_instruction))
        return next((prompt for prompt in prompts if prompt is not None), None)

    @property
    def has_tools(self) -> bool:
        if len(self.tools) > 2 and bytes(self.tools) != b"null":  # `[]` is none
            return True
        items = () if isinstance(self.input, str) else self.input or ()
        return any(_ADDITIONAL_TOOLS in bytes(memoryview(raw)[:HEAD_BYTES]) for raw in items)


def system_prompts(body: RequestBody, api: Api) -> list[bytes]:
    """The JSON of the system prompts: those beside the messages, and the first message, which may be one."""
    beside = (body.system, body.instructions, body.system_instruction)
    return [data for raw in (*beside, *body.units(api)[:1]) if (data := bytes(raw))]


def begins_system_prompt(prompts: Iterable[bytes], beginning: str) -> bool:
    """Whether a text of these system prompts begins so, comments apart."""
    encoded = beginning.encode()
    values = (value(msgspec.Raw(data)) for data in prompts if encoded in data)
    return any(_without_comments(text).startswith(beginning) for prompt in values for text in _system_texts(prompt))


def _without_comments(text: str) -> str:
    """Return the start of a prompt from what follows the comments at its beginning: OpenClaw notes something for itself
    there."""
    start = text[:LONGEST_START].lstrip()
    while start.startswith("<!--") and "-->" in start:
        start = start.partition("-->")[2].lstrip()
    return start


def _system_texts(prompt: Any) -> list[str]:
    """The texts of a system prompt, or of a message if it is one."""
    if not isinstance(prompt, dict):
        return texts_in(prompt)
    if prompt.get("role") in (None, "system", "developer"):
        return texts_in(prompt.get("content") or prompt.get("parts"))
    return []


def _typed(prompt: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"role": "user", "content": prompt}))


LONGEST_START = 1_000  # characters of a system prompt that tell whose it is
_decode = msgspec.json.Decoder(RequestBody).decode
_MODEL_IN_PATH = re.compile(r"/models/([^/:?]+):")
_ANY_MODEL_IN_PATH = re.compile(r"/models?/[^/:?]+[:/]")  # Bedrock's, too


def read(data: bytes, api: Api | None = None) -> RequestBody | None:
    """Read a request body; one of Gemini's is taken out of the one of Code Assist that wraps it. `None` if it is not a
    JSON object, or has the shape of none of the APIs."""
    body = _read(data, _with_escaped_halves)
    return _unwrapped(body, _with_escaped_halves) if body and api == "gemini" else body


def read_strictly(data: bytes, api: Api) -> RequestBody | None:
    """Read a request body as `read` does; `None` also if it has to be mended first."""
    try:
        body = _decode(data)
        inner = _decode(bytes(body.request)) if api == "gemini" and len(body.request) else None
    except (ValueError, RecursionError):
        return None
    return _outward(inner, body) if inner else body


def _unwrapped(body: RequestBody, mend: Callable[[bytes], bytes]) -> RequestBody:
    inner = _read(bytes(body.request), mend) if len(body.request) else None
    return _outward(inner, body) if inner else body


def _outward(inner: RequestBody, body: RequestBody) -> RequestBody:
    """The body that is wrapped, with what stands beside it."""
    return msgspec.structs.replace(inner, model=body.model, user_prompt_id=body.user_prompt_id)


def asks_model(data: bytes, path: str) -> bool:
    """Whether a request, to an endpoint that is not known, names a model and has something for it to read."""
    try:
        body = _decode(data)
    except (ValueError, RecursionError):
        return False
    return body.has_content and bool(text(body.model) or _ANY_MODEL_IN_PATH.search(path))


def read_logged(data: bytes, api: Api | None, path: str) -> RequestBody | None:
    """Read a request body for a person. Half a character becomes U+FFFD, as in our own records; a request to Gemini has
    the model of its path, and is taken out of the one of Code Assist that wraps it."""
    body = _read(data, _without_halves)
    if body is None or api != "gemini":
        return body
    match = _MODEL_IN_PATH.search(path)
    model = msgspec.Raw(msgspec.json.encode(match[1])) if match else body.model
    return msgspec.structs.replace(_unwrapped(body, _without_halves), model=model)


def _read(data: bytes, mend: Callable[[bytes], bytes]) -> RequestBody | None:
    """Read a body. If msgspec refuses it, it is mended first: agents do cut texts in the middle of a character."""
    for form in (bytes, mend):
        try:
            return _decode(form(data))
        except (ValueError, RecursionError):
            continue
    return None


def _with_escaped_halves(data: bytes) -> bytes:
    return json.dumps(mended(json.loads(data))).encode()


# A pair, which stays, or the half of one; an escaped backslash before `u` is none of them.
_HALVES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _without_halves(data: bytes) -> bytes:
    return _HALVES.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)


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
    except (ValueError, RecursionError):
        return None


def text(raw: msgspec.Raw) -> str | None:
    decoded = value(raw)
    return decoded if isinstance(decoded, str) else None


LONGEST_ID = 256  # characters; a longer one is not a name


def named_id(value: object) -> str | None:
    """The value, if it can be the name of a session."""
    if isinstance(value, str) and len(value) <= LONGEST_ID and value.isprintable() and value.strip():
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
    return [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
