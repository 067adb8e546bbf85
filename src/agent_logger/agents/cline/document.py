"""The documents of Cline, and of others: a JSON object with a list of messages, written anew at every step.

A document that is cut or has lost a part is read message by message, and what cannot be read is reported.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from agent_logger.agents.objects import decoded
from agent_logger.protocols.jsonl import Damage, JsonEntry
from agent_logger.providers.answer import MOST_NESTED
from agent_logger.providers.json_values import Json, nested_deeper, with_whole_characters
from agent_logger.providers.lenient import REFUSED

MOST_TRIES = 10_000  # places at which a message may begin, after a damaged one
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_messages = msgspec.json.Decoder(list[msgspec.Raw]).decode
_read_value = json.JSONDecoder().raw_decode
_SEPARATOR = re.compile(r"[\s,]*")
_AFTER = re.compile(r"\s*(,|\}\s*\Z)")

Entries = Iterable[JsonEntry | Damage]


class MessageForm(NamedTuple):
    """How a message is found behind a damaged one, and the name of the list."""

    beginning: re.Pattern[str]
    fits: Callable[[Json], bool]
    list_name: str = "messages"


CLINE = MessageForm(re.compile(r'\{\s*"id"\s*:\s*"'), lambda value: value.get("role") in ("user", "assistant"))


def entries_of(data: bytes, form: MessageForm = CLINE) -> Iterator[JsonEntry | Damage]:
    """Yield the object without its messages, then each message, with what could not be read in its place. The value of
    an entry is `None` if it is nested too deeply."""
    try:
        fields = _decode_fields(data)
        messages = _decode_messages(fields.pop(form.list_name, msgspec.Raw(b"[]")))
        head = {name: decoded(value, bytes(value)) for name, value in fields.items()}
        values = [(raw, decoded(raw, raw)) for raw in map(bytes, messages)]
    except REFUSED:
        yield from _salvaged(data, form)
        return
    yield JsonEntry(1, 0, head, b"")
    for number, (raw, value) in enumerate(values, 1):
        yield JsonEntry(number, 0, value, raw)


def _salvaged(data: bytes, form: MessageForm) -> Iterator[JsonEntry | Damage]:
    text = data.decode("utf-8", "replace")
    list_start = re.search(rf'"{form.list_name}"\s*:\s*\[', text)
    start = list_start.end() if list_start else 0
    head = _object(f'{text[: list_start.start()]}"{form.list_name}":[]}}') if list_start else None
    if head is None:
        yield Damage(1, 0, start or len(text), "the beginning of the document cannot be read")
    walk = _Walk(text, start, form)
    messages = list(walk)
    yield JsonEntry(1, 0, {**(head or {}), **walk.tail}, b"")
    yield from messages


class _Walk:
    """A walk from message to message. `tail` has the fields after the last one."""

    def __init__(self, text: str, start: int, form: MessageForm) -> None:
        self.tail: Json = {}
        self._form = form
        self._text, self._at, self._number = text, start, 0
        self._tries = MOST_TRIES

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        while (entry := self._next()) is not None:
            self._number += 1
            yield entry

    def _next(self) -> JsonEntry | Damage | None:
        text = self._text
        self._at = at = (_SEPARATOR.match(text, self._at) or _always).end()
        if at >= len(text):
            if self._tries < 0:
                return None
            self._tries = -1
            return Damage(self._number + 1, at, 0, "the document has no end")
        if text[at] == "]" and (tail := self._rest(at + 1)) is not None:
            self.tail, self._at, self._tries = tail, len(text), -1
            return None
        value, end = self._value(at)
        if value is None:
            end = self._next_message(at + 1)
            entry = Damage(self._number + 1, at, end - at, "a message cannot be read")
            if end >= len(text):
                self._tries = -1
            self._at = end
            return entry
        self._at = end
        return JsonEntry(self._number + 1, at, value, b"")

    def _rest(self, at: int) -> Json | None:
        """Return the fields after the messages; None if this is not their end."""
        if not (after := _AFTER.match(self._text, at)):
            return None
        return {} if after[1] != "," else _object("{" + self._text[after.end() :])

    def _value(self, at: int) -> tuple[Json | None, int]:
        try:
            value, end = _read_value(self._text, at)
        except (ValueError, RecursionError):
            return None, at
        return (_storable(value), end) if type(value) is dict else (None, at)

    def _next_message(self, start: int) -> int:
        for start_match in self._form.beginning.finditer(self._text, start):
            self._tries -= 1
            if self._tries < 0:
                break
            value, _ = self._value(start_match.start())
            if value is not None and self._form.fits(value):
                return start_match.start()
        return len(self._text)


_always: Any = re.compile("").match("")


def _object(text: str) -> Json | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _storable(value) if type(value) is dict else None


def _storable(value: Json) -> Json:
    return {} if nested_deeper(value, MOST_NESTED) else with_whole_characters(value)
