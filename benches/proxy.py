"""The proxy beside its peers, in one run: nobody (direct), nginx, a bare relay, mitmdump writing flows, ours recording
everything.

    ./dev bench proxy            four minutes
    ./dev bench proxy --quick    one

Load: `wrk -t1 -c32` with JSON bodies of 2 KB both ways; nginx with one worker, `proxy_buffering off`, upstream
keep-alive and no access log; an upstream that does nothing. The bare relay is what Python takes at least: it reads
nothing of what passes, checks nothing, hides nothing, and appends it to one file. All of it shares the machine's
cores, as at work. Rounds of the targets are interleaved and the best one counts, so that a busy machine disturbs all
of them alike.
Behind the table stand the budgets of the design. Exit code 1 when one is exceeded or the log lacks a call. On a busy
machine the recorder may need so long to catch up that the bench ends early: then it says so, shows what it measured by
then, and keeps nothing.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Self
from urllib.request import ProxyHandler, build_opener

from _figures import Figures, arguments_parser
from _proxy_load import Answer, Load, small_body
from _proxy_targets import (
    LOAD,
    Log,
    Target,
    calls_in,
    cpu_seconds,
    memory_bytes,
    our_target,
    start_bare,
    start_mitmdump,
    start_nginx,
    start_upstream,
    started,
)

CONNECTIONS = 32
LATENCY_RATE = 200
HISTORY_RATE = 50
UNTRACKED_NAME, TRACKED_NAME = "ours, recording, not tracked", "ours, recording, tracked"
AGENT_NAME = "ours, recording, tracked, heads of an agent"
FETCH = build_opener(ProxyHandler({})).open


@dataclass(frozen=True)
class Plan:
    """How long each part takes."""

    rounds: int  # of the heavy loads
    repeats: int  # of the light ones
    seconds: int  # of one load
    history_seconds: int
    idle_streams: int
    stream_events: int  # of each of CONNECTIONS streams
    catch_up_seconds: int  # what the recorder is given, at most
    bound_seconds: int


FULL = Plan(2, 3, 4, 10, 5000, 3000, 25, 330)
QUICK = Plan(1, 1, 2, 3, 1000, 1000, 10, 90)


@dataclass
class Run:
    """One load: what `wrk` said, and what it cost."""

    rate: float
    p50_ms: float
    p99_ms: float
    calls: int
    failed: int
    seconds: float


# Measures


def quantile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("nan")


UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


# Each call another one of 32 sessions, so that every one of them is tracked; without, none of any session.
TRACKED = """
local number = 0
request = function()
  number = number + 1
  wrk.headers['X-Claude-Code-Session-Id'] = 'bench-' .. number % 32
  return wrk.format(nil, nil, nil, '{"model":"m","messages":[{"role":"user","content":"' .. number .. ' TEXT"}]}')
