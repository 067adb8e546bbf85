"""The page beside the proxy: it comes and goes with it, and never in its way."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/open\?token=")


@contextmanager
def started(home: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_logger", "--port", "0", "--no-open", *arguments],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def said_until(process: subprocess.Popen[str], wanted: re.Pattern[str]) -> re.Match[str]:
    assert process.stderr
    for line in process.stderr:
        if found := wanted.search(line):
            return found
    raise AssertionError("it ended before it said so")


def pages(home: Path) -> list[Path]:
    return list((home / ".agent-logger").glob("page-*.json"))


def gone(home: Path) -> bool:
    until = time.monotonic() + 60
    while pages(home) and time.monotonic() < until:
        time.sleep(0.1)
    return not pages(home)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_page_starts_and_stops_with_the_proxy(tmp_path: Path, end: signal.Signals) -> None:
    with started(tmp_path, "--page-port", "0") as process:
        assert int(said_until(process, LINK)[1]) > 0
        assert len(pages(tmp_path)) == 1
        process.send_signal(end)
        process.communicate(timeout=30)
        assert process.returncode == 0
        assert not pages(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_the_page_runs_at_a_lower_priority_than_the_proxy(tmp_path: Path) -> None:
    with started(tmp_path, "--page-port", "0") as process:
        said_until(process, LINK)
        (state,) = pages(tmp_path)
        (pid,) = re.findall(r"\d+", state.name)
        threads = [int(it.name) for it in Path(f"/proc/{pid}/task").iterdir()]
        proxys = os.getpriority(os.PRIO_PROCESS, process.pid)
        hasty = [it for it in threads if os.getpriority(os.PRIO_PROCESS, it) != min(proxys + 10, 19)]
        assert len(threads) > 2
        assert len(hasty) <= 1  # the one that waits for the end of the proxy
        assert int(pid) not in hasty


def test_a_killed_proxy_leaves_no_page_process(tmp_path: Path) -> None:
    with started(tmp_path, "--page-port", "0") as process:
        said_until(process, LINK)
        process.kill()
        assert gone(tmp_path)


def test_the_proxy_continues_when_its_page_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, "--page-port", "0") as process:
        said_until(process, LINK)
        (state,) = pages(tmp_path)
        os.kill(int(re.findall(r"\d+", state.name)[0]), signal.SIGKILL)
        time.sleep(0.5)
        assert process.poll() is None


def test_the_proxy_continues_with_a_message_when_the_page_cannot_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started(tmp_path, "--page-port", str(port)) as process:
            said_until(
                process,
                re.compile(f"cannot listen on 127.0.0.1:{port}: Address already in use; choose another --page-port"),
            )
            assert process.poll() is None


def test_the_no_page_option_starts_no_page(tmp_path: Path) -> None:
    with started(tmp_path, "--no-page") as process:
        said_until(process, re.compile("The proxy listens on http"))
        time.sleep(1.5)
        assert not pages(tmp_path)
