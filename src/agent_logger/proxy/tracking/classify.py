"""The kind of a call: by its path, then by the shapes that clients' calls were observed to have."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from agent_logger.agents.registry import call_shapes_of, wire_of
from agent_logger.providers.request_body import Api, RequestBody, text, texts_in, value

Kind = Literal["probe", "models", "count_tokens", "side", "subagent", "compact", "main", "other"]

_APIS: tuple[tuple[str, Api], ...] = (
    ("/v1/messages", "messages"),
    ("/invoke", "messages"),  # Bedrock's
    ("/invoke-with-response-stream", "messages"),
    (":rawPredict", "messages"),  # Vertex AI's
    (":streamRawPredict", "messages"),
    ("/completions", "chat"),  # also with `/chat` before it
    ("/api/chat", "chat"),  # Ollama's
    ("/api/generate", "chat"),
    ("/responses", "responses"),
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
)


_COUNTS_TOKENS = (
    "/messages/count_tokens",
    ":countTokens",
    "/responses/input_tokens",
    "/count-tokens",  # Bedrock's
    "/count-tokens:rawPredict",  # a model of Vertex AI's
)


def api_of(method: str, path: str, *, message: bool = False) -> Api | None:
    """The API of a call that is tracked; `None` for others. `message`: the call is a message of a WebSocket; the
    upgrade itself is not tracked."""
    path = path.partition("?")[0]
    if path.endswith(_COUNTS_TOKENS):
        return None
    for ending, api in _APIS:
        if path.endswith(ending):
            return api if method == "POST" or (message and api == "responses") else None
    return None


def untracked_kind(method: str, path: str) -> Kind:
    """The kind of a call that is logged but not tracked."""
    path = path.partition("?")[0].rstrip("/")
    if method == "HEAD" or (method == "GET" and path in ("", "/api/hello")):
        return "probe"
    if method == "POST" and path.endswith(_COUNTS_TOKENS):
        return "count_tokens"
    if method == "GET" and ("/models" in path):
        return "models"
    if method == "POST" and path.endswith("/responses/compact"):
        return "compact"
    return "other"


# ---------------------------------------------------------------- shapes


def is_side(agent: str | None, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
    """Whether the call has the shape of a title, a classifier, a router, a warm-up, a text to be filled in."""
    if bytes(body.generate) == b"false":  # a WebSocket is warmed up
        return True
    if text(body.suffix):  # an editor asks what stands between two texts, at every other key
        return True
    calls = call_shapes_of(agent)
    return calls is not None and calls.is_side(body, units, has_id=has_id)


def is_compaction(agent: str | None, units: Sequence[msgspec.Raw]) -> bool:
    """Whether the last message asks for a summary of the conversation."""
    wire = wire_of(agent)
    marks = [mark.encode() for mark in (wire.compaction, wire.compaction_item) if mark]
    if not units or not any(mark in bytes(units[-1]) for mark in marks):
        return False
    last = value(units[-1])
    if not isinstance(last, dict):
        return False
    is_item = wire.compaction_item is not None and last.get("type") == wire.compaction_item
    prompt = wire.compaction
    return is_item or bool(prompt and any(text.startswith(prompt) for text in texts_in(last.get("content"))))
