"""`usage block`: the blocks of five hours, as ccusage counts them."""

import json
import os
import random
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.sessions import write_session
from tests.clients import find_ccusage
from tests.commands import run_command

DAY = datetime(2026, 11, 2, tzinfo=UTC)


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        ["usage", "block", *arguments], {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TZ": "UTC"}
    )


def blocks(home: Path, *arguments: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run(home, "--json", *arguments).stdout)["rows"]
    return rows


def at(home: Path, *times: datetime) -> None:
    for number, time in enumerate(times, 1):
        write_session(home, number, time, "Hello", output_tokens=number)


def starts(home: Path, *arguments: str) -> list[tuple[str, int]]:
    return [(row["start"][11:16], row["output_tokens"]) for row in blocks(home, *arguments)]


def test_a_block_begins_at_the_full_hour_of_its_first_response(home: Path) -> None:
    at(home, DAY.replace(hour=8, minute=59), DAY.replace(hour=12, minute=59), DAY.replace(hour=13, minute=1))
    assert starts(home) == [("08:00", 1 + 2), ("13:00", 3)]


def test_a_response_at_the_very_end_is_still_in_the_block(home: Path) -> None:
    at(home, DAY.replace(hour=8, minute=30), DAY.replace(hour=13), DAY.replace(hour=13, microsecond=1000))
    assert starts(home) == [("08:00", 1 + 2), ("13:00", 3)]


def test_a_pause_ends_a_block_and_leaves_no_empty_ones(home: Path) -> None:
    at(home, DAY.replace(hour=1, minute=30), DAY.replace(hour=23, minute=30))
    assert starts(home) == [("01:00", 1), ("23:00", 2)]


def test_times_select_whole_blocks(home: Path) -> None:
    at(home, DAY.replace(hour=2), DAY.replace(hour=22, minute=30), DAY + timedelta(days=1, hours=1))
    assert starts(home, "--since", "2026-11-03") == [("22:00", 2 + 3)]
    assert starts(home, "--until", "2026-11-02 12:00") == [("02:00", 1)]
    report = json.loads(run(home, "--json", "--since", "2026-11-03").stdout)
    assert report["totals"]["output_tokens"] == 2 + 3


def test_the_active_block_says_what_is_left_and_where_it_leads(home: Path) -> None:
    now = datetime.now(UTC)
    at(home, now - timedelta(days=3), now - timedelta(minutes=40), now - timedelta(minutes=10))
    past, *_, active = blocks(home)
    assert not past["active"] and past["projected_usd"] is None
    assert active["active"]
    if active["responses"] == 2:  # unless the hour has just changed, and with it the block
        assert active["usd_per_hour"] == pytest.approx(active["cost_usd"] * 2)
        left = datetime.fromisoformat(active["end"]) - now
        wanted = active["cost_usd"] + active["usd_per_hour"] * left / timedelta(hours=1)
        assert active["projected_usd"] == pytest.approx(wanted, rel=0.05)
    text = run(home).stdout.splitlines()
    assert "* " in text[-3] and text[-1].startswith("* active, ") and " left" in text[-1]


@pytest.mark.needs("ccusage")
@pytest.mark.parametrize("seed", [1, 2])
def test_blocks_and_their_tokens_match_ccusage(home: Path, seed: int) -> None:
    chance, now = random.Random(seed), datetime.now(UTC)
    at(home, *(now - timedelta(hours=chance.uniform(0.1, 150)) for _ in range(150)))
    for path in home.rglob("*.jsonl"):  # ccusage reads no other spacing
        lines = map(json.loads, path.read_text().splitlines())
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    command = [str(find_ccusage()), "blocks", "--json", "--offline"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    theirs = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)["blocks"]
    counted = [
        (block["startTime"][:19], block["endTime"][:19], block["entries"], block["tokenCounts"]["outputTokens"])
        for block in theirs
        if not block["isGap"]
    ]
    ours = [(row["start"][:19], row["end"][:19], row["responses"], row["output_tokens"]) for row in blocks(home)]
    assert ours == counted
    assert len(ours) > 10
