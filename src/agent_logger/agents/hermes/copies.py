"""Messages that Hermes wrote again: no row says that it is a copy, and its time may be new.

A branch begins with all messages of its source. A session that was compacted begins again: with its first messages,
then a summary, then its last ones. So copies stand in one run, and in the order of what they were copied from.
"""

from collections.abc import Container, Iterator, Sequence
from typing import Any

from agent_logger.agents.databases.opening import Row

SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
# The summary may stand in a copy: behind a message, which begins with the first of these.
_MERGED = ("[PRIOR CONTEXT", "[END OF PRIOR CONTEXT")
MOST_FIRST = 100  # messages before a summary

Key = tuple[Any, ...]


def is_summary(content: Any) -> bool:
    """Whether a message is, or contains, the summary of a compaction."""
    if type(content) is not str:
        return False
    return content.startswith(SUMMARIES) or (content.startswith(_MERGED[0]) and _MERGED[1] in content)


def copies_among(messages: Sequence[Row], source: Sequence[Row] = ()) -> set[int]:
    """Return the numbers of the messages that are copies, from 0. `source`: the messages of the session that this one
    branched from, or continues."""
    keys, originals = [_key(message) for message in messages], [_key(message) for message in source]
    summaries = {number for number, message in enumerate(messages) if is_summary(message.get("content"))}
    end = _end_of_copies(keys, 0, originals, summaries)
    if end and messages[end - 1].get("role") == "user":
        end -= 1  # it is answered here
    copies, begun = {*range(end), *_written_twice(messages, keys)}, 0
    for summary in sorted(summaries):
        if summary >= end and summary - 1 not in summaries:
            start = summary - _repeated(keys[begun:summary])
            end = _end_of_copies(keys, start, keys[begun:start], summaries)
            copies.update(range(start, end))
            begun = start
    first = {key: number for number, key in reversed([*enumerate(keys)])}
    in_source = set(originals)
    old = {number for number in summaries if keys[number] in in_source or first[keys[number]] < number}
    return (copies | old).difference(summaries - old)


def _key(message: Row) -> Key:
    return tuple(message.get(name) for name in ("role", "content", "tool_calls", "tool_call_id"))


def _written_twice(messages: Sequence[Row], keys: Sequence[Key]) -> Iterator[int]:
    """Yield the numbers of messages that say the same as an earlier one, at the same time."""
    earlier = set()
    for number, (message, key) in enumerate(zip(messages, keys, strict=True)):
        if (entry := (key, message.get("timestamp"))) in earlier:
            yield number
        earlier.add(entry)


def _repeated(keys: list[Key]) -> int:
    """Return how many of the last messages are the first ones again."""
    most = min(len(keys) // 2, MOST_FIRST)
    return next((count for count in range(most, 0, -1) if keys[-count:] == keys[:count]), 0)


def _end_of_copies(keys: Sequence[Key], start: int, originals: Sequence[Key], summaries: Container[int]) -> int:
    """Return the number of the first message from `start` on that is neither a copy nor a summary."""
    at = 0
    for number in range(start, len(keys)):
        if number in summaries:
            continue
        try:
            at = originals.index(keys[number], at) + 1
        except ValueError:
            return number
    return len(keys)
