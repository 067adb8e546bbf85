"""docs/performance.md holds what the benchmarks measured, and each of them replaces its own table alone."""

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
