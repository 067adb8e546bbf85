"""The agent that sends a request, and the client's own name for its session.

Names are tried in the order of trust: first those that coding agents send for this purpose, last those that are meant
for gateways. `user` is a person and `X-Client-Request-Id` a call; neither names a session.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from agent_logger.agents.base import WireIdentity
from agent_logger.agents.registry import AGENTS, calls_of
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, named_id

RETRY_COUNT = "x-stainless-retry-count"
ANY_SESSION = "x-session-id"
GATEWAYS = ("x-litellm-session-id", "helicone-session-id", "x-conversation-id")

Headers = Mapping[str, str]  # by name in lower case
Confidence = Literal["certain", "likely", "ambiguous", "none"]

NEW = Identity(id=None, source="none", confidence="none")

NAMES = frozenset(
    [RETRY_COUNT, "user-agent", "originator", ANY_SESSION, *GATEWAYS]
    + [name for agent in AGENTS for name in agent.wire.session_headers]
    + [agent.wire.agent_header for agent in AGENTS if agent.wire.agent_header]
)
_INITIALS = "".join({name[0] + name[0].upper() for name in NAMES}).encode()
_NAMED = re.compile(rb"\r\n(?=[%b])((?i:%b)):([^\r]*)" % (_INITIALS, "|".join(sorted(NAMES)).encode()))


def headers_of(lines: bytes) -> dict[str, str]:
    """The headers that tracking reads, from the lines of a head, each after a CRLF."""
    named = _NAMED.findall(lines)
    return {name.decode().lower(): content.decode("latin-1").strip() for name, content in named}


# ---------------------------------------------------------------- the agent

_CLIENTS = (  # how the user agent or the originator begins, in lower case
    *((beginning, agent.name) for agent in AGENTS for beginning in agent.wire.user_agents),
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
    return next((agent for beginning, agent in _CLIENTS if agent_text.startswith(beginning)), None)


# ---------------------------------------------------------------- the session


def identify(headers: Headers, body: RequestBody | None, agent: str | None) -> Identity | None:
    """The client's own name for the session. Links to earlier responses are not considered here."""
    for candidate in AGENTS:
        for name in candidate.wire.session_headers:
            if session := named_id(headers.get(name)):
                return Identity(id=session, source=name, confidence="certain")
        calls = calls_of(candidate.name) if body else None
        if body and calls and (identity := calls.session_in(body, is_own=candidate.name == agent)):
            return identity
    if session := named_id(headers.get(ANY_SESSION)):
        return Identity(id=session, source=ANY_SESSION, confidence="certain")
    return None


def of_gateway(headers: Headers) -> Identity | None:
    for name in GATEWAYS:
        if session := named_id(headers.get(name)):
            return Identity(id=session, source=name, confidence="likely")
    return None


def agent_id(headers: Headers) -> str | None:
    """The id of the sub-agent that sends the request; `None` if a main agent does."""
    for wire in _WITH_AGENT_HEADER:
        name = named_id(headers.get(wire.agent_header or ""))
        if name and (wire.agent_header not in wire.session_headers or _is_other(name, wire, headers)):
            return name
    return None


def _is_other(name: str, wire: WireIdentity, headers: Headers) -> bool:
    """Whether the name is a sub-agent's: the header may name the session itself, so only another name counts."""
    own = (headers.get(header) for header in wire.session_headers if header != wire.agent_header)
    session = next(filter(None, own), None)
    return session is not None and session != name


_WITH_AGENT_HEADER = tuple(agent.wire for agent in AGENTS if agent.wire.agent_header)


def retries(headers: Headers) -> int:
    """How often the client says it tried before. Claude Code always says 0."""
    count_text = headers.get(RETRY_COUNT, "")
    return int(count_text) if count_text.isdecimal() and len(count_text) < 6 else 0
