"""Whether the proxy feels that somebody looks: calls at 200 a second, while eight clients ask the page for its heaviest
views as fast as it answers, and while nobody does.

    python benches/hammered.py [MEGABYTES]

Rounds alternate and the best one of each counts, so that a busy machine disturbs both alike. Those who ask give way to
everybody, for what is measured is the page, not they. Everything shares the machine's cores.
"""

import contextlib
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from _claude_corpus import Corpus
from _proxy_load import Load
from _proxy_targets import Target, our_target, start_upstream

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.web.page_process import Page, showing

CLIENTS = 8
RATE = 200
SECONDS = 4
ROUNDS = 5
MESSAGES = 10_000


def views(session: str, word: str) -> list[str]:
    of_session = f"/sessions/{session}"
    return [
        *("/?days=365", "/sessions?limit=1000", f"/search?q={word}", "/why?limit=1000", "/live"),
        *(
            of_session,
            f"{of_session}/timeline",
            f"{of_session}/find?q={word}",
            f"/api/v1{of_session}/turns?limit=500",
        ),
    ]


@contextlib.contextmanager
def hammering(page: Page, paths: Sequence[str]) -> Iterator[None]:
    """For as long as it is entered. Nobody is told of it afterwards if nothing was answered."""
    process = multiprocessing.Process(target=_hammer, args=(page, page.cookie(), paths), daemon=True)
    process.start()
    time.sleep(1)
    try:
        yield
        assert process.is_alive(), "the page was not asked"
    finally:
        process.kill()
        process.join()


def _hammer(page: Page, cookie: str, paths: Sequence[str]) -> None:
    os.nice(19)

    def ask(first: int) -> None:
        for number in range(first, sys.maxsize):
            answer = page.ask(paths[number % len(paths)], cookie=cookie)
            assert answer.status == 200, answer.text[:200]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def latency_ms(target: Target) -> tuple[float, float]:
    """The median, and the 99th of a hundred."""
    answer = target.client("calls", Load(0, "/v1/messages", SECONDS, RATE))
    assert not answer.failed
    cuts = statistics.quantiles((it / 1e6 for it in answer.took_ns), n=100)
    return cuts[49], cuts[98]


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        home, corpus = Path(folder), Corpus()
        (home / ".agent-logger").symlink_to(home / "logs-home")  # the proxy's, so that the page knows of it
        session = corpus.write_long(home / ".claude", MESSAGES)
        corpus.write(home / ".claude", megabytes)
        upstream = start_upstream(stack)
        proxy = our_target(stack, home / "logs", upstream)
        assert proxy
        page = stack.enter_context(showing(home))
        paths, cookie = views(session, corpus.words(1)[0]), page.cookie()
        while page.ask(paths[0], cookie=cookie).status != 200:
            time.sleep(0.5)
        rounds: dict[str, list[tuple[float, float]]] = {"nobody looks": [], "eight look": []}
        for _ in range(ROUNDS):
            rounds["nobody looks"].append(latency_ms(proxy))
            with hammering(page, paths):
                rounds["eight look"].append(latency_ms(proxy))
        for name, told in rounds.items():
            p50, p99 = (min(it[at] for it in told) for at in (0, 1))
            print(f"{RATE} calls/s through the proxy, {name:13} p50 {p50:6.3f} ms, p99 {p99:7.3f} ms")


if __name__ == "__main__":
    main()
