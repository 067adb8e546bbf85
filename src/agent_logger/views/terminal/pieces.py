"""Pieces as rows of a terminal."""

import re
from collections.abc import Iterator

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


_STYLES: dict[Sign, Style] = {"+": "added", "-": "removed", "@": "quiet", " ": ""}
_STARTS: dict[Sign, str] = {"+": "+ ", "-": "- ", "@": "@@ ", " ": "  "}
_MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


def piece_lines(piece: Piece) -> Iterator[Segment]:
    """The lines of a piece, neither folded nor cut."""
    match piece:
        case Prose(text):
            yield from _text(text)
        case Code():
            yield from ((line, "") for line in _code_lines(piece))
        case OutputPiece(text, is_error):
            yield from _text(text, "failed" if is_error else "")
        case Terminal(command, output):
            lines = command.rstrip().split("\n") if command else []
            yield from ((f"{'  ' if number else '$ '}{line}", "strong") for number, line in enumerate(lines))
            yield from _text(output) if output else ()
        case Diff():
            if piece.note:
                yield f"{piece.path} {piece.note}", "quiet"
            yield from ((_STARTS[line.sign] + line.text, _STYLES[line.sign]) for line in piece.lines)
        case Matches(matches):
            yield from ((f"{match.path}:{match.line}:{match.text}", "") for match in matches)
        case FileList(paths):
            yield from ((path, "") for path in paths)
        case Checklist(items):
            for item in items:
                yield f"{_MARKS[item.progress]} {item.text}", "quiet" if item.progress == "done" else ""
        case Link(url):
            yield url, ""
        case Json(value):
            yield from _text(json_text(value))
        case Picture(media_type, data):
            yield f"({media_type}, {bytes_text(len(data) * 3 // 4)})", "quiet"


def _code_lines(code: Code) -> list[str]:
    lines = code.text.rstrip("\n").split("\n")
    if code.first_line is None:
        return lines
    digits = len(str(code.first_line + len(lines)))
    return [f"{number:>{digits}} {line}" for number, line in enumerate(lines, code.first_line)]


def _text(text: str, style: Style = "") -> Iterator[Segment]:
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    yield from ((line, style) for line in plain.strip("\n").split("\n"))
