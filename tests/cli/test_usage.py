"""`usage`, over real files of agents and what the proxy recorded."""

import json
import os
import shutil
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.proxy.conversing import Client, World
from tests.proxy.tracking.conversation import said, user

from agent_logger.cli._times import moment

DATA = Path(__file__).parents[1] / "data"
SUBAGENTS = DATA / "claude-cli" / "2.1.325" / "subagents"


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    return run_command([*arguments], environment)


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    shutil.copytree(SUBAGENTS / "home" / ".claude", tmp_path / ".claude")
    return tmp_path


def test_what_an_agents_files_come_to_is_the_truth(claude: Path) -> None:
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
def test_every_way_to_sum_gives_the_same_total(claude: Path, by: str) -> None:
    told = json.loads(run(claude, "usage", by, "--json").stdout)
    assert sum(row["output_tokens"] for row in told["rows"]) == told["totals"]["output_tokens"]
    text = run(claude, "usage", by).stdout.splitlines()
    assert text[0].startswith(by)
    assert text[-1].startswith("total")


def test_filters_leave_out_what_was_not_asked_for(claude: Path) -> None:
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


def test_a_response_that_the_wire_and_a_transcript_tell_of_counts_once(tmp_path: Path) -> None:
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


def test_what_a_branch_goes_on_from_counts_once_though_its_ids_are_those_of_a_local_server(
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


def test_without_data_it_says_what_to_do(tmp_path: Path) -> None:
    done = run(tmp_path, "usage")
    assert (done.returncode, done.stdout) == (0, "")
    assert "agent-logger demo" in done.stderr
    assert json.loads(run(tmp_path, "usage", "--json").stdout)["rows"] == []


NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
TIMES = [
    ("today", datetime(2026, 11, 15, tzinfo=UTC)),
    ("Yesterday", datetime(2026, 11, 14, tzinfo=UTC)),
    ("2 days ago", datetime(2026, 11, 13, tzinfo=UTC)),
    ("1 week", datetime(2026, 11, 8, tzinfo=UTC)),
    ("3 hours ago", NOW - timedelta(hours=3)),
    ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
    ("2026-11-01T10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
    ("soon", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "wanted"), TIMES)
def test_times_are_understood_as_people_say_them(text: str, wanted: datetime | None) -> None:
    assert moment(text, NOW) == wanted


def test_a_time_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "usage", "--since", "soon")
    assert done.returncode == 2
    assert "2 days ago" in done.stderr
