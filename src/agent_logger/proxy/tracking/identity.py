"""Who is asking, and the client's own name for its session.

The order is that of how much a name can be trusted: first what coding agents send for this purpose, last what gateways
are told. `user` is a person and `X-Client-Request-Id` a call; neither names a session.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, text, value

CLAUDE_SESSION = "x-claude-code-session-id"
CLAUDE_AGENT = "x-claude-code-agent-id"
RETRY_COUNT = "x-stainless-retry-count"
GATEWAYS = ("x-litellm-session-id", "helicone-session-id", "x-conversation-id")
LONGEST_ID = 256  # characters; a longer one is not a name

Headers = Mapping[str, str]  # by name in lower case
Confidence = Literal["certain", "likely", "ambiguous", "none"]

NEW = Identity(id=None, source="none", confidence="none")

_OF_HEADERS: tuple[tuple[str, Confidence], ...] = (
    ("session-id", "certain"),  # Codex
    ("session_id", "certain"),  # Codex before 0.100
    ("thread-id", "certain"),
)
NAMES = frozenset(
    [CLAUDE_SESSION, CLAUDE_AGENT, RETRY_COUNT, "user-agent", "originator", "x-session-id", *GATEWAYS]
    + [name for name, _ in _OF_HEADERS]
)
_INITIALS = "".join({name[0] + name[0].upper() for name in NAMES}).encode()
_NAMED = re.compile(rb"\r\n(?=[%b])((?i:%b)):([^\r]*)" % (_INITIALS, "|".join(sorted(NAMES)).encode()))


def headers_of(lines: bytes) -> dict[str, str]:
    """Of a head's lines, each behind a CRLF, those that tracking reads."""
    named = _NAMED.findall(lines)
    return {name.decode().lower(): content.decode("latin-1").strip() for name, content in named}


# ---------------------------------------------------------------- the agent

_AGENTS = (  # how the user agent or the originator begins
    ("claude-cli/", "claude-code"),
    ("claude-code/", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("opencode/", "opencode"),
    ("qwencode/", "qwen-code"),
    ("anthropic/python", "anthropic-python"),
    ("asyncanthropic/python", "anthropic-python"),
    ("openai/python", "openai-python"),
    ("asyncopenai/python", "openai-python"),
    ("anthropic/js", "anthropic-js"),
    ("openai/js", "openai-js"),
    ("agents/python", "openai-agents"),
    ("ai/", "ai-sdk"),  # Vercel's
    ("ai-sdk/", "ai-sdk"),
    ("google-genai-sdk/", "google-genai"),
    ("langchain-", "langchain"),
    ("litellm/", "litellm"),
    ("pydantic-ai/", "pydantic-ai"),
)


def agent_of(headers: Headers) -> str | None:
    return _agent(headers.get("user-agent", "")) or _agent(headers.get("originator", ""))


@lru_cache(1024)
def _agent(agent_text: str) -> str | None:
    agent_text = agent_text.lower()
    return next((agent for beginning, agent in _AGENTS if agent_text.startswith(beginning)), None)


# ---------------------------------------------------------------- the session


def identify(headers: Headers, body: RequestBody | None, agent: str | None) -> Identity | None:
    """The client's own name for the session. Links to earlier responses are not looked at here."""
    if session := _id(headers.get(CLAUDE_SESSION)):
        return Identity(id=session, source=CLAUDE_SESSION, confidence="certain")
    if body and len(body.metadata) and (session := _of_metadata(body.metadata)):
        return Identity(id=session, source="metadata.user_id", confidence="certain")
    for name, confidence in _OF_HEADERS:
        if session := _id(headers.get(name)):
            return Identity(id=session, source=name, confidence=confidence)
    # Others give one key to all of their sessions: it only says which prompts begin alike.
    if agent == "codex" and body and (session := _id(text(body.prompt_cache_key))):
        return Identity(id=session, source="prompt_cache_key", confidence="likely")
    if session := _id(headers.get("x-session-id")):
        return Identity(id=session, source="x-session-id", confidence="certain")
    return None


def of_gateway(headers: Headers) -> Identity | None:
    for name in GATEWAYS:
        if session := _id(headers.get(name)):
            return Identity(id=session, source=name, confidence="likely")
    return None


def agent_id(headers: Headers) -> str | None:
    """Of the sub-agent that asks."""
    if agent := _id(headers.get(CLAUDE_AGENT)):
        return agent
    thread = headers.get("thread-id")
    session = headers.get("session-id") or headers.get("session_id")
    return _id(thread) if session and thread != session else None


def retries(headers: Headers) -> int:
    """How often the client says it tried before. Claude Code always says 0."""
    count_text = headers.get(RETRY_COUNT, "")
    return int(count_text) if count_text.isdecimal() and len(count_text) < 6 else 0


_IN_USER_ID = re.compile(r"user_[^_]*_account_.*?_session_(.+)", re.DOTALL)


def _of_metadata(raw: msgspec.Raw) -> str | None:
    """`user_id` is a JSON object in a string, or `user_<hash>_account_<a>_session_<id>`, or only a device."""
    metadata = value(raw)
    user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{"):
        try:
            inner = msgspec.json.decode(user_id)
        except msgspec.MsgspecError:
            return None
        return _id(inner.get("session_id")) if isinstance(inner, dict) else None
    match = _IN_USER_ID.fullmatch(user_id)
    return _id(match[1]) if match else None


def _id(value: object) -> str | None:
    if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable():
        return value
    return None
