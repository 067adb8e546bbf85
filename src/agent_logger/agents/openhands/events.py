"""The events of OpenHands, and what the state of a conversation says of its responses."""

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from agent_logger.agents.objects import in_utc
from agent_logger.messages.human_input import typed
from agent_logger.model.session import Block, Usage
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

RUNNING = -1  # the exit code of a command that has not ended
# The vendors of response ids, by LiteLLM's names of providers; all others are like OpenAI's.
FAMILIES = {
    "anthropic": "anthropic",
    "bedrock": "anthropic",
    "gemini": "gemini",
    "vertex_ai": "gemini",
}
OPENAI = "openai"
# An id that LiteLLM made, for a provider whose API is not OpenAI's.
_MADE = re.compile(r"chatcmpl-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# An id of OpenAI's responses API, which LiteLLM puts into one of its own.
_WRAPPED = re.compile(r"response_id:([\w.-]+)")


class OpenHandsMessage(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = None
    reasoning: str | None = msgspec.field(name="reasoning_content", default=None)
    thinking: Any = msgspec.field(name="thinking_blocks", default=None)
    reasoning_item: Any = msgspec.field(name="responses_reasoning_item", default=None)


class OpenHandsCall(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None
    arguments: Any = None


class OpenHandsEvent(msgspec.Struct, gc=False):
    """One event; each kind has some of the fields."""

    kind: str = ""
    timestamp: str | None = None
    source: str | None = None
    message: OpenHandsMessage | None = msgspec.field(name="llm_message", default=None)
    response: str | None = msgspec.field(name="llm_response_id", default=None)
    # of an action
    thought: Any = None
    reasoning: str | None = msgspec.field(name="reasoning_content", default=None)
    thinking: Any = msgspec.field(name="thinking_blocks", default=None)
    reasoning_item: Any = msgspec.field(name="responses_reasoning_item", default=None)
    action: Json | None = None
    tool: str | None = msgspec.field(name="tool_name", default=None)
    call_id: str | None = msgspec.field(name="tool_call_id", default=None)
    call: OpenHandsCall | None = msgspec.field(name="tool_call", default=None)
    # of what answers it
    observation: Json | None = None
    rejection: str | None = msgspec.field(name="rejection_reason", default=None)
    error: str | None = None
    # of a condensation
    summary: str | None = None
    # of an error of the conversation
    code: str | None = None
    detail: str | None = None
    # of a tool call of another agent, which OpenHands runs by the Agent Client Protocol
    title: str | None = None
    status: str | None = None
    raw_input: Any = None
    raw_output: Any = None
    content: Any = None
    is_error: bool = False

    @property
    def at(self) -> datetime | None:
        return local_time(self.timestamp)


def local_time(text: str | None) -> datetime | None:
    """Read a time. Without a zone, it is that of the machine, as OpenHands writes it."""
    try:
        time = datetime.fromisoformat(text or "")
        return in_utc(time if time.tzinfo else time.astimezone(UTC))
    except (ValueError, OverflowError, OSError):
        return None


# ---------------------------------------------------------------- blocks


def spoken_in(event: OpenHandsEvent) -> Iterator[Block]:
    """Yield what the model thought and wrote, then its tool call if the event is one."""
    message = event.message
    holder: OpenHandsEvent | OpenHandsMessage = message or event
    thought = holder.reasoning or _thinking(holder.thinking) or _reasoning(holder.reasoning_item)
    if thought:
        yield base.thinking(thought)
    yield from _content_blocks(message.content if message else event.thought)
    if event.kind == "ActionEvent":
        call = event.call or OpenHandsCall()
        given = event.action if call.arguments is None else base.arguments(call.arguments)
        yield base.use(event.call_id or call.id, event.tool or call.name, given)


def _content_blocks(content: Any) -> Iterator[Block]:
    for part in base.parts_of(content):
        text = part.get("text")
        if type(text) is not str:
            yield base.other(part, "image" if part.get("type") == "image" else "other")
        elif text:
            yield base.text(text)


def _thinking(blocks: Any) -> str:
    return "\n".join(filter(None, (text_of(block.get("thinking")) for block in base.parts_of(blocks))))


def _reasoning(item: Any) -> str:
    """Return the text of a reasoning item of OpenAI's responses API."""
    fields = fields_of(item)
    texts = (part for name in ("content", "summary") for part in _texts(fields.get(name)))
    return "\n".join(filter(None, texts))


def _texts(parts: Any) -> list[str]:
    return [part for part in parts if type(part) is str] if type(parts) is list else []


def result_of(event: OpenHandsEvent) -> Block:
    """Return what a tool answered. A command that ended with another code than 0 has failed."""
    observation = fields_of(event.observation)
    code = observation.get("exit_code")
    failed = observation.get("is_error") is True or (type(code) is int and code not in (0, RUNNING))
    refused = event.rejection or event.error
    content = refused if event.observation is None else observation.get("content")
    return base.result(event.call_id, content, name=event.tool, is_error=failed or refused is not None)


def other_agents_result(event: OpenHandsEvent) -> Block:
    """Return the result of a tool of another agent, which OpenHands runs by the Agent Client Protocol."""
    output = event.raw_output if event.raw_output is not None else event.content
    return base.result(event.call_id, output, name=event.title, is_error=event.is_error or event.status == "failed")


def input_of(event: OpenHandsEvent) -> str | None:
    """Return what a person typed."""
    blocks = list(_content_blocks(event.message.content if event.message else None))
    texts = [block.text for block in blocks if block.kind == "text"]
    return typed(texts) or ("[image]" if any(block.kind == "image" for block in blocks) else None)


# ---------------------------------------------------------------- the state of a conversation


class _Workspace(msgspec.Struct, gc=False):
    working_dir: str | None = None


class _Model(msgspec.Struct, gc=False):
    model: str | None = None


class _AgentSettings(msgspec.Struct, gc=False):
    llm: _Model | None = None


class _TokenUsage(msgspec.Struct, gc=False):
    model: str | None = None
    response_id: str | None = None


class _Metrics(msgspec.Struct, gc=False):
    model_name: str | None = None
    token_usages: Any = None


class _Stats(msgspec.Struct, gc=False):
    usage_to_metrics: dict[str, Any] | None = None


class ConversationState(msgspec.Struct, gc=False):
    """`base_state.json`."""

    id: str | None = None
    workspace: _Workspace | None = None
    agent: _AgentSettings | None = None
    execution_status: str | None = None
    stats: _Stats | None = None

    @property
    def folder(self) -> str | None:
        return self.workspace.working_dir if self.workspace else None

    @property
    def model(self) -> str | None:
        return self.agent.llm.model if self.agent and self.agent.llm else None

    def responses(self) -> "Iterator[CountedResponse]":
        """Yield the responses that were counted, of each part in its order."""
        parts = (self.stats.usage_to_metrics if self.stats else None) or {}
        for part, metrics in parts.items():
            yield from _counted(part, fitting(_Metrics, metrics))


class CountedResponse(NamedTuple):
    part: str  # `agent`, `condenser`, or `task:<id>` of a sub-agent
    key: str | None  # the id that OpenHands has for the response
    model: str | None
    family: str
    usage: Usage | None

    @property
    def message_id(self) -> str | None:
        return vendor_id(self.key, self.family)


def _counted(part: str, metrics: _Metrics) -> Iterator[CountedResponse]:
    for fields in metrics.token_usages if type(metrics.token_usages) is list else ():
        if type(fields) is dict:
            about = fitting(_TokenUsage, fields)
            family, model = model_of(about.model or metrics.model_name)
            yield CountedResponse(part, about.response_id or None, model, family, _usage(fields))


def _usage(fields: Json) -> Usage | None:
    """Convert token counts. The prompt includes what was read from the cache, and what was written into it."""
    counts = TokenCounts(fields)
    read, written = counts("cache_read_tokens"), counts("cache_write_tokens")
    return counts.usage(counts("prompt_tokens") - read - written, counts("completion_tokens"), read, written)


def model_of(name: str | None) -> tuple[str, str | None]:
    """Return the family of a model's response ids, and the model without LiteLLM's name of its provider."""
    provider, slash, model = (name or "").partition("/")
    return FAMILIES.get(provider, OPENAI), (model if slash else name) or None


def vendor_id(key: str | None, family: str) -> str | None:
    """Return the vendor's id of a response; None if LiteLLM made the id."""
    if key is None or (family != OPENAI and _MADE.fullmatch(key)):
        return None
    if not key.startswith("resp_"):
        return key
    try:
        wrapped = base64.b64decode(key.removeprefix("resp_") + "==").decode()
    except ValueError:
        return key
    match = _WRAPPED.search(wrapped) if wrapped.startswith("litellm:") else None
    return match[1] if match else key
