"""The pieces of a view, for all drawers: terminal, Markdown, HTML. A piece says what a thing is, never how it looks.

Everything in a piece comes from an agent's files: the drawer must escape it.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

Sign = Literal[" ", "+", "-", "@"]  # @: where a hunk begins
Progress = Literal["open", "doing", "done"]


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown, as models and people write it."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Program text. `language` is a name or a suffix: `python`, `py`; `None` if it is unknown."""

    text: str
    language: str | None = None
    first_line: int | None = None  # its number in the file, where it is known


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: Sign
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    path: str | None
    lines: tuple[DiffLine, ...]
    note: str = ""  # what happens to the file as a whole: added, deleted, moved

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign == "-" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A command and its output, which may contain terminal colours."""

    command: str
    output: str | None = None  # none: nothing is known of it
    exit: int | None = None


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """The result of a tool about which nothing more is known; may contain terminal colours."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class MatchLine:
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    matches: tuple[MatchLine, ...]


@dataclass(frozen=True, slots=True)
class FileList:
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    text: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class Checklist:
    items: tuple[ChecklistItem, ...]


@dataclass(frozen=True, slots=True)
class Link:
    url: str


@dataclass(frozen=True, slots=True)
class Json:
    value: Any


@dataclass(frozen=True, slots=True)
class Picture:
    """An image. `data` is base64, as received: the drawer checks the bytes before it believes the type."""

    media_type: str
    data: str


Piece = Prose | Code | Diff | Terminal | OutputPiece | Matches | FileList | Checklist | Link | Json | Picture


@dataclass(frozen=True, slots=True)
class ToolView:
    """A tool call for a reader: one line, and the pieces behind it."""

    tool: str  # its name
    summary: str  # one line, which a view may cut
    pieces: tuple[Piece, ...]
    is_error: bool = False
    is_answered: bool = True  # no: it was killed, or is still running


def json_text(value: Any) -> str:
    """The value as indented JSON. A value that JSON cannot represent is shown as Python does."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
