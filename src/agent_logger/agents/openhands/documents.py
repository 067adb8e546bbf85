"""The documents of OpenHands: a state for each conversation, written anew at every step, and one document for each
event. Of a damaged state, the counted responses are read one by one."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator

from agent_logger.agents.objects import decoded, shallow
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry
from agent_logger.protocols.lines import Line
from agent_logger.providers.json_values import Json, with_whole_characters
from agent_logger.providers.lenient import REFUSED

BLANKS = b" \t\r\n"
_USAGES = re.compile(rb'"token_usages"\s*:\s*\[')
_OWNER = re.compile(rb'"([^"\\]{1,200})"\s*:\s*\{\s*"model_name"')
_INNER_OBJECT = re.compile(rb"\{[^{}]*\}")
_COUNTED = b'"prompt_tokens"'
_TEXTS = re.compile(rb'"(id|working_dir|execution_status)"\s*:\s*"([^"\\]{1,4096})"')


def entries_of(data: bytes, number: int = 1) -> Iterator[JsonEntry | Damage]:
    """Yield the object in a document, or what can be read of it, and what cannot."""
    try:
        value = decoded(data, data)
    except REFUSED:
        yield from _salvaged(data, number)
        return
    yield JsonEntry(number, 0, value, data)


def _salvaged(data: bytes, number: int) -> Iterator[JsonEntry | Damage]:
    stripped = data.strip(BLANKS)
    if not stripped:
        yield Damage(number, 0, len(data), "the document is empty")
        return
    for entry in jsonl.decode(Line(number, 0, len(stripped), stripped)):
        if isinstance(entry, JsonEntry):
            value = shallow(entry.value, entry.raw)
            yield JsonEntry(number, entry.offset, with_whole_characters(value), entry.raw)
        else:
            yield entry


def state_entries_of(data: bytes) -> Iterator[JsonEntry | Damage]:
    """Yield the state of a conversation; of a damaged one, what is found of its counted responses."""
    entries = list(entries_of(data))
    if any(isinstance(entry, Damage) for entry in entries) and not any(_is_state(entry) for entry in entries):
        yield JsonEntry(1, 0, _found_in(data), b"")
        yield from (entry for entry in entries if isinstance(entry, Damage))
    else:
        yield from entries


def _is_state(entry: JsonEntry | Damage) -> bool:
    return isinstance(entry, JsonEntry) and type(entry.value) is dict and "stats" in entry.value


def _found_in(data: bytes) -> Json:
    """Return the fields of a state that can be found in it although it is damaged."""
    metrics: dict[str, Json] = {}
    starts = [match.end() for match in _USAGES.finditer(data)]
    owners = list(_OWNER.finditer(data))
    for start, end in zip(starts, [*starts, len(data)][1:], strict=True):
        place = bisect_left(owners, start, key=re.Match.start)
        next_owner = owners[place].start() if place < len(owners) else end
        objects = (match[0] for match in _INNER_OBJECT.finditer(data, start, min(end, next_owner)))
        usages = [json_object(data) for data in objects if _COUNTED in data]
        if place:
            owner = owners[place - 1][1].decode("utf-8", "replace")
            metrics[owner] = {"token_usages": [usage for usage in usages if usage]}
    first: dict[bytes, str] = {}
    for match in _TEXTS.finditer(data):
        first.setdefault(match[1], match[2].decode("utf-8", "replace"))
    return {
        "id": first.get(b"id"),
        "workspace": {"working_dir": first.get(b"working_dir")},
        "execution_status": first.get(b"execution_status"),
        "stats": {"usage_to_metrics": metrics},
    }


def json_object(data: bytes) -> Json:
    """Return the fields of a small object without objects in it; none if it is damaged."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return with_whole_characters(value) if type(value) is dict else {}
