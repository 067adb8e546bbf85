"""The examples run, with the real SDK, and leave the logs they promise."""

import http.client
import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients import ANTHROPIC_KEY, ROOT, Sandbox
from tests.fakeapi import FakeAPI
from tests.ports import free_port
from tests.recording.test_sdk_logger_fixtures import Log, logs
from tests.recording.test_sdk_logger_live import ANSWERS, COSTS, STALL

pytestmark = [pytest.mark.needs("claude_agent_sdk"), pytest.mark.needs("claude")]
EXAMPLES = ROOT / "examples"


def environment(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
    }


def found(sandbox: Sandbox) -> Log:
    [log] = logs(sandbox.project / "sessions").values()
    return log


def asked(log: Log) -> list[tuple[str | None, str | None]]:
    return [(it.user_input, it.end_reason) for it in log.exchanges]


def test_the_terminal_example_runs_and_records_its_exchanges(sandbox: Sandbox) -> None:
    with FakeAPI(ANSWERS) as api:
        command = [sys.executable, str(EXAMPLES / "cli_agent.py")]
        done = sandbox.run(command, environment(api.url), stdin="one\n\n  \ntwo\nEXIT\nthree\n")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Answer 1." in done.stdout and "Answer 2." in done.stdout
    log = found(sandbox)
    assert asked(log) == [("one", "result"), ("two", "result")]
    assert log.end.total_cost_usd == pytest.approx(sum(COSTS[:2]))


def test_the_terminal_example_records_the_end_after_an_error(sandbox: Sandbox) -> None:
    with FakeAPI(ANSWERS) as api:
        command = [sys.executable, "-c", f"{BROKEN}\nexec(open({str(EXAMPLES / 'cli_agent.py')!r}).read())"]
        done = sandbox.run(command, environment(api.url), stdin="one\n")
    assert done.exit_code == 1
    assert (asked(found(sandbox)), found(sandbox).end.reason) == ([("one", "eof")], "error")


BROKEN = """
import claude_agent_sdk
async def fail(*_): raise RuntimeError("the SDK is out of order")
claude_agent_sdk.ClaudeSDKClient.query = fail
"""


@contextmanager
def served(sandbox: Sandbox, url: str) -> Iterator[int]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--app-dir",
        str(EXAMPLES),
        "--port",
        str(port),
        "web_api:app",
    ]
    with sandbox.start(command, environment(url)):
        for _ in range(300):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port


def post(port: int, body: Any) -> tuple[http.client.HTTPResponse, list[dict[str, Any]]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/api/chat", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response, [json.loads(line) for line in response.read().splitlines()]
    finally:
        connection.close()


def said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def test_the_http_example_runs_and_records_its_exchanges(sandbox: Sandbox) -> None:
    with FakeAPI(ANSWERS) as api, served(sandbox, api.url) as port:
        response, first = post(port, {"messages": [said("user", "one")]})
        talk = [said("user", "one"), said("assistant", "Answer 1."), said("user", "two")]
        _, second = post(port, {"messages": talk, "sessionId": first[-1]["session_id"]})
        wrong, problem = post(port, {"message": "?"})
    assert (response.status, response.getheader("Cache-Control")) == (200, "no-cache")
    assert str(response.getheader("Content-Type")).startswith("application/x-ndjson")
    assert first[-1]["type"] == second[-1]["type"] == "result"
    assert (wrong.status, problem[0]["type"]) == (400, "error")
    log = found(sandbox)
    assert asked(log) == [("one", "result"), ("two", "result")]
    assert [it.cost_usd for it in log.stats] == pytest.approx(COSTS[:2])


def test_the_http_example_returns_and_records_errors(sandbox: Sandbox) -> None:
    with FakeAPI("err529") as api, served(sandbox, api.url) as port:
        _, lines = post(port, {"messages": [said("user", "one")]})
        unknown = "00000000-0000-4000-8000-000000000000"
        _, missing = post(port, {"messages": [said("user", "one")], "sessionId": unknown})
    assert lines[-1]["type"] == "result" and lines[-1]["is_error"]
    assert missing[-1]["type"] in ("error", "result")
    assert all(log.end for log in logs(sandbox.project / "sessions").values())


def test_the_http_example_ends_the_log_when_the_client_disconnects(sandbox: Sandbox) -> None:
    with FakeAPI(STALL) as api, served(sandbox, api.url) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"messages": [said("user", "one")]})
        connection.request("POST", "/api/chat", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert json.loads(response.readline())["type"] == "system"
        response.close()
        connection.close()
        wait_for_the_end(sandbox.project / "sessions")
    assert asked(found(sandbox)) == [("one", "eof")]


def wait_for_the_end(folder: Path) -> None:
    for _ in range(300):
        if any(b'"session_end"' in path.read_bytes() for path in folder.glob("*.jsonl")):
            return
        time.sleep(0.1)
    pytest.fail("the log has no end")
