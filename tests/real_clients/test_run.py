"""Real clients do the same behind `agent-logger run` as without it, and its logs say what they did."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import SessionStart

from . import alike
from .running import CLIENTS, KEYS, fake_api, run, run_directly
from .scenarios import SCENARIOS, Scenario

POEM = "Write a tiny poem to poem.md and check it"
# By scenario: agent, of each exchange its input and billed tokens (input, output), the tools.
WITNESSED: dict[str, tuple[str, dict[str, tuple[int, int]], list[str]]] = {
    "claude-cli-tools_stream": ("claude-code", {POEM: (18, 290)}, ["Write", "Read", "Bash", "Bash"]),
    "codex-exec_resume": (
        "codex",
        {"Create note.txt": (130, 75), "And now?": (90, 9), "Third?": (95, 7)},
        ["command_execution"],
    ),
    "gemini-cli-exec_resume": (
        "gemini-cli",
        {"List the directory": (360, 62), "Again": (270, 28)},
        ["list_directory"],
    ),
    "opencode-run_anthropic": ("opencode", {"Write oc.txt": (20, 40), "And then?": (10, 20)}, ["write"]),
}


def _parameters() -> Iterator[Any]:
    for scenario in SCENARIOS:
        if scenario.id in WITNESSED:
            marks = [pytest.mark.needs(*CLIENTS[scenario.client].needs)]
            marks += [pytest.mark.long] if scenario.long else []
            yield pytest.param(scenario, id=scenario.id, marks=marks)


REQUESTS = re.compile(
    r"(\d+) requests? recorded · (?:\$[\d.]+(?: \+ \d+ unpriced)?|cost unknown) · agent-logger show [\w-]+"
)


@pytest.mark.parametrize("scenario", list(_parameters()))
def test_a_real_client_behaves_the_same_under_agent_logger_run(scenario: Scenario, tmp_path: Path) -> None:
    root = tmp_path / "run"
    direct = run_directly(scenario, root)
    words = [sys.executable, "-m", "agent_logger", "run", "--sessions-dir", str(tmp_path / "s"), "--"]
    with fake_api(scenario, root) as api:
        recorded = run(scenario, root, api, api.url, words)
    requests = 0
    for step in scenario.steps():
        mine, theirs = recorded.finished[step.label], direct.finished[step.label]
        assert mine.exit_code == theirs.exit_code == step.exit_code, mine.stderr
        *printed, summary, last = mine.stderr.rstrip("\n").split("\n")
        stderr = "\n".join(printed)
        assert summary.startswith("agent-logger: session ") and "tokens" in summary
        line = REQUESTS.fullmatch(last)
        assert line, last
        requests += int(line[1])
        for ours, plain in ((mine.stdout, theirs.stdout), (stderr.strip(), theirs.stderr.strip())):
            assert not "\n".join(alike.differences(alike.said(ours), alike.said(plain)))
    asked = alike.requests(recorded.calls), alike.requests(direct.calls)
    assert not "\n".join(alike.differences(*asked))
    assert requests == sum(call.method == "POST" for call in recorded.calls)
    _check_log(scenario, tmp_path / "s", recorded.sessions)


def _check_log(scenario: Scenario, folder: Path, sessions: list[str]) -> None:
    agent, told, tools = WITNESSED[scenario.id]
    [log] = folder.glob("*.jsonl")
    [start] = [it.value for it in read_log(folder, log.stem) if isinstance(it.value, SessionStart)]
    assert (start.agent, start.witness, [start.session_id]) == (agent, "run", sessions[:1])
    found = read_exchanges(folder, log.stem)
    assert {it.user_input: _billed(it.stats) for it in found} == told
    assert all(it.complete and it.exit and it.exit.status == 0 for it in found)
    assert [it.name for exchange in found for it in exchange.messages if it.type == "tool_use"] == tools
    for path in folder.rglob("*"):
        assert not path.is_file() or not any(key.encode() in path.read_bytes() for key in KEYS)


def _billed(stats: Any) -> tuple[int, int]:
    from agent_logger.messages.counters import billed

    found = billed(stats)
    assert found
    return found.input, found.output
