"""Pieces as rows of a terminal."""

import re
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from agent_logger.views.figures import bytes_text
from agent_logger.views.pieces import (
    Checklist,
    Code,
    Diff,
    FileList,
    Json,
    Link,
    Matches,
    OutputPiece,
    Picture,
    Piece,
    Prose,
    Sign,
    Terminal,
    json_text,
)
from agent_logger.views.terminal.rows import Segment, Style

# What colours and moves in a terminal: left out, for only our own escapes reach it.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)")


def piece_lines(piece: Piece) -> Iterator[Segment]:
    """The lines of a piece, neither folded nor cut."""
    return _lines(piece)


@singledispatch
def _lines(piece: Any) -> Iterator[Segment]:
    raise TypeError(f"not a piece: {piece!r}")


@_lines.register
def _(piece: Prose) -> Iterator[Segment]:
    yield from _text(piece.text)


@_lines.register
def _(piece: Code) -> Iterator[Segment]:
    lines = piece.text.rstrip("\n").split("\n")
    if piece.first_line is None:
        yield from ((line, "") for line in lines)
        return
    digits = len(str(piece.first_line + len(lines)))
    yield from ((f"{number:>{digits}} {line}", "") for number, line in enumerate(lines, piece.first_line))


@_lines.register
def _(piece: OutputPiece) -> Iterator[Segment]:
    yield from _text(piece.text, "failed" if piece.is_error else "")


@_lines.register
def _(piece: Terminal) -> Iterator[Segment]:
    lines = piece.command.rstrip().split("\n") if piece.command else []
    yield from ((f"{'  ' if number else '$ '}{line}", "strong") for number, line in enumerate(lines))
    if piece.output:
        yield from _text(piece.output)


_STYLES: dict[Sign, Style] = {"+": "added", "-": "removed", "@": "quiet", " ": ""}
_STARTS: dict[Sign, str] = {"+": "+ ", "-": "- ", "@": "@@ ", " ": "  "}


@_lines.register
def _(piece: Diff) -> Iterator[Segment]:
    if piece.note:
        yield f"{piece.path} {piece.note}", "quiet"
    yield from ((_STARTS[line.sign] + line.text, _STYLES[line.sign]) for line in piece.lines)


@_lines.register
def _(piece: Matches) -> Iterator[Segment]:
    yield from ((f"{match.path}:{match.line}:{match.text}", "") for match in piece.matches)


@_lines.register
def _(piece: FileList) -> Iterator[Segment]:
    yield from ((path, "") for path in piece.paths)


_MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


@_lines.register
def _(piece: Checklist) -> Iterator[Segment]:
    for item in piece.items:
        yield f"{_MARKS[item.progress]} {item.text}", "quiet" if item.progress == "done" else ""


@_lines.register
def _(piece: Link) -> Iterator[Segment]:
    yield piece.url, ""


@_lines.register
def _(piece: Json) -> Iterator[Segment]:
    yield from _text(json_text(piece.value))


@_lines.register
def _(piece: Picture) -> Iterator[Segment]:
    yield f"({piece.media_type}, {bytes_text(len(piece.data) * 3 // 4)})", "quiet"


def _text(text: str, style: Style = "") -> Iterator[Segment]:
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    yield from ((line, style) for line in plain.strip("\n").split("\n"))
