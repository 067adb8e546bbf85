"""The load of coding agents through the proxy, beside nginx, and mitmdump if it is installed.

    ./dev bench agent                  about a minute
    ./dev bench agent --seconds 20     longer loads

Four agents at once, each a conversation whose history begins at 500 KB and grows with every call, answered by 200
events, one write each. The first call of each conversation is not measured. nginx has one worker, buffers nothing,
keeps upstream connections and writes no access log. All of it shares the machine's cores, as at work. Rounds of the
targets are interleaved and the best one of each counts. The CPU time is that of the processes which `agent-logger
status --json` names. Exit code 1 when a budget is exceeded, or a call is not in the log.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import _agent_load
from _agent_load import AgentAnswer, AgentLoad
from _figures import Figures, arguments_parser
from _proxy_load import HOST
from _proxy_targets import (
    MITMPROXY,
    PYTHON,
    Log,
    Target,
    calls_in,
    cpu_seconds,
    start_mitmdump,
    start_nginx,
    start_ours,
    start_upstream,
)
from agent_logger.proxy.status import proxy_reports

AGENTS, EVENTS = 4, 200
ROUNDS = 2
CATCH_UP_SECONDS = 60.0
RELAY_OF_NGINX, RECORDER_MS, DRAIN_SECONDS, RATE_OF_NGINX = 1.7, 2.5, 0.5, 0.9


@dataclass
class Measurement:
    """One load. `cpu_ms`: per call, by part of the target."""

    rate: float
    megabytes: float  # per second
    p50_ms: float
    cpu_ms: dict[str, float]
    calls: int
    failed: int
    drain_seconds: float = 0.0


def measure(target: Target, seconds: float, log: Log | None = None) -> Measurement:
    load = AgentLoad(target.port, f"{target.prefix}/v1/messages", AGENTS, seconds, EVENTS)
    held = log.calls if log else 0
    command = [PYTHON, _agent_load.__file__, json.dumps(asdict(load))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        held += int(process.stdout.readline())
        if log:
            log.wait(held, CATCH_UP_SECONDS)
        before = {part: cpu_seconds(pid) for part, pid in target.pids.items()}
        said, _ = process.communicate("go\n", timeout=seconds + 120)
    answer = AgentAnswer(**json.loads(said))
    calls = len(answer.took_ms)
    drain_seconds = log.wait(held + calls, CATCH_UP_SECONDS) if log else 0.0
    return Measurement(
        rate=calls / answer.seconds,
        megabytes=answer.sent_bytes / answer.seconds / 1e6,
        p50_ms=sorted(answer.took_ms)[calls // 2],
        cpu_ms={part: (cpu_seconds(pid) - before[part]) / calls * 1000 for part, pid in target.pids.items()},
        calls=calls,
        failed=answer.failed,
        drain_seconds=drain_seconds,
    )


def our_processes(stack: contextlib.ExitStack, log_dir: Path, upstream: Target) -> Target:
    """Our proxy, with the processes that its status names."""
    port, _ = start_ours(stack, log_dir, f"http://{HOST}:{upstream.port}")
    target = Target("agent-logger", port, f"/anthropic/{HOST}:{upstream.port}")
    until = time.monotonic() + 30
    while len(target.pids) < 2 and time.monotonic() < until:
        time.sleep(0.2)
        for report in proxy_reports(log_dir.with_name(f"{log_dir.name}-home")):
            target.pids = {f"relay {number}".removesuffix(" 1"): pid for number, pid in enumerate(report.relay_pids, 1)}
            if report.recorder_pid:
                target.pids["recorder"] = report.recorder_pid
    return target


def merged(rounds: list[Measurement]) -> Measurement:
    """The best of each figure: what a busy machine adds is not the target's."""
    best = max(rounds, key=lambda one: one.rate)
    best.cpu_ms = {part: min(one.cpu_ms[part] for one in rounds) for part in best.cpu_ms}
    best.drain_seconds = min(one.drain_seconds for one in rounds)
    return best


def show(results: dict[str, Measurement]) -> None:
    print(f"{'':24}{'calls/s':>9}{'MB/s':>8}{'p50':>9}   CPU of a call")
    for name, result in results.items():
        cpu = ", ".join(f"{part} {ms:.2f} ms" for part, ms in result.cpu_ms.items())
        print(f"{name:24}{result.rate:9.0f}{result.megabytes:8.0f}{result.p50_ms:6.1f} ms   {cpu}")


def judge(results: dict[str, Measurement], figures: Figures) -> None:
    ours, nginx = results["agent-logger"], results.get("nginx")
    mitmdump = results.get("mitmdump, writing flows")
    figures.add("calls a second, all recorded", ours.rate, "calls/s")
    figures.add("request bytes a second, all recorded", ours.megabytes, "MB/s")
    figures.add("a call, CPU of the relay", ours.cpu_ms["relay"], "ms")
    figures.add("a call, CPU of the recorder", ours.cpu_ms["recorder"], "ms", at_most=RECORDER_MS)
    figures.add("after the load, until all calls were in the log", ours.drain_seconds, "s", at_most=DRAIN_SECONDS)
    if nginx:
        relay = ours.cpu_ms["relay"] / nginx.cpu_ms["nginx"]
        figures.add("a call, CPU of the relay, of nginx's", relay, "x", at_most=RELAY_OF_NGINX)
        figures.add("calls a second, of nginx's", ours.rate / nginx.rate, "x", at_least=RATE_OF_NGINX)
    if mitmdump:
        figures.add("calls a second, of mitmdump's that writes flows", ours.rate / mitmdump.rate, "x")


def run(folder: Path, seconds: float, figures: Figures) -> None:
    with contextlib.ExitStack() as stack:
        upstream = start_upstream(stack)
        ours = our_processes(stack, folder / "log", upstream)
        others = [upstream, start_nginx(stack, folder, upstream)]
        mitmdump = None
        if (MITMPROXY / "bin" / "mitmdump").exists():
            mitmdump = start_mitmdump(stack, folder, upstream)
        log = stack.enter_context(Log(folder / "log"))
        rounds: dict[str, list[Measurement]] = {}
        for number in range(ROUNDS):
            for target in [*others, mitmdump if number == 0 else None, ours]:
                if target:
                    result = measure(target, seconds, log if target is ours else None)
                    rounds.setdefault(target.name, []).append(result)
        results = {name: merged(measured) for name, measured in rounds.items()}
        show(results)
        judge(results, figures)
        made = sum(one.calls + AGENTS for one in rounds[ours.name])
        failed = sum(one.failed for measured in rounds.values() for one in measured)
    lost = abs(made - calls_in(folder / "log"))  # once the proxy has ended, which writes all that it has
    parts = (folder / "log").rglob("unattributed*.jsonl")
    gaps = sum(path.read_bytes().count(b'{"type":"gap"') for path in parts)
    print(f"gaps in the log, for frames that the relay dropped: {gaps}")
    figures.add("calls made that are not in the log", lost, f"of {made:,}", at_most=0)
    figures.add("calls that failed", failed, f"of {made:,}", at_most=0)


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="the time of each load")
    parser.add_argument("--folder", help="where to write; a temporary folder otherwise")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agent-logger-agent-", dir=arguments.folder))
    try:
        run(folder, arguments.seconds, figures := Figures("agent"))
        return figures.finish(write=arguments.write)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
