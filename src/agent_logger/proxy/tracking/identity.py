"""The agent that sends a request, and the client's own name for its session.

A name that the agent's descriptor claims is its own (`own_name`). Any client may send the names of one generic table
(`generic_name`), and some give one name to many sessions:

- A header names a session. It holds for calls of one agent with one credential; `Tracker` lets a call of another join
  only if its history continues.
- `prompt_cache_key` says which prompts begin alike: an application may send its own name. Such a call joins only a
  session with this key that its history continues, and is `ambiguous`: the key is not shown as the session's id.

`user` is a person and `X-Client-Request-Id` a call; neither names a session.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256

from agent_logger.agents.base import Agent, WireIdentity
from agent_logger.agents.registry import AGENTS, agent_called, call_shapes_of
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import Api, RequestBody, begins_system_prompt, named_id, system_prompts, text

RETRY_COUNT = "x-stainless-retry-count"
CACHE_KEY = "prompt_cache_key"  # a field of the body
ANY_SESSION = "x-session-id"
GENERIC_HEADERS = (
    ANY_SESSION,
    "session-id",
    "x-session-affinity",
    "x-affinity",
    "agent-session-id",
    "x-grok-session-id",
    "x-request-session-id",
)
GATEWAYS = ("x-litellm-session-id", "helicone-session-id", "x-conversation-id")
UNKNOWN_VALUE = "[redacted]"  # in place of a credential that the recorder does not have
# Headers with the credential of a client, by which accounts are told apart.
CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")

Headers = Mapping[str, str]  # names are in lower case

NEW = Identity(id=None, source="none", confidence="none")

# ---------------------------------------------------------------- the agent

# The beginning of the user agent or the originator, in lower case.
_CLIENTS = (
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


def agent_of(headers: Headers, body: RequestBody | None = None, api: Api | None = None) -> str | None:
    """The agent, or the library, that sends the request. An agent may use a library's user agent, or that of another
    agent, whose login it uses: its system prompt is better evidence."""
    named = _agent(headers.get("user-agent", "")) or _agent(headers.get("originator", ""))
    prompts = system_prompts(body, api) if body and api else []
    for agent in AGENTS:
        prompt = agent.wire.system_prompt
        if prompt and agent.name != named and begins_system_prompt(prompts, prompt):
            return agent.name
    if agent_called(named):
        return named
    return next((agent.name for agent in AGENTS if any(name in headers for name in agent.wire.headers)), named)


@lru_cache(1024)
def _agent(agent_text: str) -> str | None:
    agent_text = agent_text.lower()
    return next((agent for beginning, agent in _CLIENTS if agent_text.startswith(beginning)), None)


# ---------------------------------------------------------------- the session


def own_name(headers: Headers, body: RequestBody | None, agent: str | None) -> Identity | None:
    """The session's name as an agent's descriptor claims it. Links to earlier responses are not considered here."""
    for candidate in _candidates(agent):
        is_own = candidate.name == agent
        for name in candidate.wire.session_headers:
            if (is_own or _is_open_to(agent, name)) and (session := named_id(headers.get(name))):
                return Identity(id=session, source=name, confidence="certain")
        calls = call_shapes_of(candidate.name) if body else None
        if body and calls and (identity := calls.session_in(body)):
            return identity
        is_named = is_own and candidate.wire.cache_key_is_session
        if body and is_named and (session := named_id(text(body.prompt_cache_key))):
            session = session.replace("-", "") if candidate.wire.has_dashes_on_wire else session
            return Identity(id=session, source=CACHE_KEY, confidence="likely")
    return None


@cache
def _candidates(agent: str | None) -> tuple[Agent, ...]:
    """All agents, the one that sends the request first."""
    return tuple(sorted(AGENTS, key=lambda candidate: candidate.name != agent))


def _is_open_to(agent: str | None, header: str) -> bool:
    """Whether a header that one agent claims means the same when this other client sends it."""
    return header not in GENERIC_HEADERS or agent_called(agent) is None


def generic_header(headers: Headers) -> Identity | None:
    return _first(GENERIC_HEADERS, headers)


def of_gateway(headers: Headers) -> Identity | None:
    return _first(GATEWAYS, headers)


def of_cache_key(body: RequestBody | None) -> Identity | None:
    session = named_id(text(body.prompt_cache_key)) if body else None
    return Identity(id=session, source=CACHE_KEY, confidence="ambiguous") if session else None


def _first(names: tuple[str, ...], headers: Headers) -> Identity | None:
    for name in names:
        if session := named_id(headers.get(name)):
            confidence = "certain" if name == ANY_SESSION else "likely"
            return Identity(id=session, source=name, confidence=confidence)
    return None


def may_be_shared(name: Identity, agent: str | None) -> bool:
    """Whether several sessions may have this name: the agent's descriptor does not claim it, or the agent may be known
    by this header alone, which any client may send."""
    if name.confidence == "ambiguous":
        return True
    own = agent_called(agent)
    claimed = own is not None and name.source in own.wire.session_headers and name.source not in own.wire.headers
    return name.source in _GENERIC and not claimed


_GENERIC = frozenset((*GENERIC_HEADERS, *GATEWAYS))


def account_of(headers: Headers) -> bytes | None:
    """A digest of the credential that the request carries; `None` if it has none, or one that we do not know."""
    value = next((value for name in CREDENTIALS if (value := headers.get(name))), None)
    if value is None or UNKNOWN_VALUE in value:
        return None
    return sha256(value.encode("utf-8", "surrogatepass")).digest()


def agent_id(headers: Headers, body: RequestBody | None = None, agent: str | None = None) -> str | None:
    """The id of the sub-agent that sends the request; `None` if a main agent does."""
    for wire in _WITH_AGENT_HEADER:
        name = named_id(headers.get(wire.agent_header or ""))
        if name and _is_sub_agent(name, wire, headers):
            return name
    calls = call_shapes_of(agent) if body else None
    return named_id(calls.agent_in(body)) if body and calls else None


def _is_sub_agent(name: str, wire: WireIdentity, headers: Headers) -> bool:
    """Whether the name is a sub-agent's. The header may name the session itself, so only another name counts; or it
    may name any agent, so only one with a parent counts."""
    if wire.parent_header:
        return wire.parent_header in headers
    if wire.agent_header not in wire.session_headers:
        return True
    own = (headers.get(header) for header in wire.session_headers if header != wire.agent_header)
    session = next(filter(None, own), None)
    return session is not None and session != name


_WITH_AGENT_HEADER = tuple(agent.wire for agent in AGENTS if agent.wire.agent_header)


def retries(headers: Headers) -> int:
    """How often the client says it tried before. Claude Code always says 0."""
    count_text = headers.get(RETRY_COUNT, "")
    return int(count_text) if count_text.isdecimal() and len(count_text) < 6 else 0
