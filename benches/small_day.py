"""A heavy day in twenty minutes: does the memory of relay, recorder and page stay flat, and is nothing lost?

    ./dev bench small_day                20 minutes
    ./dev bench small_day --minutes 5

A heavy user makes 10,000 calls of 480 KB a day; here they come 60 times as fast, from four agents at once, each a
conversation that grows from 90 to 900 KB and is followed by the next. The answers are streamed. Meanwhile the page is
open over the same home and asked for its views every few seconds. Memory is sampled all the time; what counts is the
last quarter of the time beside the second one. Exit code 1 when a budget is exceeded, or a call is not in the log.
"""

import contextlib
import http.client
import itertools
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

from _agent_load import Conversation
from _figures import Figures, arguments_parser
from _proxy_load import HOST
from _proxy_targets import Log, memory_bytes, start_ours, start_upstream

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.web.page_process import Page, showing

from agent_logger.journal.seal import seal_due
from agent_logger.proxy.status import proxy_reports

AGENTS, EVENTS = 4, 200
CALLS_A_DAY, TIMES_AS_FAST = 10_000, 60
SECONDS_BETWEEN = AGENTS * 86_400 / CALLS_A_DAY / TIMES_AS_FAST  # two calls of one agent
FIRST_BYTES, MOST_BYTES = 30_000, 840_000  # of a history; the tools of a request are 60 KB more
VIEWS = "/", "/sessions", "/why", "/search?q=tion&part=1"
SAMPLE_SECONDS = 5
SEAL_SECONDS = 60  # in which a full part is sealed
MB = 1e6


class Agent(threading.Thread):
    """Makes a call at each tick; what a busy machine delays is made up for."""

    def __init__(self, number: int, port: int, prefix: str, until: float) -> None:
        super().__init__()
        self.number, self.port, self.until = number, port, until
        self.path = f"{prefix}/v1/messages?events={EVENTS}&ms=0"
        self.calls = self.failed = self.sent_bytes = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        due = time.monotonic() + self.number * SECONDS_BETWEEN / AGENTS
        for count in itertools.count():
            talk = Conversation(f"day-{self.number}-{count}", EVENTS, FIRST_BYTES)
            while talk.history_bytes < MOST_BYTES:
                time.sleep(max(0, due - time.monotonic()))
                due += SECONDS_BETWEEN
                if time.monotonic() >= self.until:
                    return
                self._call(connection, talk)

    def _call(self, connection: http.client.HTTPConnection, talk: Conversation) -> None:
        body = talk.next_body()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer sk-ant-oat01-of-a-bench-{self.number}-0123456789abcdef0123456789",
            "User-Agent": "claude-cli/2.1.325 (external, cli)",
            "X-Claude-Code-Session-Id": talk.session,
            "anthropic-version": "2023-06-01",
        }
        self.calls += 1
        self.sent_bytes += len(body)
        try:
            connection.request("POST", self.path, body, headers)
            with connection.getresponse() as response:
                self.failed += response.status != 200 or not response.read().endswith(b"\n\n")
        except (OSError, http.client.HTTPException):
            self.failed += 1
            connection.close()


def look(page: Page, until: float, late: list[str]) -> None:
    """Ask the page for its views, as somebody who works beside it does. `late` gets those that it did not answer in
    time: it goes on without them."""
    cookie = page.cookie()
    for view in itertools.cycle(VIEWS):
        if time.monotonic() >= until:
            return
        try:
            assert page.ask(view, cookie=cookie).status == 200, view
        except TimeoutError:
            late.append(view)
        time.sleep(3)


def pids_of(home: Path) -> dict[str, int]:
    while True:
        for report in proxy_reports(home):
            if report.recorder_pid and report.relay_pids:
                return {"relay": report.relay_pids[0], "recorder": report.recorder_pid}
        time.sleep(0.2)


def sample(pids: dict[str, int], until: float) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = defaultdict(list)
    while time.monotonic() < until:
        for name, pid in pids.items():
            samples[name].append(memory_bytes([pid]) / MB)
        time.sleep(SAMPLE_SECONDS)
    return samples


def size(folder: Path, pattern: str = "*") -> int:
    total = 0
    for path in folder.rglob(pattern):
        with contextlib.suppress(FileNotFoundError):  # sealed meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def run(home: Path, minutes: float, figures: Figures) -> None:
    own = home / ".agent-logger"
    logs = own / "logs"
    with contextlib.ExitStack() as stack:
        upstream = start_upstream(stack)
        port, _ = start_ours(stack, logs, f"http://{HOST}:{upstream.port}", own)
        log = stack.enter_context(Log(logs))
        page = stack.enter_context(showing(home))
        pids = pids_of(own) | {"page": page.process.pid}
        until = time.monotonic() + minutes * 60
        agents = [Agent(number, port, f"/anthropic/{HOST}:{upstream.port}", until) for number in range(AGENTS)]
        late_views: list[str] = []
        watcher = threading.Thread(target=look, args=(page, until, late_views))
        for thread in (*agents, watcher):
            thread.start()
        samples = sample(pids, until)
        for thread in (*agents, watcher):
            thread.join()
        calls = sum(agent.calls for agent in agents)
        drained = log.wait(calls, 60)
        time.sleep(SEAL_SECONDS + SAMPLE_SECONDS)
        lost = abs(calls - log.calls)
    for name, values in samples.items():
        quarter = len(values) // 4
        early, late = statistics.median(values[quarter : 2 * quarter]), statistics.median(values[-quarter:])
        print(
            f"{name:9} {values[0]:5.0f} MB at first, {early:5.0f} MB, {late:5.0f} MB in the end, most {max(values):.0f}"
        )
        figures.add(f"memory of the {name}, in the last quarter", late, "MB")
        figures.add(f"memory of the {name}, last quarter of the second", late / early, "x", at_most=1.15)
    sent = sum(agent.sent_bytes for agent in agents)
    print(f"{calls:,} calls of {sent / calls / 1000:.0f} KB, all in the log {drained:.1f} s after the last one")
    print(f"views that the page did not answer in time: {', '.join(late_views) or 'none'}")
    figures.add("calls that failed", sum(agent.failed for agent in agents), f"of {calls:,}", at_most=0)
    figures.add("calls that are not in the log", lost, f"of {calls:,}", at_most=0)
    plain = size(logs, "*.jsonl")
    figures.add("logs a minute after, of the bytes that passed", (size(logs) / sent) * 100, "%")
    figures.add("of that, parts not sealed yet", plain / MB, "MB")
    for folder in {path.parent for path in logs.rglob("*.jsonl")}:
        list(seal_due(folder, 0))
    figures.add("a day of 10,000 calls, all sealed", size(logs) / calls * CALLS_A_DAY / MB, "MB", at_most=150)


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agent-logger-small-day-", dir=arguments.folder))
    figures = Figures("small_day")
    try:
        run(folder, arguments.minutes, figures)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures.finish(write=arguments.write)


if __name__ == "__main__":
    sys.exit(main())
