"""The proxy as its user runs it: start, status, stop, what it says."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.fakeapi import FakeAPI

from agent_logger.files.parts import parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import Request, Response

SECRET = "sk-ant-api03-" + "Qz7" * 20


class Running:
    """`agent-logger proxy` in a process of its own."""

    def __init__(
        self, folder: Path, api: FakeAPI, *arguments: str, command: str = "proxy", terminal: int | None = None
    ) -> None:
        self.folder, self.api = folder, api
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "80"}
        line = [sys.executable, "-m", "agent_logger", command, "--allow-upstream", api.url, *arguments]
        self.process = subprocess.Popen(
            line,
            cwd=folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=terminal or subprocess.PIPE,
            text=True,
        )
        if terminal:
            assert until(lambda: list((folder / ".agent-logger").glob("proxy-*.json")))
            (state,) = (folder / ".agent-logger").glob("proxy-*.json")
            self.port = json.loads(state.read_text())["port"]
            return
        assert self.process.stderr
        self.said = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.said)
        assert found, self.said + self.process.stderr.read()
        self.port = int(found[1])

    def call(self, text: str = "hi", path: str = "/v1/messages", headers: str = "") -> bytes:
        body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": text}]}).encode()
        host = self.api.url.removeprefix("http://")
        head = (
            f"POST /anthropic/{host}{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nx-api-key: {SECRET}\r\n{headers}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return self.send(head.encode() + body)

    def send(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(data)
            answer = b""
            while more := connection.recv(65536):
                answer += more
        return answer

    def agent_logger(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command([*arguments], self.environment, folder=self.folder)

    def stop(self, wanted: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(wanted)
        return self.process.wait(60)

    def close(self) -> str:
        if self.process.poll() is None:
            self.process.kill()
        out, err = self.process.communicate()
        return out + (err or "")

    def records(self) -> list[Request | Response]:
        found = [
            item.value
            for folder in (self.folder / "logs" / "anthropic", self.folder / "logs")
            for name in dict.fromkeys(part.name for part in parts_in(folder))
            for item in read_log(folder, name)
        ]
        return [it for it in found if isinstance(it, Request | Response)]


@pytest.fixture
def api() -> Iterator[FakeAPI]:
    with FakeAPI("hello_repeat") as api:
        yield api


@pytest.fixture
def proxy(tmp_path: Path, api: FakeAPI) -> Iterator[Running]:
    running = Running(tmp_path, api, "--port", "0")
    yield running
    running.close()


def until(condition: "object", seconds: float = 60.0) -> bool:
    assert callable(condition)
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def test_a_call_is_in_the_log_after_a_graceful_stop(proxy: Running) -> None:
    answer = proxy.call()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"message_stop" in answer
    assert proxy.stop() == 0
    request, response = proxy.records()
    assert isinstance(request, Request)
    assert isinstance(response, Response)
    assert (request.method, request.path, response.status, response.complete) == (
        "POST",
        "/v1/messages",
        200,
        True,
    )
    sent = b"".join((chunk.raw or "").encode() for chunk in response.chunks or [])
    assert b"message_stop" in sent


def test_the_terminal_shows_one_line_per_call_with_its_session(tmp_path: Path, api: FakeAPI) -> None:
    ours, theirs = os.openpty()
    running = Running(tmp_path, api, "--port", "0", terminal=theirs)
    os.close(theirs)
    try:
        running.call("hello", headers="x-claude-code-session-id: 0b1c2d3e\r\n")
        running.send(b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % running.port)
        seen = b""
        while b"(refused)" not in seen:
            seen += os.read(ours, 4096)
        running.stop()
    finally:
        running.close()
        os.close(ours)
    lines = seen.decode().splitlines()
    (call,) = [line for line in lines if " in, " in line]
    assert re.match(r"\d\d:\d\d:\d\d  200  \d{6}-[0-9a-f]{4}  \w+ +m  [\d,]+ in, [\d,]+ out  ", call)
    assert len(call) < 80
    (refused,) = [line for line in lines if "(refused)" in line]
    assert "404" in refused


def test_the_api_key_is_sent_to_the_upstream_and_stored_nowhere(proxy: Running) -> None:
    proxy.call(text=f"my key is {SECRET}")
    proxy.stop()
    said = proxy.close()
    assert dict(proxy.api.calls[0].headers)["x-api-key"] == SECRET
    assert SECRET.encode() in proxy.api.calls[0].body
    everything = b"".join(path.read_bytes() for path in proxy.folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything
    assert SECRET[-20:].encode() not in everything
    assert SECRET not in said


def test_status_reports_calls_port_and_recording_state(proxy: Running) -> None:
    for _ in range(3):
        proxy.call()
    assert until(lambda: "calls           3" in proxy.agent_logger("status").stdout)
    done = proxy.agent_logger("status", "--json")
    [report] = json.loads(done.stdout)
    assert done.returncode == 0
    assert (report["port"], report["recording"], report["lost"]) == (proxy.port, True, 0)
    proxy.stop()
    ended = proxy.agent_logger("status")
    assert ended.returncode == 1
    assert "The proxy is not running" in ended.stdout


def test_a_killed_proxy_is_not_reported_as_running(proxy: Running) -> None:
    proxy.process.kill()
    proxy.process.wait()
    assert proxy.agent_logger("status").returncode == 1
    assert list((proxy.folder / ".agent-logger").glob("proxy-*")) == []


def test_the_error_of_a_second_proxy_names_the_port_of_the_first(proxy: Running) -> None:
    done = proxy.agent_logger("proxy", "--port", "0")
    assert done.returncode == 1
    assert f"port {proxy.port}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_occupied_port_is_an_error_if_chosen_and_replaced_if_default(
    proxy: Running, tmp_path: Path, api: FakeAPI
) -> None:
    taken = proxy.agent_logger("proxy", "--port", str(proxy.port), "--log-dir", "other")
    assert taken.returncode == 1
    assert "choose another --port" in taken.stderr
    with socket.socket() as blocker:
        try:
            blocker.bind(("127.0.0.1", 8080))
            blocker.listen()
        except OSError:
            pass  # somebody else has it, which does as well
        second = Running(tmp_path, api, "--log-dir", "third")
        assert 8081 <= second.port <= 8100
        second.close()


def test_a_refused_request_is_answered_recorded_and_not_forwarded(proxy: Running) -> None:
    answer = proxy.send(
        f"GET /anthropic/evil.example.com/v1/x HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\n\r\n".encode()
    )
    assert b" 403 " in answer.split(b"\r\n")[0]
    assert b"x-agent-logger-error" in answer.lower()
    proxy.stop()
    assert len(proxy.api.calls) == 0
    records = proxy.records()
    assert [it.reason for it in records if isinstance(it, Response)] == ["refused"]


def test_start_runs_the_proxy(tmp_path: Path, api: FakeAPI) -> None:
    running = Running(tmp_path, api, "--port", "0", command="start")
    assert running.call().startswith(b"HTTP/1.1 200")
    assert running.stop(signal.SIGINT) == 0
    running.close()


def test_workers_share_the_port_and_one_log_folder(tmp_path: Path, api: FakeAPI) -> None:
    running = Running(tmp_path, api, "--port", "0", "--workers", "2")
    time.sleep(1.0)  # for the second one to listen
    for number in range(20):
        assert running.call(text=f"{number} {SECRET}").startswith(b"HTTP/1.1 200")
    assert running.stop() == 0
    running.close()
    bodies = [it.body or "" for it in running.records() if isinstance(it, Request)]
    assert len(bodies) == 20
    assert SECRET not in "".join(bodies)


def test_du_reports_the_number_and_size_of_logs(proxy: Running) -> None:
    proxy.call()
    proxy.stop()
    done = proxy.agent_logger("du", "--json", "logs")
    [usage] = json.loads(done.stdout)
    assert usage["logs"] == 1
    assert usage["plain_bytes"] > 1000
    assert "logs" in proxy.agent_logger("du").stdout
    assert proxy.agent_logger("du", "nowhere").returncode == 1
