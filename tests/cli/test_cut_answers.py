"""What was cut, failed or never answered: it is in the sums as far as it was billed, and its absence is explained."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.terminals import STYLE, on_a_terminal
from tests.cli.test_usage import run
from tests.logs.wire_log.wire_records import talk
from tests.proxy.conversing import World
from tests.proxy.spooling import request_head
from tests.proxy.streams import DIALECTS, anthropic, event
from tests.web.page_process import showing

from agent_logger.catalog.sqlite.schema import CATALOG
from agent_logger.home.facts import register_log_folder
from agent_logger.model.records import encode

STREAM = (b"content-type: text/event-stream",)
SESSION = "0b1c2d3e-0000-4000-8000-000000000001"


class Client:
    """Claude Code, as the wire sees it: it names its session."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.folder = folder
        self.calls = 0

    def ask(
        self,
        text: str,
        events: Sequence[bytes] = (),
        *,
        status: bytes = b"HTTP/1.1 200 OK",
        reason: str | None = None,
        path: bytes = b"/v1/messages",
        fields: Sequence[bytes] = STREAM,
    ) -> None:
        self.calls += 1
        messages = [{"role": "user", "content": text}]
        self.world.relay.call(
            head=request_head(path, f"x-claude-code-session-id: {SESSION}".encode()),
            path=path,
            body=[json.dumps({"model": "m", "messages": messages, "tools": [{"name": "Bash"}]}).encode()],
            status=status,
            fields=fields,
            answer=events,
            reason=reason,
            connection=self.calls,
            secrets=(),
        )

    def record(self) -> None:
        self.world.record()
        shutil.move(self.world.home, self.folder / ".agent-logger")

    def told(self, *arguments: str) -> Any:
        done = run(self.folder, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def said(number: int, **more: Any) -> list[bytes]:
    name = f"msg_0123456789abcdef{number:04}"
    return [event(it, it["type"]) for it in anthropic("Hello", " there", name=name, **more)]


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


def test_an_interrupted_and_retried_response_counts_its_reported_usage(client: Client) -> None:
    client.ask("hello", said(1)[:3], reason="upstream_reset")
    client.ask("hello", said(2))
    client.record()
    explained = client.told("usage", "--explain", SESSION)
    assert [(it["output_tokens"], it["partial"]) for it in explained["rows"]] == [(1, True), (7, False)]
    totals = explained["totals"]
    assert (totals["input_tokens"], totals["output_tokens"], totals["partial"]) == (20, 8, 1)
    assert client.told("usage")["totals"]["input_tokens"] == 20
    assert explained["not_counted"] == []
    assert client.told("show", SESSION)["exchanges"][0]["turns"][0]["usage"]["input_tokens"] == 10


@pytest.mark.parametrize("dialect", ["chat", "responses"])
@pytest.mark.parametrize("retried", [False, True])
def test_an_interrupted_response_without_usage_is_unknown_and_not_zero(
    tmp_path: Path, dialect: str, retried: bool
) -> None:
    client, spoken = Client(tmp_path), DIALECTS[dialect]
    body = spoken.asked("hello")
    for events, reason in ((spoken.events[:3], "client_gone"), (spoken.events, None))[: 2 if retried else 1]:
        client.calls += 1
        client.world.relay.call(
            head=request_head(spoken.path.encode(), b"x-session-id: s1"),
            path=spoken.path.encode(),
            body=[body],
            fields=STREAM,
            answer=events if not reason else [it.replace(b"0123456789abcdef", b"fedcba9876543210") for it in events],
            reason=reason,
            connection=client.calls,
            secrets=(),
        )
    client.record()
    [listed] = client.told("ls")
    totals = client.told("usage")["totals"]
    assert (listed["unpriced"], totals["unpriced"], totals["unknown_usage"]) == (1, 1, 1)
    assert totals["responses"] == (2 if retried else 1)
    rows = client.told("usage", "--explain", listed["id"])["rows"]
    assert [it["input_tokens"] for it in rows] == [None, *([10] if retried else [])]
    assert rows[0]["partial"] and rows[0]["cost_usd"] is None
    if retried:
        assert totals["output_tokens"] == 7
        return
    assert (listed["cost_usd"], totals["cost_usd"]) == (None, None)
    assert run(tmp_path, "usage").stdout.splitlines()[-1].split()[:6] == ["total", *["unknown"] * 5]
    assert run(tmp_path, "ls").stdout.splitlines()[1].split().count("?") == 2
    shown = run(tmp_path, "show", listed["id"]).stdout
    assert "cost unknown" in shown and "unknown tokens" in shown
    assert shown.count("(incomplete (cut off))") == 1


def test_calls_that_are_not_counted_are_listed_with_the_reason(client: Client) -> None:
    """An error's status, an error in the stream, no answer; what nobody bills in one line for each kind."""
    client.ask("hello", [b'{"type":"error"}'], status=b"HTTP/1.1 529 Overloaded")
    client.ask("hello", status=b"", reason="client_gone")
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    client.ask("hello", [*said(1)[:3], event(overloaded, "error")])
    client.ask("hello", [], reason="client_gone")
    client.ask("hello", said(2))
    for _ in range(3):
        client.ask("hello", [b'{"input_tokens": 9}'], path=b"/v1/messages/count_tokens", fields=())
    client.record()
    explained = client.told("usage", "--explain", SESSION)
    assert [it["message_id"] for it in explained["rows"]] == ["msg_0123456789abcdef0002"]
    assert [(it["reason"], it["status"], it["count"]) for it in explained["not_counted"]] == [
        ("error_status", 529, 1),
        ("no_answer", None, 1),
        ("error_event", 200, 1),
        ("no_answer", 200, 1),
        ("free", None, 3),
    ]
    assert "overloaded_error" in explained["not_counted"][2]["why"]
    printed = run(client.folder, "usage", "--explain", SESSION).stdout
    assert "not billed: the API answered with status 529" in printed
    assert "not billed: 3 token counts" in printed
    assert "estimated cost: $0.0001 for 1 response, at" in printed
    narrow = STYLE.sub("", on_a_terminal(client.folder, "usage", "--explain", SESSION, COLUMNS="80"))
    assert max(map(len, narrow.splitlines())) <= 80
    shown = run(client.folder, "show", SESSION).stdout
    assert shown.count("(failed: overloaded_error)") == 1
    with showing(client.folder) as page:
        why = page.ask(f"/sessions/{SESSION}/why", cookie=page.cookie()).text
    assert why.count("Not counted") == 1
    assert "ended the response with an error (overloaded_error)" in why


def test_a_catalog_of_an_older_version_is_rebuilt_from_the_logs(client: Client) -> None:
    client.ask("hello", said(1)[:3], reason="upstream_reset")
    client.ask("hello", said(2))
    client.record()
    before = client.told("usage")
    with contextlib.closing(sqlite3.connect(client.folder / ".agent-logger" / "catalog.db")) as database:
        database.execute("DELETE FROM ledger WHERE partial")
        database.execute("UPDATE source_responses SET responses = ?", (msgspec.msgpack.encode([]),))
        database.execute(f"PRAGMA user_version = {CATALOG.version - 1}")
        database.commit()
    assert client.told("usage") == before


def test_a_session_without_any_response_has_no_cost(client: Client) -> None:
    client.ask("hello", status=b"", reason="connect_refused")
    client.record()
    assert client.told("usage")["totals"]["responses"] == 0
    [listed] = client.told("ls")
    assert (listed["cost_usd"], listed["unpriced"]) == (None, 0)


CLIENTS = Path(__file__).parents[1] / "data" / "claude-cli" / "2.1.325"


@pytest.mark.parametrize(("name", "reported_usd"), [("disconnect_midstream", 0.002), ("sse_error_event", 0.00124)])
@pytest.mark.parametrize("with_transcript", [True, False])
def test_the_total_cost_matches_the_cost_reported_by_the_client(
    tmp_path: Path, name: str, reported_usd: float, with_transcript: bool
) -> None:
    """Claude Code's own figure of a run that was cut and retried, and of one that an error ended."""
    log = tmp_path / ".agent-logger" / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(encode(it) + b"\n" for it in talk(f"2.1.325/{name}").records()))
    register_log_folder(tmp_path / ".agent-logger", log.parents[1])
    if with_transcript:
        shutil.copytree(CLIENTS / name / "home" / ".claude", tmp_path / ".claude")
    totals = json.loads(run(tmp_path, "usage", "--json").stdout)["totals"]
    assert (totals["cost_usd"], totals["unpriced"]) == (reported_usd, 0)
    last = json.loads((CLIENTS / name / "stream.stdout").read_text().splitlines()[-1])
    assert last["total_cost_usd"] == reported_usd
