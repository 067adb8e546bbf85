"""Charts as SVG, made here: they can be printed, need no script, and each comes with a table of the same numbers.

Shapes are stretched to the available space; words are beside them in HTML, where they keep their size. No colour is
named here: a class says what a shape is, and the style sheet how it looks in the light and in the dark.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil, floor, log10

from markupsafe import Markup

LEVELS = 4  # of a heat map, above nothing
CELL = 13  # with the gap
SQUARE = 11
WEEKS = 53
GRID_LINES = 4  # about, above 0
MARGIN = 22  # for the names of weekdays


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    label: str  # what it is
    value: float
    text: str  # the value, as a person reads it
    href: str | None = None
    kind: str = ""  # a class


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedColumn:
    """A column of a chart, with a value for each series."""

    label: str  # what it is, such as the day
    text: str  # the sum, as a person reads it
    href: str
    values: Sequence[float]
    texts: Sequence[str]
    tick: str = ""  # the label on the axis, for some columns

    @property
    def height(self) -> float:
        return sum(self.values)


def axis_values(highest: float) -> list[float]:
    """The values of the lines of a grid, from 0 to at least the highest; all are round numbers."""
    if highest <= 0:
        return [0.0, 1.0]
    raw = highest / GRID_LINES
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    return [number * step for number in range(ceil(highest / step - 1e-9) + 1)]


def columns(stacked: Sequence[StackedColumn], top: float, lines: int, label: str) -> Markup:
    """Columns side by side over a grid of `lines` spaces; `top` is the value of the highest line. The first series is
    at the bottom."""
    width = 10 * len(stacked)
    grid = Markup().join(
        Markup('<line class="grid" x1="0" x2="{}" y1="{y:.2f}" y2="{y:.2f}"/>').format(width, y=100 * line / lines)
        for line in range(lines + 1)
    )
    shapes = Markup().join(_column(number, column, top) for number, column in enumerate(stacked))
    return Markup(
        '<svg class="chart columns" viewBox="0 0 {} 100" preserveAspectRatio="none" role="group" aria-label="{}">'
        "{}{}</svg>"
    ).format(width, label, grid, shapes)


def _column(number: int, column: StackedColumn, top: float) -> Markup:
    shapes = Markup('<rect class="room" x="{}" y="0" width="10" height="100"/>').format(number * 10)
    floor_y = 100.0
    for series, value in enumerate(column.values, 1):
        if value > 0:
            height = 100 * value / top
            floor_y -= height
            shapes += Markup('<rect class="series-{}" x="{}" y="{:.3f}" width="7" height="{:.3f}"/>').format(
                series, number * 10 + 1.5, floor_y, height
            )
    return Markup(
        '<a href="{}" tabindex="-1" data-column="{}" aria-label="{label}: {text}"><title>{label}: {text}</title>{}</a>'
    ).format(column.href, number, shapes, label=column.label, text=column.text)


def _link(point: Point, shape: Markup) -> Markup:
    """The shape with its link, which the keyboard skips: the table has the same links, and there may be hundreds."""
    markup = Markup("<title>{}: {}</title>").format(point.label, point.text)
    if not point.href:
        return Markup("<g>{}{}</g>").format(markup, shape)
    return Markup('<a href="{}" tabindex="-1" aria-label="{}: {}">{}{}</a>').format(
        point.href, point.label, point.text, markup, shape
    )


def part(value: float, whole: float, kind: str = "") -> Markup:
    """A bar that is as long as its part of the whole."""
    length = min(100.0, 100 * value / whole) if whole > 0 else 0
    return Markup(
        '<svg class="part" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="room" width="100" height="6"/><rect class="bar {}" width="{:.2f}" height="6"/></svg>'
    ).format(kind, length)


def stack(parts: Iterable[tuple[str, float]]) -> Markup:
    """A bar of several parts with a class each."""
    visible_parts = [(kind, value) for kind, value in parts if value > 0]
    whole, at, shapes = sum(value for _, value in visible_parts) or 1, 0.0, Markup()
    for kind, value in visible_parts:
        length = 100 * value / whole
        shapes += Markup('<rect class="bar {}" x="{:.2f}" width="{:.2f}" height="6"/>').format(kind, at, length)
        at += length
    return Markup(
        '<svg class="part" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(shapes)


# ---------------------------------------------------------------- heat map


def heat_map(days: Mapping[date, Point], today: date, label: str) -> Markup:
    """A year of days, a column for each week; the last column holds today."""
    first = today - timedelta(days=(WEEKS - 1) * 7 + today.weekday())
    values = sorted(point.value for day, point in days.items() if day >= first and point.value)
    steps = [values[len(values) * step // LEVELS] for step in range(1, LEVELS)] if values else []
    shapes, months = Markup(), Markup()
    for number in range((today - first).days + 1):
        day, (week, weekday) = first + timedelta(days=number), divmod(number, 7)
        if day.day <= 7 and weekday == 0 and week < WEEKS - 1:
            months += Markup('<text x="{}" y="10">{}</text>').format(MARGIN + week * CELL, f"{day:%b}")
        shapes += _square(MARGIN + week * CELL, 16 + weekday * CELL, days.get(day), day, steps)
    return Markup('<svg class="chart heat" viewBox="0 0 {} {}" role="group" aria-label="{}">{}{}{}</svg>').format(
        MARGIN + WEEKS * CELL, 16 + 7 * CELL, label, months, _weekdays(), shapes
    )


def _weekdays() -> Markup:
    return Markup().join(
        Markup('<text x="0" y="{}">{}</text>').format(25 + CELL * weekday, name)
        for weekday, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"))
    )


def _square(x: int, y: int, point: Point | None, day: date, steps: Sequence[float]) -> Markup:
    # By rank: one day with ten times the work of any other would make all of them pale.
    level = 1 + bisect_right(steps, point.value) if point and point.value else 0
    shape = Markup('<rect class="level-{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(
        level, x, y, SQUARE, SQUARE
    )
    return _link(point or Point(label=day.isoformat(), value=0, text="nothing"), shape)


# ---------------------------------------------------------------- a line over turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A place where a line dropped, to be marked."""

    at: int
    text: str
    href: str
    kind: str = ""  # a class


