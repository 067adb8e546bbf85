"""How fast the page is: home, list and search over an archive, and one session of ten thousand messages.

    python benches/page.py [MEGABYTES]

Answers are timed by a client on loopback, over a catalog that is made, the median of many; first paint and long tasks
by Chromium itself. Everything runs on the same cores, the browser too.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _claude_corpus import Corpus

MESSAGES = 10_000
RUNS = 15
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
BUDGET_MS = {"home": 200, "sessions": 200, "search": 100, "first paint": 600, "longest task": 100}
PAINT = """() => ({
  answered: performance.getEntriesByType("navigation")[0].responseStart,
  painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  whole: performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd,
})"""
LONG_TASKS = """() => { window.tasks = []; new PerformanceObserver(list => {
  for (const it of list.getEntries()) window.tasks.push(it.duration); }).observe({type: "longtask"}) }"""


@contextlib.contextmanager
def page(home: Path) -> Iterator[str]:
    """Its one-time link."""
    line = [sys.executable, "-m", "agent_logger", "view", "--no-open", "--page-port", "0"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    process = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    try:
        found = re.search(r"http://\S+token=\S+", process.stderr.readline())
        assert found
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


class Client:
    def __init__(self, link: str) -> None:
        self.base, _, way_in = link.removeprefix("http://").partition("/")
        self._connection = http.client.HTTPConnection(self.base, timeout=600)
        _, headers, _ = self._ask(f"/{way_in}", {})
        self.cookie = headers["set-cookie"].partition(";")[0]

    def get(self, path: str) -> tuple[int, bytes]:
        status, _, body = self._ask(path, {"cookie": self.cookie})
        return status, body

    def _ask(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self._connection.request("GET", path, headers=headers)
        answer = self._connection.getresponse()
        return answer.status, {name.lower(): it for name, it in answer.getheaders()}, answer.read()

    def median_ms(self, path: str, runs: int = RUNS) -> float:
        times = []
        for _ in range(runs):
            began = time.perf_counter()
            status, _ = self.get(path)
            times.append(1000 * (time.perf_counter() - began))
            assert status == 200, path
        return statistics.median(times)


def ready(client: Client, words: str) -> float:
    """Seconds until everything is in the catalog, and can be searched."""
    began = time.perf_counter()
    while True:
        status, body = client.get(f"/search?q={words}&part=1")
        if status == 200 and b"can be searched so far" not in body:
            return time.perf_counter() - began
        time.sleep(0.5)


def drawn(link: str, path: str) -> dict[str, Any]:
    """By Chromium, the first time and then again, and while one scrolls."""
    from playwright.sync_api import sync_playwright

    base = re.match(r"http://[^/]+", link)
    assert base
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        tab = browser.new_page(viewport={"width": 1280, "height": 860})
        tab.goto(link)
        told = []
        for _ in range(3):
            tab.goto(base[0] + path)
            told.append(tab.evaluate(PAINT))
        tab.evaluate(LONG_TASKS)
        for _ in range(60):
            tab.mouse.wheel(0, 2500)
            tab.wait_for_timeout(50)
        tasks = tab.evaluate("window.tasks")
        nodes = tab.evaluate("document.querySelectorAll('*').length")
        browser.close()
    return {"first": told[0], "again": told[-1], "longest_task": max(tasks, default=0.0), "nodes": nodes}


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        home, corpus = Path(folder), Corpus()
        session = corpus.write_long(home / ".claude", MESSAGES)
        corpus.write(home / ".claude", megabytes)
        words = corpus.words(3)
        with page(home) as link:
            client = Client(link)
            seconds = ready(client, words[0])
            print(
                f"{corpus.truth.files} files, {corpus.truth.written_bytes / 1e6:.0f} MB, ready after {seconds:.1f} s"
            )
            results = {
                "home": client.median_ms("/"),
                "home, a year": client.median_ms("/?days=365"),
                "sessions": client.median_ms("/sessions"),
                "search": max(client.median_ms(f"/search?q={word}&part=1") for word in words),
                "why": client.median_ms("/why"),
            }
            link = _another(home)
            seen = drawn(link, f"/sessions/{session}")
        results |= {
            "first paint": seen["first"]["painted"],
            "all that is drawn at once": seen["first"]["whole"],
            "first paint, again": seen["again"]["painted"],
            "longest task": seen["longest_task"],
        }
        for name, value in results.items():
            budget = BUDGET_MS.get(name)
            print(f"{name:28} {value:8.1f} ms" + (f"   budget {budget} ms" if budget else ""))
        print(json.dumps(results))


def _another(home: Path) -> str:
    line = [sys.executable, "-m", "agent_logger", "view", "--no-open"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    said = subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stderr
    (link,) = re.findall(r"http://\S+token=\S+", said)
    return str(link)


if __name__ == "__main__":
    main()
