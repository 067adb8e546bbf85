"""Answers of OpenAI's chat completions, of the completions before them, and of the many hosts that copy the API.

The hosts differ in small things: some leave out `[DONE]`, or the usage; some give the usage elsewhere, or in every
event; some number all parallel tool calls 0, or not at all; each has fields of its own for thoughts. So a message is
gathered from whatever its deltas hold.
"""

from typing import Any

import msgspec

from agent_logger.providers.answer import Answer, Assembler, failure
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of

_DEEPEST = 8  # levels of a delta that are gathered; below, a later value replaces


class _Choice(msgspec.Struct):
    index: int | None = 0
    delta: Json | None = None
    text: str | None = None  # where a text is gone on with
    finish_reason: Any = None
    usage: Any = None  # Moonshot


class _Chunk(msgspec.Struct):
    id: Any = None  # a number, of some hosts
    model: str | None = None
    service_tier: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None
    x_groq: Any = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)


class ChatCompletions(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._id: str | None = None
        self._model: str | None = None
        self._tier: str | None = None
        self._usage: Any = None
        self._messages: dict[int, Json] = {}
        self._finished: dict[int, str] = {}
        self._body: Json | None = None  # of an answer that is not streamed

    def done(self) -> None:
        self.ended = not self.error

    def event(self, data: bytes) -> None:
        chunk = self.read(_chunk, data)
        if chunk is None:
            return
        if chunk.choices:
            for choice in chunk.choices:
                self._add(choice)
        if self._id is None and chunk.id:
            self._id = str(chunk.id)
        self._model = self._model or chunk.model
        self._tier = chunk.service_tier or self._tier
        if chunk.usage or chunk.x_groq:
            self._usage = chunk.usage or fields_of(chunk.x_groq).get("usage") or self._usage
        if chunk.error:
            self.fail(failure({"error": chunk.error}))

    def whole(self, data: bytes) -> None:
        self._body = self.read_body(data, "choices")

    def assemble(self) -> Answer:
        if self._body is not None:
            return _of_body(self._body)
        finished = bool(self._messages) and self._finished.keys() >= self._messages.keys()
        if finished and self.framed and not self.error:
            self.ended = True  # hosts without [DONE]; of others, the usage and [DONE] may have been cut off
        first = min(self._messages, default=0)
        message = self._messages.get(first)
        return Answer(
            message=_settled(message) if message is not None else None,
            message_id=self._id or None,
            model=self._model or None,
            stop_reason=self._finished.get(first),
            usage=usage_of(self._usage),
            raw_usage=self._usage,
            service_tier=self._tier,
        )

    def _add(self, choice: _Choice) -> None:
        index = choice.index or 0
        message = self._messages.setdefault(index, {})
        if choice.delta:
            _gather(message, choice.delta, _DEEPEST)
        elif choice.text is not None:
            _gather(message, {"role": "assistant", "content": choice.text}, _DEEPEST)
        if isinstance(choice.finish_reason, str) and choice.finish_reason:
            self._finished[index] = choice.finish_reason
        if choice.usage:
            self._usage = choice.usage


def _of_body(body: Json) -> Answer:
    choices = [choice for choice in body["choices"] if isinstance(choice, dict)]
    choice = choices[0] if choices else {}
    return Answer(
        message=_message_of(choices) or _of_text(choice),
        message_id=text_of(body.get("id")),
        model=text_of(body.get("model")),
        stop_reason=text_of(choice.get("finish_reason")),
        usage=usage_of(body.get("usage")),
        raw_usage=body.get("usage"),
        service_tier=text_of(body.get("service_tier")),
    )


def _message_of(choices: list[Json]) -> Any:
    """The message of the first choice. Copilot gives the text of a Claude model and its tool calls as two choices
    without numbers."""
    message = choices[0].get("message") if choices else None
    parts = [choice.get("message") for choice in choices if choice.get("index") in (None, choices[0].get("index"))]
    calls = [call for part in parts for call in _calls_of(part)]
    return {**message, "tool_calls": calls} if calls and isinstance(message, dict) else message


def _calls_of(message: Any) -> list[Any]:
    calls = fields_of(message).get("tool_calls")
    return calls if isinstance(calls, list) else []


def _of_text(choice: Json) -> Json | None:
    text = text_of(choice.get("text"))
    return None if text is None else {"role": "assistant", "content": text}


# ---------------------------------------------------------------- gathering deltas

# Told once, or again and again.
_NAMES = frozenset(("id", "type", "role", "name", "index", "format", "object"))


class _Pieces(list[str]):
    """A text that is still coming."""


class _Numbered:
    """A list whose items come in pieces. An item is identified by its index; another id makes it another item."""

    __slots__ = ("_last", "items")

    def __init__(self) -> None:
        self.items: list[tuple[int, Json]] = []
        self._last: dict[int, Json] = {}

    def item(self, delta: Json) -> Json:
        index, name = delta.get("index"), delta.get("id")
        if not isinstance(index, int):
            index = self.items[-1][0] if self.items else 0
        item = self._last.get(index)
        if item is None or (name and item.get("id") and item["id"] != name):
            item = self._last[index] = {}
            self.items.append((index, item))
        return item

    def settled(self) -> list[Json]:
        return [_settled(item) for _, item in sorted(self.items, key=lambda numbered: numbered[0])]


def _gather(into: Json, delta: Json, levels: int) -> None:
    for name, value in delta.items():
        before = into.get(name)
        if isinstance(value, str):
            if name in _NAMES:
                into[name] = value or before or value
            elif isinstance(before, _Pieces):
                before.append(value)
            elif isinstance(before, list):
                before.append({"type": "text", "text": value})
            else:
                into[name] = _Pieces([value])
        elif isinstance(value, list) and levels:
            into[name] = _listed(name, before, value, levels - 1)
        elif isinstance(value, dict) and levels:
            into[name] = before = before if isinstance(before, dict) else {}
            _gather(before, value, levels - 1)
        elif value is not None or name not in into:
            into[name] = value


def _listed(name: str, parts: Any, value: list[Any], levels: int) -> Any:
    numbered = name == "tool_calls" or any("index" in fields_of(item) for item in value)
    if numbered and not isinstance(parts, list):
        numbers = parts if isinstance(parts, _Numbered) else _Numbered()
        for item in value:
            if isinstance(item, dict):
                _gather(numbers.item(item), item, levels)
        return numbers
    if isinstance(parts, _Pieces):
        parts = [{"type": "text", "text": "".join(parts)}] if any(parts) else []
    return [*parts, *value] if isinstance(parts, list) else value


def _settled(gathered: Json) -> Json:
    message = {name: _settle(value) for name, value in gathered.items()}
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for call in calls:
            fields_of(call).pop("index", None)
        message["content"] = message.get("content") or None  # as it is where nothing is streamed
    return message


def _settle(value: Any) -> Any:
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, _Numbered):
        return value.settled()
    return _settled(value) if isinstance(value, dict) else value
