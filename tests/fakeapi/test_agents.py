"""Real agents work against the fake API."""

import json

import pytest

from tests.clients import Sandbox, run_claude, run_codex
from tests.fakeapi import FakeAPI


@pytest.mark.needs("claude")
def test_claude_code_completes_a_scenario_with_tools(sandbox: Sandbox) -> None:
    with FakeAPI("tools", {"CWD": str(sandbox.project)}) as api:
        done = run_claude(
            sandbox,
            api.url,
            "-p",
            "Write a poem",
            "--output-format",
            "json",
            "--allowedTools",
            "Write,Read,Bash",
        )
        calls = api.calls
    assert (done.exit_code, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["is_error"], result["result"]) == (
        False,
        "Perfect! I've created poem.md with a four-line poem.",
    )
    assert result["usage"]["output_tokens"] == 290
    assert (sandbox.project / "poem.md").read_text().endswith("流れ.\n")
    assert [(call.lane, call.turn, call.status) for call in calls if call.lane] == [("main", n, 200) for n in range(4)]


@pytest.mark.needs("claude")
def test_claude_code_retries_after_a_disconnect(sandbox: Sandbox) -> None:
    with FakeAPI("disconnect") as api:
        done = run_claude(sandbox, api.url, "-p", "Hello", "--output-format", "json")
        calls = [call for call in api.calls if call.lane == "main"]
    assert json.loads(done.stdout)["result"] == "Second attempt, whole answer."
    assert [call.complete for call in calls] == [False, True]


@pytest.mark.needs("codex")
def test_codex_tries_websocket_first_and_sends_a_warm_up_request(sandbox: Sandbox) -> None:
    with FakeAPI("codex_tools") as api:
        done = run_codex(sandbox, api.url, "Create note.txt")
        handshake, *messages = api.calls
    assert done.exit_code == 0
    assert codex_texts(done.stdout) == ["I'll create note.txt first.", "Done: note.txt says hello-codex."]
    assert (sandbox.project / "note.txt").read_text() == "hello-codex\n"
    assert (handshake.method, handshake.path, handshake.status) == ("GET", "/v1/responses", 101)
    assert ("sec-websocket-extensions", "permessage-deflate; client_max_window_bits") in handshake.headers
    bodies = [json.loads(call.body) for call in messages]
    assert [(call.lane, call.turn, body.get("generate")) for call, body in zip(messages, bodies, strict=True)] == [
        (None, None, False),
        ("main", 0, None),
        ("main", 1, None),
    ]
    assert all(body["type"] == "response.create" for body in bodies)
    assert ["previous_response_id" in body for body in bodies] == [False, True, True]


@pytest.mark.needs("codex")
def test_codex_falls_back_to_http_when_websockets_are_refused(sandbox: Sandbox) -> None:
    with FakeAPI("codex_tools", websocket_status=426) as api:
        done = run_codex(sandbox, api.url, "Create note.txt")
        calls = api.calls
    assert done.exit_code == 0
    assert codex_texts(done.stdout)[-1] == "Done: note.txt says hello-codex."
    assert [(call.method, call.status) for call in calls] == [("GET", 426), ("POST", 200), ("POST", 200)]


def codex_texts(stdout: str) -> list[str]:
    items = [json.loads(line).get("item", {}) for line in stdout.splitlines()]
    return [item["text"] for item in items if item.get("type") == "agent_message"]