end
"""


# The same with heads as long as those of Claude Code, of which some lines and the length differ each time.
AGENT = "".join(
    f"wrk.headers['{name}'] = '{value}'\n"
    for name, value in {
        "Accept": "application/json",
        "Authorization": "Bearer sk-ant-oat01-of-a-bench-0123456789abcdef0123456789",
        "User-Agent": "claude-cli/2.1.325 (external, cli)",
        "Connection": "keep-alive",
        "anthropic-beta": "oauth-2025-04-20,interleaved-thinking-2025-05-14",
        "anthropic-dangerous-direct-browser-access": "true",
        "anthropic-version": "2023-06-01",
        "x-app": "cli",
        **{f"X-Stainless-{name}": "some" for name in ("Arch", "Lang", "OS", "Package-Version", "Runtime")},
        "X-Stainless-Retry-Count": "0",
        "X-Stainless-Timeout": "600",
    }.items()
) + TRACKED.replace(
    "  return", "  wrk.headers['x-client-request-id'] = string.format('%032x', number)\n  return"
).replace("TEXT", "' .. string.sub('TEXT', number % 100) .. '")
SCRIPTS = {UNTRACKED_NAME: "", TRACKED_NAME: TRACKED, AGENT_NAME: AGENT}


def wrk(target: Target, folder: Path, seconds: int, how: str = UNTRACKED_NAME) -> Run:
    script = folder / "post.lua"
    body = small_body("user").decode()
    lines = "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\n"
    text = json.loads(body)["content"]
    script.write_text(lines + (SCRIPTS[how].replace("TEXT", text) or f"wrk.body = [==[{body}]==]\n"))
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(script)]
    began = time.monotonic()
    done = subprocess.run(
        [*command, target.url("/v1/messages")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=seconds + 30,
    )
    took = time.monotonic() - began
    percent = {name: float(value) * UNITS[unit] for name, value, unit in _PERCENT.findall(done.stdout)}
    failed = sum(int(number) for number in _FAILED.findall(done.stdout))
    calls = re.search(r"(\d+) requests in", done.stdout)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    assert calls and rate, done.stdout
    return Run(float(rate[1]), percent["50"], percent["99"], int(calls[1]), failed, took)


_PERCENT = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m)", re.MULTILINE)
_FAILED = re.compile(r"(?:Non-2xx or 3xx responses:|read|write|timeout|connect) (\d+)")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Probe:
    """Marked calls beside a load, 20 a second: what they have to wait for is what all have to wait for."""

    def __init__(self, target: Target, seconds: int, first: int) -> None:
        self.answer = Answer([], {})
        load = Load(0, "/v1/messages", seconds=seconds, rate=20, first=first)
        self._thread = threading.Thread(target=self._run, args=(target, load))

    def _run(self, target: Target, load: Load) -> None:
        self.answer = target.client("calls", load)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


# The table


def show(name: str, *values: str) -> None:
    print(f"{name:54}" + "".join(f"{value:>14}" for value in values), flush=True)


class Bench:
    def __init__(self, folder: Path, plan: Plan, stack: contextlib.ExitStack) -> None:
        self.folder, self.plan, self.figures = folder, plan, Figures("proxy")
        self.number = 1  # of the next marked call
        self.upstream = start_upstream(stack)
        self.nginx = start_nginx(stack, folder, self.upstream)
        self.bare = start_bare(stack, folder, self.upstream)
        self.mitmdump = start_mitmdump(stack, folder, self.upstream)
        self.ours = our_target(stack, folder / "log", self.upstream)
        self.log = stack.enter_context(Log(folder / "log", marks=True))
        self.sent_elsewhere = 0  # calls that the upstream got from others than us

    def run(self) -> None:
        self.small_calls()
        self.latency()
        self.streams()
        self.history()
        self.count()
        self.idle()

    # What the upstream has seen of us, and so the log must hold

    def received(self) -> int:
        with FETCH(self.upstream.url("/count"), timeout=10) as answer:
            return int(answer.read())

    def ours_received(self) -> int:
        return self.received() - self.sent_elsewhere

    def catch_up(self) -> float:
        """Seconds until the log held all that the upstream got from us."""
        return self.log.wait(self.ours_received(), self.plan.catch_up_seconds)

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        before = self.received()
        try:
            yield
        finally:
            time.sleep(0.5)  # what others still had in hand when the load ended is theirs, too
            self.sent_elsewhere += self.received() - before

    def marks(self, count: int) -> int:
        first, self.number = self.number, self.number + count
        return first

    def small_calls(self) -> None:
        runs: dict[str, list[Run]] = {}
        cpu: dict[str, float] = {}
        sustained: dict[str, float] = {}
        lags: list[float] = []
        caught_up: list[float] = []
        for number in range(self.plan.rounds):
            for target in (self.upstream, self.nginx, self.bare, self.mitmdump if number == 0 else None):
                if target:
                    before = {part: cpu_seconds(pid) for part, pid in target.pids.items()}
                    with self.elsewhere():
                        run = wrk(target, self.folder, self.plan.seconds)
                    runs.setdefault(target.name, []).append(run)
                    cpu |= cost(target, before, run.calls)
            if self.ours:
                if recorder := self.ours.pids.get("recorder"):
                    with stopped(recorder):
                        runs.setdefault("ours, recorder stopped", []).append(
                            wrk(self.ours, self.folder, self.plan.seconds)
                        )
                    self.catch_up()
                for name in SCRIPTS:
                    before = {part: cpu_seconds(pid) for part, pid in self.ours.pids.items()}
                    calls = self.ours_received()
                    with Probe(self.ours, self.plan.seconds, self.marks(1000)) as probe:
                        run = wrk(self.ours, self.folder, self.plan.seconds, name)
                    behind = self.catch_up()
                    runs.setdefault(name, []).append(run)
                    calls = self.ours_received() - calls
                    used = cost(self.ours, before, calls)
                    aside = name.removeprefix("ours, recording, ")
                    cpu |= {f"{part} ({aside})": it for part, it in used.items()}
                    sustained[name] = max(sustained.get(name, 0.0), calls / (run.seconds + behind))
                    if name == TRACKED_NAME:
                        lags.append(self.log.lags_ms(probe.answer)[-1])
                        caught_up.append(behind)
        self.show_small_calls(runs, cpu)
        self.judge_small_calls(runs, sustained, min(lags, default=0), min(caught_up, default=0))

    def show_small_calls(self, runs: dict[str, list[Run]], cpu: dict[str, float]) -> None:
        nginx = best(runs, "nginx")
        show("2 KB JSON, 32 connections", "requests/s", "of nginx", "p50", "p99", "failed")
        for name in runs:
            run = best(runs, name)
            ratio = f"{run.rate / nginx.rate:.2f}x" if nginx.rate else "-"
            times = f"{run.p50_ms:.2f} ms", f"{run.p99_ms:.2f} ms"
            show(name, f"{run.rate:,.0f}", ratio, *times, str(run.failed))
        parts = ", ".join(f"{part} {seconds:.3f}" for part, seconds in cpu.items())
        print(f"CPU seconds per 1,000 calls: {parts}\n")

    def judge_small_calls(
        self, runs: dict[str, list[Run]], sustained: dict[str, float], lag_ms: float, behind: float
    ) -> None:
        if not self.ours:
            return
        nginx, mitmdump = best(runs, "nginx").rate, best(runs, "mitmdump, writing flows").rate
        alone = best(runs, "ours, recorder stopped")
        if nginx and alone.rate:
            ratio = alone.rate / nginx
            self.figures.add("2 KB calls a second, recorder stopped, of nginx's", ratio, "x", at_least=0.4)
        bare = best(runs, self.bare.name).rate
        self.figures.add("the same, of a bare relay in Python", alone.rate / bare, "x")
        for how in (UNTRACKED_NAME, TRACKED_NAME):
            rate, what = sustained[how], "tracked" if how == TRACKED_NAME else "not tracked"
            name = f"2 KB calls a second, recorded to the last one, {what}"
            self.figures.add(name, rate, "calls/s")
            if nginx:
                self.figures.add(f"{name}, of nginx's", rate / nginx, "x", at_least=0.2)
            if mitmdump:
                self.figures.add(f"{name}, of mitmdump's that writes flows", rate / mitmdump, "x", at_least=15)
            self.figures.add(f"p99 of such a call, {what}", best(runs, how).p99_ms, "ms", at_most=10)
        show("recorded to the last call, heads of an agent", f"{sustained[AGENT_NAME]:,.0f}/s")
        show("log lag at that load, at most", f"{lag_ms:,.0f} ms")
        show("until the recorder had caught up", f"{behind:.2f} s")

    def latency(self) -> None:
        """At a rate that leaves the machine mostly idle, so the proxy's own time is seen."""
        took: dict[str, list[list[float]]] = {}
        lags: list[float] = []
        for _ in range(self.plan.repeats):
            for target in filter(None, (self.upstream, self.nginx, self.ours)):
                first = self.marks(LATENCY_RATE * self.plan.seconds)
                load = Load(0, "/v1/messages", self.plan.seconds, LATENCY_RATE, first)
                with contextlib.nullcontext() if target is self.ours else self.elsewhere():
                    answer = target.client("calls", load)
                took.setdefault(target.name, []).append(sorted(ns / 1e6 for ns in answer.took_ns))
                if answer.failed:
                    print(f"{target.name}: {answer.failed} calls failed at {LATENCY_RATE}/s")
                if target is self.ours:
                    self.catch_up()
                    lags += self.log.lags_ms(answer)
        p50 = {name: min(quantile(one, 0.5) for one in rounds) for name, rounds in took.items()}
        p99 = {name: min(quantile(one, 0.99) for one in rounds) for name, rounds in took.items()}
        for name in took:
            if name != "ours":
                show(f"{LATENCY_RATE} calls/s, {name}: p50, p99", f"{p50[name]:.3f} ms", f"{p99[name]:.3f} ms")
        if self.ours:
            name = f"added to a call at {LATENCY_RATE} a second"
            self.figures.add(f"{name}, p50", p50["ours"] - p50["direct"], "ms", at_most=0.3)
            self.figures.add(f"{name}, p99", p99["ours"] - p99["direct"], "ms", at_most=2)
            if self.nginx:
                self.figures.add(f"{name} by nginx, p50", p50["nginx"] - p50["direct"], "ms")
                self.figures.add(f"{name} by nginx, p99", p99["nginx"] - p99["direct"], "ms")
            p99_lag = quantile(sorted(lags), 0.99)
            show(
                f"{LATENCY_RATE} calls/s, log lag p50, p99",
                f"{quantile(sorted(lags), 0.5):.0f} ms",
                f"{p99_lag:.0f} ms",
            )

    def streams(self) -> None:
        rates: dict[str, float] = {}
        expected = CONNECTIONS * self.plan.stream_events
        for _ in range(self.plan.repeats):
            for target in filter(None, (self.upstream, self.nginx, self.ours)):
                load = Load(0, f"/stream?events={self.plan.stream_events}&ms=0", streams=CONNECTIONS)
                with contextlib.nullcontext() if target is self.ours else self.elsewhere():
                    answer = target.client("streams", load)
                if answer.failed or answer.events < 0.98 * expected:
                    print(f"{target.name}: {answer.failed} streams cut, {answer.events:,} of {expected:,} events")
                rates[target.name] = max(rates.get(target.name, 0), expected / answer.seconds)
                if target is self.ours:
                    self.catch_up()
        for name, rate in rates.items():
            if name != "ours":
                show(f"SSE events/s, {name}", f"{rate:,.0f}")
        if not self.ours:
            return
        if self.nginx:
            ratio = rates["ours"] / rates["nginx"]
            self.figures.add("streamed events a second, recorded, of nginx's", ratio, "x", at_least=0.85)
        paced = self.ours.client("paced", Load(0, "/paced?events=8&ms=200", streams=20))
        held = max(paced.took_ns) / 1e6
        self.figures.add("an event of a stream is held back, at most", held, "ms", at_most=5)
        self.figures.add("events of these streams that came", paced.events, "of 160", at_least=160)

    def history(self) -> None:
        if not self.ours:
            return
        calls = HISTORY_RATE * self.plan.history_seconds
        load = Load(0, "/v1/messages", self.plan.history_seconds, HISTORY_RATE, self.marks(calls), history=True)
        before = {part: cpu_seconds(pid) for part, pid in self.ours.pids.items()}
        answer = self.ours.client("calls", load)
        behind = self.catch_up()
        lags = self.log.lags_ms(answer)
        made = len(answer.took_ns) / answer.seconds
        name = f"requests of 500 KB, {HISTORY_RATE} a second"
        self.figures.add(f"{name}: made a second", made, "calls/s", at_least=0.95 * HISTORY_RATE)
        self.figures.add(f"{name}: failed", answer.failed, "calls", at_most=0)
        self.figures.add(f"{name}: until a call is in the log, p99", quantile(lags, 0.99), "ms", at_most=250)
        spent = ", ".join(f"{part} {one:.3f}" for part, one in cost(self.ours, before, calls).items())
        show(
            "  lag p50, most; caught up after",
            f"{quantile(lags, 0.5):.0f} ms",
            f"{lags[-1]:.0f} ms",
            f"{behind:.2f} s",
        )
        print(f"  CPU seconds per 1,000 calls: {spent}")

    def count(self) -> None:
        """A call that its client left before it was answered is one, too. So there may be a few more in the log."""
        if not self.ours:
            return
        self.catch_up()
        time.sleep(0.2)  # for one too many
        received, held = self.ours_received(), self.log.calls
        self.figures.add(
            "calls in the log, beyond those the upstream got",
            held - received,
            "calls",
            at_most=2 * CONNECTIONS * self.plan.rounds,
        )
        self.figures.add("calls that the upstream got, not in the log", max(0, received - held), "calls", at_most=0)

    def idle(self) -> None:
        """A proxy of its own, so that what is left of the loads is not charged to the streams."""
        name = f"memory of each of {self.plan.idle_streams:,} open streams"
        if self.nginx:
            opened, grown = self.hold_open(self.nginx)
            show(f"{name}, nginx", f"{grown / opened / 1024:.1f} KB")
        with contextlib.ExitStack() as stack:
            log_dir = self.folder / "idle"
            ours = self.ours and our_target(stack, log_dir, self.upstream)
            if not ours:
                return
            opened, grown = self.hold_open(ours)
            each = grown / opened / 1024
            self.figures.add(name, each, "KB", at_most=30)
            with Log(log_dir) as log:
                log.wait(opened, self.plan.catch_up_seconds)
        lost = abs(opened - calls_in(log_dir))  # once the proxy has ended, which writes all that it has
        self.figures.add("those streams that are not in the log", lost, "streams", at_most=0)

    def hold_open(self, target: Target) -> tuple[int, int]:
        """How many streams were opened, and how many bytes of memory more there were then."""
        load = Load(target.port, target.prefix + "/idle", streams=self.plan.idle_streams)
        pids = list(target.pids.values())
        with contextlib.ExitStack() as stack:
            time.sleep(0.5)
            before = memory_bytes(pids)
            command = [*LOAD, "idle", json.dumps(vars(load))]
            process = started(stack, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert process.stdout and process.stdin
            opened = int(process.stdout.readline())
            if opened < load.streams:
                print(f"{target.name}: {opened:,} of {load.streams:,} streams opened")
            time.sleep(1)
            grown = memory_bytes(pids) - before
            process.stdin.close()
            process.stdout.read()
        return opened, grown


def best(runs: dict[str, list[Run]], name: str) -> Run:
    return max(runs.get(name, []), key=lambda run: run.rate, default=Run(0, 0, 0, 0, 0, 0))


def cost(target: Target, before: dict[str, float], calls: int) -> dict[str, float]:
    return {part: (cpu_seconds(pid) - before[part]) / calls * 1000 for part, pid in target.pids.items()}


def install_tools() -> None:
    missing = [
        name for name in ("wrk", "nginx") if not shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    ]
    if missing and os.getuid() == 0 and shutil.which("apt-get"):
        print(f"apt-get install {' '.join(missing)}", file=sys.stderr)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing],
            stdout=subprocess.DEVNULL,
        )


class OverTimeError(Exception):
    """The bench took too long."""


def give_up(number: int, _frame: FrameType | None) -> None:
    """An exception, so that every process we started is ended on the way out."""
    raise OverTimeError if number == signal.SIGALRM else TimeoutError("ended")


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller loads: a look, not a measurement")
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    arguments = parser.parse_args()
    install_tools()
    if not shutil.which("wrk"):
        print("wrk is not here, and apt-get could not install it")
        return 1
    plan = QUICK if arguments.quick else FULL
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, give_up)
    signal.alarm(plan.bound_seconds)
    folder = Path(tempfile.mkdtemp(prefix="agent-logger-proxy-", dir=arguments.folder))
    began, is_whole = time.monotonic(), True
    try:
        with contextlib.ExitStack() as stack:
            bench = Bench(folder, plan, stack)
            try:
                bench.run()
            except OverTimeError:
                is_whole = False
                print(f"\nnot all was measured in {plan.bound_seconds} s: something else keeps this machine busy")
    finally:
        signal.alarm(0)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"took {time.monotonic() - began:.0f} s\n")
    if not bench.ours:
        print("ours was not measured")
        return 1
    code = bench.figures.finish(write=arguments.write and is_whole) if bench.figures.figures else 1
    return code if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
