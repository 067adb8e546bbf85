"""A real client, seen by the proxy, by the SDK's logger and in its own files: one session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_logger import SessionLogger
from agent_logger.catalog.catalog import Catalog
from agent_logger.config import Origin
from agent_logger.model.session import MAIN, SIDE, Usage
from tests.clients import Sandbox
from tests.fakeapi import FakeAPI
from tests.proxy.process import Process
from tests.real_clients.logged import read_logs
from tests.real_clients.running import CLIENTS, Upstream, run_recorded
from tests.real_clients.scenarios import SCENARIOS, Scenario
from tests.recording.test_sdk_logger_live import talk


@pytest.mark.needs("claude_agent_sdk", "claude")
def test_wire_log_sdk_log_and_transcript_are_joined_into_one_session(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sandbox.project / "seed.txt").write_text("hello seed\n")
    (tmp_path / "proxy" / "home").mkdir(parents=True)
    with FakeAPI("subagent", {"CWD": str(sandbox.project)}) as api:
        proxy = Process(tmp_path / "proxy", Upstream(Origin("http", "127.0.0.1", api.port)))  # type: ignore[arg-type]
        monkeypatch.setenv("AGENT_LOGGER_HOME", str(proxy.home))
        try:
            url = f"http://127.0.0.1:{proxy.port}/anthropic/127.0.0.1:{api.port}"
            logger = SessionLogger(tmp_path / "sessions")
            talk(sandbox, url, logger, "delegate", allowed_tools=["Task", "Agent", "Bash", "Read"])
            assert proxy.stop() == 0
        finally:
            proxy.close()
    monkeypatch.setenv("HOME", str(sandbox.home))
    assert logger.session_id
    with Catalog.open(proxy.home) as catalog:
        session = catalog.session(logger.session_id)
        under = catalog.calls_by_turn(logger.session_id)
    assert session
    assert session.id == logger.session_id
    assert [it.user_input for it in session.exchanges] == ["delegate"]
    [exchange] = session.exchanges
    assert (exchange.complete, exchange.end_reason) == (True, "result")
    assert session.usage == Usage(input_tokens=15, output_tokens=295, cache_write_tokens=3520, cache_read_tokens=3410)
    assert (
        len(exchange.turns) == len({it.message_id for it in exchange.turns}) == len(api.calls) - len(session.side_turns)
    )
    for turn in exchange.turns:
        assert {"wire", "transcript"} <= turn.witnesses
        assert ("sdk" in turn.witnesses) or turn.thread != MAIN  # an SDK is not told what a sub-agent says
        assert turn.joined_by == "message id"
        assert {it.field for it in turn.differences} <= {"usage"}
        assert {it.witness for it in turn.differences} <= {"sdk"}
    calls = [it.id for turn in session.turns for it in turn.tool_calls if it.name in ("Task", "Agent")]
    assert sorted(it.tool_use_id or "" for it in session.agents) == sorted(it or "" for it in calls)
    assert {it.thread for it in session.agents} | {MAIN} == {it.thread for it in exchange.turns}
    for at, turn in enumerate(exchange.turns):
        assert turn.message_id in {it.message_id for it in under[at]}


# ---------------------------------------------------------------- every client that leaves files


def _scenarios() -> Iterator[Any]:
    """Those whose sessions the wire and a file tell of. Starting so many clients takes its time."""
    for scenario in SCENARIOS:
        if scenario.client not in ("anthropic-python", "openai-python"):
            needs = pytest.mark.needs(*CLIENTS[scenario.client].needs)
            yield pytest.param(scenario, id=scenario.id, marks=[needs, pytest.mark.long])


@pytest.mark.parametrize("scenario", list(_scenarios()))
def test_the_wire_log_of_a_real_client_is_joined_to_its_files(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, log_dir = run_recorded(scenario, tmp_path / "run", tmp_path / "proxy")
    assert ran.sandbox
    monkeypatch.setenv("HOME", str(ran.sandbox.home))
    with Catalog.open(tmp_path / "proxy" / "home" / ".agent-logger") as catalog:
        sessions = [catalog.session(it.id) for it in catalog.sessions()]
        counted = catalog.total()
    turns = [turn for it in sessions if it for turn in it.turns]
    assert len(sessions) == len({it.id for it in sessions if it}), sessions
    assert {it.client_id or it.name for it in read_logs(log_dir) if it.start} >= {it.id for it in sessions if it} or (
        scenario.client == "gemini-cli"
    )
    spoken = [turn for turn in turns if turn.thread != SIDE and turn.complete and not turn.is_synthetic]
    assert {tuple(sorted(turn.witnesses)) for turn in spoken if turn.usage} <= {
        ("transcript", "wire"),
        ("wire",),
    }
    asked = [
        it for it in scenario.manifest["requests"] if it["kind"] in ("main", "subagent", "compact") and it["usage"]
    ]
    output = sum(_output(it["usage"]) for it in asked if it["complete"] and it["status"] == 200)
    billed = {turn.message_id: turn.usage.output_tokens for turn in spoken if turn.usage}
    assert sum(billed.values()) == output
    assert any(len(turn.witnesses) == 2 for turn in spoken) or not output  # some scenarios only fail
    assert counted.usage.output_tokens >= output


def _output(usage: dict[str, int]) -> int:
    names = ("output_tokens", "completion_tokens", "candidatesTokenCount")
    return next(usage[name] for name in names if name in usage)
