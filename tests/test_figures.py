"""docs/performance.md holds what the benchmarks measured, and each of them replaces its own table alone."""

import importlib
import re
from pathlib import Path

import pytest

import _figures
from _figures import Figures

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "performance.md").read_text("utf-8")
BENCHES = [path.stem for path in (ROOT / "benches").glob("*.py") if "Figures(" in path.read_text("utf-8")]


def test_every_benchmark_with_budgets_has_a_place() -> None:
    places = re.findall(r"<!-- figures of (\w+) -->\n", PAGE)
    assert sorted(places) == sorted(set(BENCHES) - {"_figures"})
    assert places == re.findall(r"<!-- end of (\w+) -->\n", PAGE)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = tmp_path / "performance.md"
    page.write_text(PAGE, "utf-8")
    monkeypatch.setattr(_figures, "PAGE", page)
    return page


def test_figures_replace_their_own_table_only(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures("startup")
    figures.add("`--help`", 51.23, "ms", at_most=100)
    figures.add("calls", 12_345.6, "calls/s", at_least=10_000)
    assert figures.finish(write=True) == 0
    assert "within all budgets" in capsys.readouterr().out
    text = page.read_text("utf-8")
    assert "| `--help` | 51.2 ms | at most 100 |" in text
    assert "| calls | 12,346 calls/s | at least 10000 |" in text
    begin, end = "<!-- figures of startup -->", "<!-- end of startup -->"
    for part in (slice(None, text.index(begin)), slice(text.index(end) - len(text), None)):
        assert text[part] in PAGE
    assert Figures("startup", figures.figures).finish(write=True) == 0
    assert page.read_text("utf-8") == text, "twice is as once"


@pytest.mark.parametrize("value", [1.71, float("nan")])
def test_a_missed_budget_is_printed_and_written(page: Path, capsys: pytest.CaptureFixture[str], value: float) -> None:
    figures = Figures("agent")
    figures.add("relay", value, "x", at_most=1.7)
    assert figures.finish(write=True) == 1
    assert "OVER BUDGET: relay" in capsys.readouterr().out
    assert "at most 1.7, missed |" in page.read_text("utf-8")


def test_a_benchmark_without_a_place_says_so(page: Path) -> None:
    figures = Figures("nothing")
    figures.add("relay", 1.0, "x")
    with pytest.raises(SystemExit, match="has no place for the figures of nothing"):
        figures.finish(write=True)


BENCH = """
import sys, time
from _figures import Figures
figures = Figures("NAME")
figures.add("CPU of a call", 3.0, "ms", at_most=MOST)
try:
    time.sleep(SECONDS)
except KeyboardInterrupt:
    open(__file__ + ".ended", "w").close()
    raise
sys.exit(figures.finish(write=False))
"""


def test_all_shows_every_figure_and_interrupts_what_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = importlib.import_module("all")
    for name, most, seconds in (("cheap", "4", "0"), ("dear", "2", "0"), ("slow", "4", "60")):
        text = BENCH.replace("NAME", name).replace("MOST", most).replace("SECONDS", seconds)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(every, "FOLDER", tmp_path)
    monkeypatch.setattr(every, "MOST_SECONDS", 3.0)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "benches"))
    runs = [every.measure(bench, write=False) for bench in ("cheap", "dear", "slow")]
    assert not every.show(runs)
    shown = capsys.readouterr().out
    assert re.search(r"cheap, \d s\n  CPU of a call +3 ms  at most 4 +ok\n", shown)
    assert re.search(r"dear, \d s\n  CPU of a call +3 ms  at most 2 +OVER\n", shown)
    assert "OVER BUDGET\n  dear: CPU of a call\nFAILED\n  slow: interrupted after 3 s\n" in shown
    assert (tmp_path / "slow.py.ended").exists()


def test_all_leaves_out_the_long_benchmark_alone() -> None:
    every = importlib.import_module("all")
    assert sorted({*every.benches(), "small_day"}) == sorted(set(BENCHES) - {"_figures"})
