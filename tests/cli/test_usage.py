"""`usage`, over real files of agents and what the proxy recorded."""

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.proxy.conversing import Client, World
from tests.proxy.tracking.conversation import said, user

DATA = Path(__file__).parents[1] / "data"
SUBAGENTS = DATA / "claude-cli" / "2.1.325" / "subagents"


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    return run_command([*arguments], environment)


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    shutil.copytree(SUBAGENTS / "home" / ".claude", tmp_path / ".claude")
    return tmp_path


def test_usage_of_agent_files_matches_the_recorded_truth(claude: Path) -> None:
    sessions = json.loads((SUBAGENTS / "manifest.json").read_text())["truth_usage_of_complete_responses"]
    truth = Counter[str]()
    for kinds in sessions.values():
        for counts in kinds.values():
            truth.update(counts)
    told = json.loads(run(claude, "usage", "--json").stdout)
    totals = told["totals"]
    assert totals["responses"] == truth["responses"]
    assert totals["input_tokens"] == truth["input_tokens"]
    assert totals["output_tokens"] == truth["output_tokens"]
    assert totals["cache_read_tokens"] == truth["cache_read_input_tokens"]
    assert totals["cache_write_tokens"] == truth["cache_creation_input_tokens"]
    assert totals["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in told["rows"]))
    assert told["price_date"]


@pytest.mark.parametrize("by", ["day", "week", "month", "session", "model", "project", "agent"])
def test_every_grouping_gives_the_same_total(claude: Path, by: str) -> None:
    told = json.loads(run(claude, "usage", by, "--json").stdout)
    assert sum(row["output_tokens"] for row in told["rows"]) == told["totals"]["output_tokens"]
    text = run(claude, "usage", by).stdout.splitlines()
    assert text[0].startswith(by)
    assert text[-1].startswith("total")


def test_filters_exclude_other_responses(claude: Path) -> None:
    everything = json.loads(run(claude, "usage", "--json").stdout)["totals"]["responses"]
    assert everything
    for arguments, left in (
        (("--agent", "claude-code"), everything),
        (("--agent", "codex"), 0),
        (("--model", "opus"), everything),
        (("--project", "nowhere"), 0),
        (("--until", "2020-01-01"), 0),
        (("--since", "2020-01-01"), everything),
    ):
        told = json.loads(run(claude, "usage", "--json", *arguments).stdout)
        assert told["totals"]["responses"] == left, arguments


def test_a_response_in_wire_log_and_transcript_counts_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    client = Client(world.relay, "0b1c2d3e")
    client.message_ids = [f"msg_0123456789abcdefghij{number}" for number in range(2)]
    for text in ("one", "two"):
        client.ask(text)
    world.record()
    shutil.move(world.home, tmp_path / ".agent-logger")
    before = json.loads(run(tmp_path, "usage", "--json").stdout)["totals"]
    assert (before["responses"], before["output_tokens"], before["unpriced"]) == (2, 10, 2)
    line = {
        "type": "assistant",
        "uuid": "1",
        "sessionId": "0b1c2d3e",
        "timestamp": "2026-11-15T10:00:00.000Z",
        "message": {
            "id": client.message_ids[0],
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
    }
    path = tmp_path / ".claude" / "projects" / "-p" / "0b1c2d3e-0000-4000-8000-000000000000.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(line) + "\n")
    after = json.loads(run(tmp_path, "usage", "--json").stdout)["totals"]
    assert (after["responses"], after["output_tokens"]) == (2, 10)
    explained = run(tmp_path, "usage", "--explain", "0b1c2d3e-0000").stdout
    assert "seen by 2 sources (transcript, wire), matched by message id" in explained
    assert "unknown" in run(tmp_path, "usage").stdout, "a price that is not known is not 0"


def test_shared_history_of_a_branch_counts_once_with_ids_of_a_local_server(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    client = Client(world.relay, "0b1c2d3e")
    for text in ("one", "two"):
        client.ask(text)
    client.send([*client.history[:2], user("another two")], said("yes"))
    world.record()
    shutil.move(world.home, tmp_path / ".agent-logger")
    assert json.loads(run(tmp_path, "usage", "--json").stdout)["totals"]["responses"] == 3


def test_usage_without_data_suggests_the_demo(tmp_path: Path) -> None:
    done = run(tmp_path, "usage")
    assert (done.returncode, done.stdout) == (0, "")
    assert "agent-logger demo" in done.stderr
    assert json.loads(run(tmp_path, "usage", "--json").stdout)["rows"] == []


def test_an_invalid_time_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "usage", "--since", "soon")
    assert done.returncode == 2
    assert "last week" in done.stderr
