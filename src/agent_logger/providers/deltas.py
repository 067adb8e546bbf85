"""Texts that an answer gives in pieces, found in its bytes: a key that a model writes comes as a dozen events, and none
of them looks like a key.

Pieces are contents of JSON strings, as they stand there. Joined they are what one string with the whole text would
hold, for no piece ends within an escape.
"""

import re
from collections.abc import Iterator

PieceBounds = tuple[int, int]  # where a piece begins and ends

_EVENT = re.compile(rb"[^\n]+")
# What the dialects tell texts by.
_PIECE = re.compile(
    rb'"(text|thinking|partial_json|content|arguments|delta|reasoning_content|reasoning|refusal|input|response)"'
    rb'[ \t]*:[ \t]*"((?:[^"\\]|\\.|(?!))*+)"'
)
# Which of several texts that come side by side.
_WHICH = re.compile(rb'"(?:(?:output_|content_|summary_)?index|item_id)"[ \t]*:[ \t]*("[^"\\]*+"|\d++)')


def split_texts(stream: bytes) -> Iterator[list[PieceBounds]]:
    """Yield the places of the pieces, for each text that has more than one. A line holds an event, or one of its
    texts."""
    texts: dict[tuple[bytes, ...], list[PieceBounds]] = {}
    for event in _EVENT.finditer(stream):
        which = tuple(_WHICH.findall(event[0]))
        for piece in _PIECE.finditer(stream, *event.span()):
            if piece[2]:
                texts.setdefault((piece[1], *which), []).append(piece.span(2))
    return (places for places in texts.values() if len(places) > 1)