def area(values: Sequence[float], falls: Sequence[Fall], label: str) -> Markup:
    """A line and the area below it, with one step per value."""
    highest, last = max(values, default=0) or 1, max(len(values) - 1, 1)
    points = " ".join(
        f"{1000 * number / last:.1f},{100 - 96 * value / highest:.2f}" for number, value in enumerate(values)
    )
    marks = Markup().join(_fall_mark(fall, 1000 * fall.at / last) for fall in falls)
    return Markup(
        '<svg class="chart area" viewBox="0 0 1000 100" preserveAspectRatio="none" role="group" aria-label="{}">'
        '<polygon points="0,100 {} 1000,100"/><polyline points="{}"/>{}</svg>'
    ).format(label, points, points, marks)


def _fall_mark(fall: Fall, x: float) -> Markup:
    return Markup(
        '<a href="{}" aria-label="{}"><title>{}</title>'
        '<line class="fall {kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="100"/></a>'
    ).format(fall.href, fall.text, fall.text, kind=fall.kind, x=x)


# ---------------------------------------------------------------- a map of a session


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark for some turns of a session."""

    kind: str  # a class
    size: float
    href: str
    text: str


def mini_map(ticks: Sequence[Tick]) -> Markup:
    """A map of a session from top to bottom; the length of a tick shows how much there is."""
    largest = max((tick.size for tick in ticks), default=0) or 1
    shapes = Markup().join(
        Markup(
            '<a href="{}" tabindex="-1" aria-label="{}"><title>{}</title>'
            '<rect class="room" y="{y}" width="40" height="4"/>'
            '<rect class="tick {kind}" y="{y}" width="{width:.1f}" height="3"/></a>'
        ).format(
            tick.href,
            tick.text,
            tick.text,
            y=4 * number,
            kind=tick.kind,
            width=6 + 34 * (tick.size / largest) ** 0.5,
        )
        for number, tick in enumerate(ticks)
    )
    return Markup(
        '<svg class="map" viewBox="0 0 40 {0}" height="{0}" preserveAspectRatio="none" role="group" '
        'aria-label="Map of the session">{1}</svg>'
    ).format(4 * max(1, len(ticks)), shapes)


# ---------------------------------------------------------------- a bar of a timeline


def span(start: float, wait: float, length: float, kind: str) -> Markup:
    """A bar of a timeline. All numbers are thousandths of its width; a bar of no duration is still visible."""
    length = max(length, 2.0)
    start = min(start, 1000 - length) if length < 1000 else 0.0
    return Markup(
        '<svg class="span" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="waits {kind}" x="{x:.1f}" y="1" width="{length:.1f}" height="10"/>'
        '<rect class="runs {kind}" x="{then:.1f}" y="1" width="{runs:.1f}" height="10"/></svg>'
    ).format(kind=kind, x=start, length=length, then=start + wait, runs=max(length - wait, 1.5))
