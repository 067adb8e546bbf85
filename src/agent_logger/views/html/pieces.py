"""Pieces as HTML. All text is escaped, and attributes hold only values that are made here.

The classes are those of `style.css`. There is no inline style and no script, so a page may forbid both.
"""

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby

from markupsafe import Markup, escape

from agent_logger.model.plurals import pluralize
from agent_logger.views.figures import bytes_text
from agent_logger.views.html.ansi import output_lines
from agent_logger.views.html.code import code_lines
from agent_logger.views.html.markdown import REL, prose_html
from agent_logger.views.markdown import is_safe_link
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
from agent_logger.views.printable import printable

FIRST_LINES = 12  # of a long text; the rest is collapsed
FEW_LINES = 20  # a text with up to this many lines is not collapsed
LONGEST = 200_000  # characters of one piece; nobody reads more on a page
LONGEST_LINE = 2_000  # characters, where a piece is made of lines
MOST_LINES = 2_000
LARGEST_PICTURE = 4 << 20  # bytes


# The class of a line, and the character before it.
_DIFF_LOOK: Mapping[Sign, tuple[str, str]] = {
    "+": ("added", "+ "),
    "-": ("removed", "- "),
    "@": ("hunk", "@@ "),
    " ": ("same", "  "),
}
_MARKS: Mapping[str, str] = {"open": "☐", "doing": "◐", "done": "☑"}


def html_of(piece: Piece) -> Markup:
    match piece:
        case Prose():
            text, rest = _cut(piece.text)
            return Markup('<div class="prose">{}</div>{}').format(prose_html(text), rest)
        case Code():
            text, rest = _cut(piece.text)
            return _fold("code", code_lines(text, piece.language), piece.first_line) + rest
        case OutputPiece():
            text, rest = _cut(piece.text)
            return _fold("output failed" if piece.is_error else "output", output_lines(text)) + rest
        case Terminal():
            return _terminal(piece)
        case Diff():
            return _diff(piece)
        case Matches():
            return _matches(piece)
        case FileList(paths):
            return _fold("files", [escape(_line(path)) for path in paths[:MOST_LINES]]) + _omission_note(paths)
        case Checklist(items):
            item = Markup('<li class="{}">{} {}</li>')
            entries = (
                item.format(entry.progress, _MARKS[entry.progress], _line(entry.text)) for entry in items[:MOST_LINES]
            )
            return Markup('<ul class="checklist">{}</ul>').format(Markup("").join(entries))
        case Link():
            return _link(printable(piece.url))
        case Json(value):
            return html_of(Code(json_text(value), "json"))
        case Picture():
            return _picture(piece)


def _terminal(piece: Terminal) -> Markup:
    command = Markup("\n").join(code_lines(_cut(piece.command)[0], "bash"))
    prompt = Markup('<pre class="command"><code>{}</code></pre>').format(command) if piece.command else Markup()
    output = html_of(OutputPiece(piece.output)) if piece.output else Markup()
    ended = Markup('<p class="exit">exit code {}</p>').format(piece.exit) if piece.exit else Markup()
    return Markup('<div class="terminal">{}{}{}</div>').format(prompt, output, ended)


def _diff(piece: Diff) -> Markup:
    line = Markup('<span class="{}">{}{}</span>')
    lines = [line.format(*_DIFF_LOOK[diff_line.sign], _line(diff_line.text)) for diff_line in piece.lines[:MOST_LINES]]
    head = Markup('<p class="path">{} <small>{}</small></p>').format(_line(piece.path or ""), _line(piece.note))
    return Markup('<div class="diff">{}{}</div>{}').format(head, _fold("lines", lines), _omission_note(piece.lines))


def _matches(piece: Matches) -> Markup:
    line = Markup('<span class="number">{}</span> {}')
    files = (
        Markup('<p class="path">{}</p>{}').format(
            _line(path), _fold("code", [line.format(match.line, _line(match.text)) for match in matches])
        )
        for path, matches in groupby(piece.matches[:MOST_LINES], key=lambda match: match.path)
    )
    return Markup('<div class="matches">{}</div>{}').format(Markup("").join(files), _omission_note(piece.matches))


def _link(url: str) -> Markup:
    if not is_safe_link(url):
        return Markup("<p><code>{}</code></p>").format(url)
    return Markup('<p><a href="{}" rel="{}">{}</a></p>').format(url, REL, url)


# ---------------------------------------------------------------- pictures

# What a browser draws without a program inside, by its first bytes: whatever a file says of itself, no SVG.
_RASTERS: Sequence[tuple[bytes, str]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def _picture(piece: Picture) -> Markup:
    size = len(piece.data) * 3 // 4
    data = b""
    with suppress(ValueError):
        data = base64.b64decode(piece.data) if size <= LARGEST_PICTURE else b""
    kind = _raster(data)
    if kind is None:
        return Markup('<p class="note">({}, {}: not shown)</p>').format(_line(piece.media_type), bytes_text(size))
    text = base64.b64encode(data).decode()
    return Markup('<img class="picture" alt="picture, {}" src="data:{};base64,{}">').format(
        bytes_text(size), kind, text
    )


def _raster(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _RASTERS if data.startswith(start)), None)


# ---------------------------------------------------------------- long things


def _fold(kind: str, lines: Sequence[Markup], first_number: int | None = None) -> Markup:
    """The first lines, and the rest behind a click."""
    if len(lines) <= FEW_LINES:
        return _pre(kind, lines, first_number)
    first, rest = lines[:FIRST_LINES], lines[FIRST_LINES:]
    more = pluralize(len(rest), "more line")
    number = None if first_number is None else first_number + FIRST_LINES
    return Markup('{}<details class="more"><summary>{}</summary>{}</details>').format(
        _pre(kind, first, first_number), more, _pre(kind, rest, number)
    )


def _pre(kind: str, lines: Sequence[Markup], first_number: int | None) -> Markup:
    text = Markup("\n").join(lines)
    if first_number is None:
        return Markup('<pre class="{}"><code>{}</code></pre>').format(kind, text)
    numbers = "\n".join(map(str, range(first_number, first_number + len(lines))))
    gutter = Markup('<pre class="numbers" aria-hidden="true">{}</pre>').format(numbers)
    return Markup('<div class="numbered">{}{}</div>').format(gutter, _pre(kind, lines, None))


def _line(text: str) -> str:
    return printable(text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}...")


def _cut(text: str) -> tuple[str, Markup]:
    """The part that is shown, and a note about the rest."""
    more = len(text) - LONGEST
    if more <= 0:
        return text, Markup()
    return text[:LONGEST], Markup('<p class="note">({} more are in the log)</p>').format(pluralize(more, "character"))


def _omission_note(lines: Sequence[object]) -> Markup:
    more = len(lines) - MOST_LINES
    return (
        Markup('<p class="note">({} more are in the log)</p>').format(pluralize(more, "line")) if more > 0 else Markup()
    )
