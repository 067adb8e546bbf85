"""How fast the page is: home, list and search over an archive, and one session of ten thousand messages.

    ./dev bench page [MEGABYTES]

Answers are timed by a client on loopback, over a catalog that is made: the median of many, and the processor time of
the page's own process; first paint and long tasks by Chromium itself. All of it runs on the same cores.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _claude_corpus import Corpus
from _figures import Figures, arguments_parser

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.web.browser import chromium, let_in
from tests.web.page_process import Page, showing

MESSAGES = 10_000
RUNS = 15
BUDGET_MS = {"home": 200, "sessions": 200, "search": 100, "first paint": 600, "longest task": 100}
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
PAINT = """() => ({
  answered: performance.getEntriesByType("navigation")[0].responseStart,
  painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  whole: performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd,
})"""
LONG_TASKS = """() => { window.tasks = []; new PerformanceObserver(list => {
  for (const it of list.getEntries()) window.tasks.push(it.duration); }).observe({type: "longtask"}) }"""


class Timed:
    """Asks the page, and looks at its process."""

    def __init__(self, page: Page) -> None:
        self._page, self._cookie = page, page.cookie()

    def get(self, path: str) -> tuple[int, bytes]:
        answer = self._page.ask(path, cookie=self._cookie)
        return answer.status, answer.body

    def ms(self, *paths: str) -> tuple[float, float]:
        """Of the slowest of these: the median, and processor time in the mean."""
        return max(self._ms(path) for path in paths)

    def _ms(self, path: str) -> tuple[float, float]:
        times, before = [], self._cpu_ms()
        for _ in range(RUNS):
            began = time.perf_counter()
            status, _ = self.get(path)
            times.append((time.perf_counter() - began) * 1000)
            assert status == 200, path
        return statistics.median(times), (self._cpu_ms() - before) / RUNS

    def _cpu_ms(self) -> float:
        fields = Path(f"/proc/{self._page.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_MS

    def ready(self, word: str) -> float:
        """Seconds until everything is read and can be searched."""
        began = time.perf_counter()
        while True:
            status, body = self.get(f"/search?q={word}&part=1")
            if status == 200 and b"so far" not in body and b"hits" in body:
                return time.perf_counter() - began
            time.sleep(0.5)


def drawn(page: Page, path: str) -> dict[str, float]:
    """By Chromium, the first time and then again, and while one scrolls."""
    with chromium() as browser, let_in(browser, page) as watched:
        told = []
        for _ in range(3):
            watched.go(path)
            told.append(watched.tab.evaluate(PAINT))
        watched.tab.evaluate(LONG_TASKS)
        browser.start_tracing(page=watched.tab, categories=["devtools.timeline", "toplevel"])
        for _ in range(60):
            watched.tab.mouse.wheel(0, 2500)
            watched.tab.wait_for_timeout(50)
        trace = json.loads(browser.stop_tracing())["traceEvents"]
        tasks = watched.tab.evaluate("window.tasks")
    return {
        "first paint": told[0]["painted"],
        "all that is drawn at once": told[0]["whole"],
        "first paint, again": told[-1]["painted"],
        "longest task": max(tasks, default=0.0),
        "longest task, processor": _longest_ms(trace),
    }


def _longest_ms(trace: list[dict[str, Any]]) -> float:
    """Of the tasks of pages, by the time that the processor worked on them: a busy machine adds nothing to that."""
    named = [it for it in trace if it["name"] == "thread_name" and it["args"]["name"] == "CrRendererMain"]
    threads = {(it["pid"], it["tid"]) for it in named}
    tasks = (it for it in trace if it["name"].endswith("RunTask") and (it["pid"], it["tid"]) in threads)
    return max((it.get("tdur", 0) / 1000 for it in tasks), default=0.0)


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, corpus = Path(folder), Corpus()
        session = corpus.write_long(home / ".claude", MESSAGES)
        corpus.write(home / ".claude", arguments.megabytes)
        words = corpus.words(3)
        with showing(home) as page:
            timed = Timed(page)
            seconds = timed.ready(words[0])
            made = corpus.truth
            print(f"{made.files} files, {made.written_bytes / 1e6:.0f} MB, ready after {seconds:.1f} s")
            answers = {
                "home": timed.ms("/"),
                "home, a year": timed.ms("/?days=365"),
                "sessions": timed.ms("/sessions"),
                "search": timed.ms(*(f"/search?q={word}&part=1" for word in words)),
                "search, a beginning": timed.ms(*(f"/search?q={word[:3]}&part=1" for word in words)),
                "why": timed.ms("/why"),
            }
            drawings = drawn(page, f"/sessions/{session}")
    figures = Figures("page")
    for name, (median, cpu) in answers.items():
        print(f"{name:28} {median:8.1f} ms, {cpu:6.1f} ms of the processor")
        figures.add(f"answer: {name}", median, "ms", at_most=BUDGET_MS.get(name))
    for name, value in drawings.items():
        figures.add(f"in Chromium: {name}", value, "ms", at_most=BUDGET_MS.get(name))
    return figures.finish(write=arguments.write)


if __name__ == "__main__":
    sys.exit(main())
