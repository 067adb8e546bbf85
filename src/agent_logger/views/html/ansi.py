"""Terminal output as HTML: colours become classes, and all other control sequences are dropped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from agent_logger.views.printable import printable

# Colours; then what moves the cursor, clears, names the window or makes links, which is dropped. What is left of an
# escape that is none of these is shown.
_ESCAPES = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]{0,64})m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)|\x1b[()][0-2A-Z]"
)
_SWITCHES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}


@dataclass(frozen=True, slots=True)
class Look:
    """How a run of text looks. `ground` and `ink` are numbers of the sixteen colours."""

    ink: int | None = None
    ground: int | None = None
    switches: frozenset[str] = frozenset()

    @property
    def classes(self) -> str:
        names = [f"ansi-{name}" for name in sorted(self.switches)]
        names += [] if self.ink is None else [f"ansi-ink-{self.ink}"]
        names += [] if self.ground is None else [f"ansi-ground-{self.ground}"]
        return " ".join(names)


def output_lines(text: str) -> list[Markup]:
    """The lines as HTML, each complete in itself; the colours of one line continue in the next."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    lines: list[list[Markup]] = [[]]
    for look, run in _runs(text):
        first, *rest = (_span(look, piece) for piece in run.split("\n"))
        lines[-1].append(first)
        lines += ([piece] for piece in rest)
    return [Markup("").join(line) for line in lines]


def _runs(text: str) -> Iterator[tuple[Look, str]]:
    look, end = Look(), 0
    for escape_ in _ESCAPES.finditer(text):
        yield look, text[end : escape_.start()]
        end = escape_.end()
        if (codes := escape_["sgr"]) is not None:
            look = apply_codes(look, codes)
    yield look, text[end:]


def _span(look: Look, text: str) -> Markup:
    markup = escape(printable(text, lines=True))
    return Markup('<span class="{}">{}</span>').format(look.classes, markup) if markup and look.classes else markup


def apply_codes(look: Look, codes: str) -> Look:
    numbers = iter([int(part) if part else 0 for part in re.split("[;:]", codes)[:32]])
    for code in numbers:
        look = _apply_code(look, code, numbers)
    return look


def _apply_code(look: Look, code: int, rest: Iterator[int]) -> Look:
    if code == 0:
        return Look()
    if code in _SWITCHES:
        return replace(look, switches=look.switches | {_SWITCHES[code]})
    if code in _OFF:
        return replace(look, switches=look.switches - set(_OFF[code]))
    if code in (38, 48):
        colour = _extended_colour(rest)
        return replace(look, ink=colour) if code == 38 else replace(look, ground=colour)
    if code in (39, 49):
        return replace(look, ink=None) if code == 39 else replace(look, ground=None)
    tens, colour = divmod(code, 10)
    if colour <= 7 and tens in (3, 9):
        return replace(look, ink=colour + 8 * (tens == 9))
    if colour <= 7 and tens in (4, 10):
        return replace(look, ground=colour + 8 * (tens == 10))
    return look


# The sixteen, as xterm has them.
_PALETTE = [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205)]
_PALETTE += [(229, 229, 229), (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255)]
_PALETTE += [(255, 0, 255), (0, 255, 255), (255, 255, 255)]


def _extended_colour(rest: Iterator[int]) -> int | None:
    """The nearest of the sixteen colours to one of 256 or of 16 million: the text must not contain a style."""
    match next(rest, None):
        case 5:
            return _nearest_of_256(next(rest, 0))
        case 2:
            return _nearest(next(rest, 0), next(rest, 0), next(rest, 0))
        case _:
            return None


def _nearest_of_256(number: int) -> int:
    if number < 16:
        return number
    if number < 232:
        levels = [0, 95, 135, 175, 215, 255]
        cube = number - 16
        return _nearest(levels[cube // 36], levels[cube // 6 % 6], levels[cube % 6])
    grey = 8 + 10 * (min(number, 255) - 232)
    return _nearest(grey, grey, grey)


def _nearest(*colour: int) -> int:
    def distance(number: int) -> int:
        return sum((a - b) ** 2 for a, b in zip(colour, _PALETTE[number], strict=True))

    return min(range(16), key=distance)
