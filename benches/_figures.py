"""What a benchmark measured, beside its budgets: printed, and kept in docs/performance.md with `--write`."""

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
FIGURES_VARIABLE = "AGENT_LOGGER_BENCH_FIGURES"  # names a file for the figures, as JSON: `all` reads them there


@dataclass(frozen=True)
class Figure:
    """A measured value. Its budget is its most, or its least; a figure without one is only shown."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_within_budget(self) -> bool:
        too_much = self.at_most is not None and not self.value <= self.at_most  # a NaN is within no budget
        return not too_much and (self.at_least is None or self.value >= self.at_least)

    @property
    def measured(self) -> str:
        return f"{_number(self.value)}{self.unit if self.unit == 'x' else f' {self.unit}'}"

    @property
    def budget(self) -> str:
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return "" if self.at_least is None else f"at least {self.at_least:g}"


def row(figure: Figure, width: int) -> str:
    verdict = "" if not figure.budget else "ok" if figure.is_within_budget else "OVER"
    return f"{figure.name:{width}}  {figure.measured:>12}  {figure.budget:14} {verdict}".rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass
class Figures:
    """The figures of one run of a benchmark, which is named as its file."""

    bench: str
    figures: list[Figure] = field(default_factory=list)

    def add(
        self, name: str, value: float, unit: str, *, at_most: float | None = None, at_least: float | None = None
    ) -> None:
        self.figures.append(Figure(name, value, unit, at_most, at_least))

    def finish(self, *, write: bool) -> int:
        """Print the figures, keep them in the docs if asked, and return the exit code: 1 if a budget is exceeded."""
        width = max(len(figure.name) for figure in self.figures)
        for figure in self.figures:
            print(row(figure, width))
        over = [figure.name for figure in self.figures if not figure.is_within_budget]
        print(f"OVER BUDGET: {'; '.join(over)}" if over else "within all budgets")
        if write:
            PAGE.write_text(with_section(PAGE.read_text("utf-8"), self.bench, self.section()), "utf-8")
            print(f"written to {os.path.relpath(PAGE)}")
        if file := os.environ.get(FIGURES_VARIABLE):
            Path(file).write_text(json.dumps([asdict(figure) for figure in self.figures]), "utf-8")
        return 1 if over else 0

    def section(self) -> str:
        rows = [
            f"| {figure.name} | {figure.measured} | {figure.budget}{'' if figure.is_within_budget else ', missed'} |"
            for figure in self.figures
        ]
        day = time.strftime("%Y-%m-%d", time.gmtime())
        command = f"`./dev bench {' '.join([self.bench, *(word for word in sys.argv[1:] if word != '--write')])}`"
        return "\n".join([f"{command}, {day}, {machine()}.", "", "| | measured | budget |", "|---|---|---|", *rows])


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[1]
    return f"Python {platform.python_version()}, {cores} cores, a load of {load:.1f} in the last five minutes"


def with_section(page: str, bench: str, section: str) -> str:
    """Return the page with this section between the two comments that name the benchmark."""
    begin, end = f"<!-- figures of {bench} -->", f"<!-- end of {bench} -->"
    before, opened, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (opened and closed):
        raise SystemExit(f"{PAGE.name} has no place for the figures of {bench}: {begin} and {end}")
    return f"{before}{begin}\n{section}\n{end}{after}"


def arguments_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that all benchmarks with budgets have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the figures in docs/performance.md")
    return parser
