"""The Markdown that aider writes, as what was said.

aider ends the lines of a prompt (`#### `), and of a message of its own (`> `), with two blanks. An answer is as the
model wrote it, between empty lines, and may have headings and quotations of its own. What begins after an empty line
behind a prompt, or behind a message of aider, is an answer. A message may have several lines: the last one ends with
the blanks.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

Kind = Literal["start", "prompt", "notice", "answer"]

START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_HEADING = "# aider chat started at "
_PROMPT, _NOTICE, _END = "#### ", "> ", "  "
_BEGINNINGS = (_HEADING, _PROMPT, _NOTICE)
_CONFIRMED = re.compile(r".*\(Y\)es/\(N\)o.*\]: ?\w*")  # what aider answers itself looks like a prompt


class Passage(NamedTuple):
    """What the user, the model or aider said; of a start, its time."""

    kind: Kind
    text: str


def passages(lines: Iterable[str]) -> Iterator[Passage]:
    """Split a history into passages. The lines have no newlines."""
    reading = _Reading()
    for line in lines:
        if not reading.goes_on(line):
            yield from reading.take(line)
    yield from reading.flushed()


class _Reading:
    def __init__(self) -> None:
        self._kind: Kind = "start"  # of the passage that is read, or was read last
        self._lines: list[str] = []
        self._is_after_blank = True

    def goes_on(self, line: str) -> bool:
        """Take one more line of an answer, which most lines are, if nothing else can begin with it."""
        if self._kind != "answer" or not self._lines or line.startswith(_BEGINNINGS):
            return False
        self._lines.append(line)
        self._is_after_blank = not line
        return True

    def take(self, line: str) -> Iterator[Passage]:
        kind = self._kind_of(line)
        if kind is None:  # an empty line, or one more of the same passage
            if self._lines:
                self._lines.append(line)
            if (self._kind == "prompt" and not line) or (self._kind == "notice" and line.endswith(_END)):
                yield from self.flushed()
        else:
            if self._lines and (kind != self._kind or kind != "prompt"):
                yield from self.flushed()
            self._kind = kind
            self._lines.append(line)
            if kind == "start" or (kind == "notice" and line.endswith(_END)):
                yield from self.flushed()
        self._is_after_blank = not line

    def _kind_of(self, line: str) -> Kind | None:
        """Return the kind of the passage that a line begins, or, of a line of a prompt, continues."""
        if line.startswith(_HEADING) and START.fullmatch(line):
            return "start"
        is_open = bool(self._lines)
        is_ended = line.endswith(_END)
        if is_open and self._kind == "notice":
            return None  # the rest of a message of several lines
        if line.startswith(_PROMPT) and is_ended and (self._is_after_blank or self._kind == "prompt"):
            return "prompt"
        if not line:
            return None
        if is_open and self._kind == "answer":
            return "notice" if self._is_after_blank and is_ended and line.startswith(_NOTICE) else None
        if self._is_after_blank and self._kind in ("prompt", "notice"):
            return "answer"
        return "notice" if line.startswith(_NOTICE) else "answer"

    def flushed(self) -> Iterator[Passage]:
        """Yield the passage that was read, if there is one."""
        lines, self._lines = self._lines, []
        match self._kind:
            case "start" if lines:
                yield Passage("start", START.sub(r"\1", lines[0]))
            case "prompt" if lines:
                text = "\n".join(line.removeprefix(_PROMPT).removesuffix(_END) for line in lines).rstrip("\n")
                if not _CONFIRMED.fullmatch(text):
                    yield Passage("prompt", text)
            case "notice" if lines:
                yield Passage("notice", "\n".join(lines).removeprefix(_NOTICE).rstrip())
            case "answer" if text := "\n".join(lines).strip("\n"):
                yield Passage("answer", text)
