"""What kind of call it is: by its path, then by the shapes that the clients' calls were seen to have."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from agent_logger.providers.request_body import Api, RequestBody, text, value

Kind = Literal["probe", "models", "count_tokens", "side", "subagent", "compact", "main", "other"]

# How a summary of the conversation is asked for, in the last message. Codex also has a kind of item for it.
COMPACTIONS = {
    "claude-code": "CRITICAL: Respond with TEXT ONLY",
    "codex": "You are performing a CONTEXT CHECKPOINT COMPACTION",
}
COMPACTION_ITEM = "compaction_trigger"
KEEPS_MEMORY = "You are now acting as the managed memory"  # Qwen Code, after an answer
WARM_UP = "Warmup"

_APIS: tuple[tuple[str, Api], ...] = (
    ("/v1/messages", "messages"),
    ("/invoke", "messages"),  # Bedrock's
    ("/invoke-with-response-stream", "messages"),
    (":rawPredict", "messages"),  # Vertex AI's
    (":streamRawPredict", "messages"),
    ("/completions", "chat"),  # with /chat before it, or without
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
    """Of a call that is tracked. `message`: of a WebSocket; its upgrade is not."""
    path = path.partition("?")[0]
    if path.endswith(_COUNTS_TOKENS):
        return None
    for ending, api in _APIS:
        if path.endswith(ending):
            return api if method == "POST" or (message and api == "responses") else None
    return None


def untracked_kind(method: str, path: str) -> Kind:
    """Of a call that is logged and not tracked."""
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
    if bytes(body.generate) == b"false":  # Codex warms a WebSocket up
        return True
    if text(body.suffix):  # an editor asks what stands between two texts, at every other key
        return True
    if agent == "claude-code":
        if len(units) == 1 and len(units[0]) < 400 and _only_text(units[0]) == WARM_UP:
            return True
        if body.has_tools:
            return False
        if len(units) == 1 and bytes(body.temperature) in (
            b"0",
            b"0.0",
        ):  # before 2.0: titles, shell commands
            return True
        return _has_schema(body) or _stops_at_block(body) or _is_old_side(body, units, has_id)
    if agent == "opencode":
        return not body.has_tools  # its own calls always have some
    if agent == "qwen-code":
        return KEEPS_MEMORY.encode() in bytes(units[0]) and (_only_text(units[0]) or "").startswith(
            KEEPS_MEMORY
        )
    if agent == "gemini-cli":
        config = value(body.generation_config)
        return (
            not body.has_tools
            and isinstance(config, dict)
            and config.get("responseMimeType") == "application/json"
        )
    return False


def is_compaction(agent: str | None, units: Sequence[msgspec.Raw]) -> bool:
    prompt = COMPACTIONS.get(agent or "")
    if (
        not prompt
        or not units
        or not any(mark in bytes(units[-1]) for mark in (prompt.encode(), _COMPACTION_ITEM))
    ):
        return False
    last = value(units[-1])
    if not isinstance(last, dict):
        return False
    is_item = agent == "codex" and last.get("type") == COMPACTION_ITEM
    return is_item or any(text.startswith(prompt) for text in _texts(last.get("content")))


_COMPACTION_ITEM = COMPACTION_ITEM.encode()


def _has_schema(body: RequestBody) -> bool:
    config = value(body.output_config)
    return isinstance(config, dict) and bool(config.get("format"))


def _stops_at_block(body: RequestBody) -> bool:
    stops = value(body.stop_sequences)
    return isinstance(stops, list) and "</block>" in stops


def _is_old_side(body: RequestBody, units: Sequence[msgspec.Raw], has_id: bool) -> bool:
    """1.0.3 names no session; its calls around shell commands go to the small model, one message each."""
    return not has_id and len(units) == 1 and "haiku" in (text(body.model) or "")


def _only_text(unit: msgspec.Raw) -> str | None:
    message = value(unit)
    texts = _texts(message.get("content")) if isinstance(message, dict) else []
    return texts[0] if len(texts) == 1 else None


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
