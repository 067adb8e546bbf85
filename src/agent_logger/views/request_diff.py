"""The difference between the requests of two calls, as diffs: settings, system prompt, tools, messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from agent_logger.catalog.joining.calls import CallDetail
from agent_logger.logs.wire_log.answers import body_of
from agent_logger.logs.wire_log.requests import SentMessage, comparable, without_cache_marks
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Block
from agent_logger.providers.blocks.base import value_of
from agent_logger.providers.json_values import fields_of
from agent_logger.views.diffs import diff_of
from agent_logger.views.hide import hidden_value
from agent_logger.views.pieces import Diff, json_text

# The fields of a request that have a diff of their own, in the words of all APIs.
CONTENT_FIELDS = frozenset(
    {
        *("messages", "input", "contents", "prompt", "previous_response_id"),
        *("system", "instructions", "systemInstruction", "system_instruction"),
        *("tools", "model"),
    }
)


@dataclass(frozen=True, slots=True)
class RequestDiff:
    diffs: Sequence[Diff]
    unchanged_messages: int


def request_diff(before: CallDetail, after: CallDetail) -> RequestDiff | None:
    """Compare two calls; `None` if one of them asked no model, or cannot be read."""
    try:
        return _request_diff(before, after)
    except RecursionError:  # nested too deeply to be read
        return None


def _request_diff(before: CallDetail, after: CallDetail) -> RequestDiff | None:
    old, new = before.request_view, after.request_view
    if old is None or new is None:
        return None
    parts = [
        ("settings", _settings_text(before), _settings_text(after)),
        ("system prompt", old.system, new.system),
        *((f"tool {name}", *_tool_texts(old.tools, new.tools, name)) for name in {**old.tools, **new.tools}),
    ]
    diffs = [_diff(name, was, now) for name, was, now in parts if was != now]
    pairs = list(_changed_pairs(old.messages, new.messages))
    diffs += [_message_diff(old.messages, new.messages, pair) for pair in pairs]
    return RequestDiff(diffs, len(new.messages) - sum(place is not None for _, place in pairs))


def message_text(message: SentMessage) -> str:
    return "\n".join(filter(None, map(_block_text, message.blocks)))


def _block_text(block: Block) -> str:
    if block.kind == "tool_use":
        return f"{block.name} {json_text(block.input)}"
    return block.text or (json_text(block.raw) if block.raw is not None else "")


def _diff(name: str, before: str, after: str) -> Diff:
    diff = diff_of(hidden(name), [(hidden(before), hidden(after))])
    note = "removed" if not after else "added" if not before else "changed"
    return Diff(diff.path, diff.lines, note)


def _settings_text(detail: CallDetail) -> str:
    fields = fields_of(value_of(body_of(detail.request).decode("utf-8", "replace")))
    model = detail.request_view.model if detail.request_view else None
    settings = {"model": model, **{name: value for name, value in fields.items() if name not in CONTENT_FIELDS}}
    return json_text(hidden_value(settings))


def _tool_texts(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Iterator[str]:
    for tools in (before, after):
        yield json_text(hidden_value(without_cache_marks(tools[name]))) if name in tools else ""


# ---------------------------------------------------------------- messages

Pair = tuple[int | None, int | None]  # the places of a message in both requests


def _changed_pairs(before: Sequence[SentMessage], after: Sequence[SentMessage]) -> Iterator[Pair]:
    """The messages that differ: both places of one that changed, one place of one that was added or removed."""
    old, new = ([json_text(comparable(message)) for message in messages] for messages in (before, after))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield from zip_longest(range(old_start, old_end), range(new_start, new_end))


def _message_diff(before: Sequence[SentMessage], after: Sequence[SentMessage], pair: Pair) -> Diff:
    old = None if pair[0] is None else before[pair[0]]
    new = None if pair[1] is None else after[pair[1]]
    place = pair[0] if pair[1] is None else pair[1]
    role = (new or old or after[0]).role
    before_text, after_text = (f"{message.role}: {message_text(message)}" if message else "" for message in (old, new))
    if before_text == after_text:  # they differ in what no reader sees, such as an id
        before_text, after_text = (json_text(comparable(message)) if message else "" for message in (old, new))
    return _diff(f"message {(place or 0) + 1} ({role})", before_text, after_text)
