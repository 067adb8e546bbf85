"""Fingerprint v1: the state of a conversation after each of its messages, as a chain of HMACs.

Clients send the history again with every call, and not quite as it was. The changes that they were observed to make are
removed before hashing, nothing else; `CANONICAL` holds one function per API:

- messages: role and content are kept. `cache_control` moves to the newest block, and where it leaves, a lone text block
  becomes a string. The input of a tool use comes back with defaults added, so a tool use is its type, id and name.
  Thinking comes back with its signature as it was. Empty texts, which the API refuses, are not sent back; nor are
  fields that are null.
- chat: arguments of tool calls are serialised again, so a tool call is its id and name. No content, `null` and `""` are
  the same. Fields beside these (`refusal`, `reasoning_content`) are the answer's alone.
- responses: items come back in order, reasoning too, which gains `"content": null`. Over a WebSocket they gain fields
  that are Codex's own; ids and `status` are dropped where nothing is stored. A function call is its type, call id and
  name.
- gemini: function calls gain an id and a signature, responses to them change theirs and are sent twice after a resume;
  thoughts are not sent back, or after a resume as texts with a mark.

An answer goes through the same functions, so that the state after it is the state of the next call's prefix.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_logger.providers.request_body import Api, mended, value

PREFIX = "v1:"
MOST_KNOWN = 1 << 12  # messages recognised by a digest, in each of two generations: those of the longest history

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(slots=True)
class Rolled:
    """The states of a request: `states[i]` after `i + 1` units."""

    states: list[bytes]
    first_answer: int | None  # index of the first unit that the model said
    is_answer: list[bool]

    def first(self, count: int) -> "Rolled":
        """The states of the first units."""
        first_answer = self.first_answer if self.first_answer is not None and self.first_answer < count else None
        return Rolled(self.states[:count], first_answer, self.is_answer[:count])


class Fingerprints:
    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod="sha256")  # has read the key: copies of it need not
        self._starts = {api: self._hmac(f"{PREFIX}{api}".encode()) for api in CANONICAL}
        self._states: dict[bytes, tuple[bytes, bool]] = {}
        self._before: dict[bytes, tuple[bytes, bool]] = {}  # the older generation

    def start(self, api: Api, after: str | None = None) -> bytes:
        """The state before the first unit. `after`: the response that the request follows, of which nothing else is
        known."""
        return self._hmac(f"{PREFIX}{api}:{after}".encode()) if after else self._starts[api]

    def roll(self, api: Api, state: bytes, units: Sequence[msgspec.Raw], earlier: Rolled | None = None) -> Rolled:
        """Compute the states of a history. `earlier`: those of its first units; it is extended."""
        rolled = earlier or Rolled([], None, [])
        states, is_answer, first = rolled.states, rolled.is_answer, rolled.first_answer
        if states:
            state, units = states[-1], units[len(states) :]
        remembered = self._states
        sha256 = hashlib.sha256
        for unit in units:
            digest = sha256(state)
            digest.update(unit)
            name = digest.digest()
            state_and_speaker = remembered.get(name)
            if state_and_speaker is None:
                state_and_speaker = self._before.get(name) or self._next(api, state, value(unit), bytes(unit))
                self._keep(name, state_and_speaker)
                remembered = self._states
            state, by_model = state_and_speaker
            if by_model and first is None:
                first = len(states)
            states.append(state)
            is_answer.append(by_model)
        rolled.first_answer = first
        return rolled

    def after(self, api: Api, state: bytes, answer: Mapping[str, Any]) -> bytes | None:
        """The state after an answer in the shape of the API's whole response or of its message; `None` if the answer is
        empty."""
        before = state
        for unit in _units_of(api, answer):
            state, _ = self._next(api, state, unit, b"")
        return state if state != before else None

    def of_name(self, name: str) -> str:
        return self._hmac(b"name:" + name.encode("utf-8", "surrogatepass")).hex()[:32]

    def _next(self, api: Api, state: bytes, unit: Any, raw: bytes) -> tuple[bytes, bool]:
        if not isinstance(unit, dict):
            return self._hmac(state + raw), False
        canonical = CANONICAL[api](unit)
        try:
            data = _encode(canonical)
        except UnicodeEncodeError:
            data = _encode(mended(canonical))
        except RecursionError:
            data = raw
        by_model = canonical.get("role") in ("assistant", "model") or canonical.get("type") in _FROM_MODEL
        return self._hmac(state + data), by_model

    def _keep(self, name: bytes, value: tuple[bytes, bool]) -> None:
        if len(self._states) >= MOST_KNOWN:
            self._before, self._states = self._states, {}
        self._states[name] = value

    def _hmac(self, data: bytes) -> bytes:
        state = self._keyed.copy()
        state.update(data)
        return state.digest()


def hex_text(state: bytes) -> str:
    return PREFIX + state.hex()


def state_of(fingerprint: str | None) -> bytes | None:
    """The state in a fingerprint; `None` for a fingerprint of another version."""
    if fingerprint is None or not fingerprint.startswith(PREFIX):
        return None
    try:
        return bytes.fromhex(fingerprint[len(PREFIX) :])
    except ValueError:
        return None


# ---------------------------------------------------------------- canonical forms

# Tuples, not sets: a type may be anything, also what has no hash.
_TOOL_USE = ("tool_use", "server_tool_use", "mcp_tool_use")
_CALLS = ("function_call", "custom_tool_call")
_BESIDE = ("id", "status", "internal_chat_message_metadata_passthrough")  # fields that are not what an item says
_THOUGHT_MARK = "\n[Thought: true]"  # Gemini CLI's
_FROM_MODEL = (*_CALLS, "reasoning", "local_shell_call", "web_search_call")

Json = dict[str, Any]


def _messages(message: Json) -> Json:
    role = message.get("role")
    return {"role": role, "content": _blocks(message.get("content"), of_model=role == "assistant")}


def _blocks(content: Any, *, of_model: bool) -> Any:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    blocks = [_block(block) if isinstance(block, dict) else block for block in content]
    return [block for block in blocks if block != _EMPTY_TEXT] if of_model else blocks


_EMPTY_TEXT = {"type": "text", "text": ""}


def _block(block: Json) -> Json:
    kind = block.get("type")
    if kind in _TOOL_USE:
        return {"type": kind, "id": block.get("id"), "name": block.get("name")}
    fields = {name: value for name, value in block.items() if name != "cache_control" and value is not None}
    inner = fields.get("content")
    if isinstance(inner, list):  # the content of a tool result
        fields["content"] = [_block(block) if isinstance(block, dict) else block for block in inner]
    return fields


def _chat(message: Json) -> Json:
    role = message.get("role")
    canonical: Json = {"role": role}
    content = message.get("content")
    if content:
        canonical["content"] = _blocks(content, of_model=role == "assistant")
    if isinstance(calls := message.get("tool_calls"), list) and calls:
        canonical["tool_calls"] = [_tool_call(call) if isinstance(call, dict) else call for call in calls]
    for name in ("tool_call_id", "name"):
        if message.get(name) is not None:
            canonical[name] = message[name]
    if isinstance(call := message.get("function_call"), dict):
        canonical["function_call"] = {"name": call.get("name")}
    return canonical


def _tool_call(call: Json) -> Json:
    function = call.get("function") or call.get("custom")
    return {"id": call.get("id"), "name": function.get("name") if isinstance(function, dict) else None}


def _item(item: Json) -> Json:
    kind = item.get("type", "message")
    if kind == "message":
        return {"type": kind, "role": item.get("role"), "content": _parts(item.get("content"))}
    if kind in _CALLS:
        return {"type": kind, "call_id": item.get("call_id"), "name": item.get("name")}
    return {name: value for name, value in item.items() if name not in _BESIDE and value is not None}


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_part(part) for part in content] if isinstance(content, list) else content


def _part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") in ("input_text", "output_text", "text"):
        return {"type": "text", "text": part.get("text")}
    return part


def _content(content: Json) -> Json:
    parts = content.get("parts")
    role = content.get("role", "user")
    if not isinstance(parts, list):
        return {"role": role, "parts": parts}
    blocks: list[Any] = []
    for part in parts:
        canonical = _gemini_part(part) if isinstance(part, dict) else part
        if (
            canonical is None
            or (role == "model" and _is_marked_thought(canonical))
            or (blocks and canonical == blocks[-1] and _is_response(canonical))
        ):
            continue
        if blocks and role == "model" and _is_text(canonical) and _is_text(blocks[-1]):
            blocks[-1] = {"text": blocks[-1]["text"] + canonical["text"]}  # a stream cuts texts anywhere
        else:
            blocks.append(canonical)
    return {"role": role, "parts": blocks}


def _gemini_part(part: Json) -> Json | None:
    if part.get("thought"):
        return None
    if isinstance(call := part.get("functionCall"), dict):
        return {"functionCall": {"name": call.get("name")}}
    if isinstance(response := part.get("functionResponse"), dict):
        return {"functionResponse": {name: value for name, value in response.items() if name != "id"}}
    return {name: value for name, value in part.items() if name != "thoughtSignature"}


def _is_marked_thought(part: Any) -> bool:
    return _is_text(part) and part["text"].endswith(_THOUGHT_MARK)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and list(part) == ["text"] and isinstance(part["text"], str)


def _is_response(part: Any) -> bool:
    return isinstance(part, dict) and "functionResponse" in part


CANONICAL: Mapping[Api, Callable[[Json], Json]] = {
    "messages": _messages,
    "chat": _chat,
    "responses": _item,
    "gemini": _content,
}


def _units_of(api: Api, answer: Mapping[str, Any]) -> list[Json]:
    """The units that an answer becomes in the next request."""
    if api == "responses":
        return _dicts(answer.get("output"))
    if api == "chat" and "choices" in answer:
        return _dicts([choice.get("message") for choice in _dicts(answer["choices"])[:1]])
    if api == "gemini" and "candidates" in answer:
        return _dicts([candidate.get("content") for candidate in _dicts(answer["candidates"])[:1]])
    if not any(answer.get(name) for name in ("content", "tool_calls", "parts")):
        return []
    return [{"role": "model" if api == "gemini" else "assistant", **answer}]


def _dicts(units: Any) -> list[Json]:
    return [unit for unit in units if isinstance(unit, dict)] if isinstance(units, list) else []
