"""`search` says where each match is, how many there are, and takes times."""

import json
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.sessions import ID, write_session
from tests.commands import run_command

DAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    for number in range(1, 25):
        write_session(home, number, DAY + timedelta(days=number), f"Count the zebras {number}")


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TZ": "UTC"}
    return run_command(["search", *arguments], environment)


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("zebras",), "10 of 24 matches"),
        (("zebras", "-n", "23"), "23 of 24 matches"),
        (("zebras", "-n", "24"), ""),
        (("zebras", "--since", "2026-11-14"), "10 of 12 matches"),
        (("Answer", "-n", "3"), "3 of 24 matches"),
        (("zebras", "24"), ""),
    ],
)
def test_the_number_of_all_matches_is_below_them(home: Path, words: tuple[str, ...], note: str) -> None:
    assert run(home, *words).stderr.partition(";")[0].strip() == note


@pytest.mark.parametrize(
    ("times", "numbers"),
    [
        (("--since", "2026-11-05", "--until", "2026-11-06"), {4, 5}),
        (("--until", "2026-11-03"), {1, 2}),
        (("--since", "2026-11-25"), {24}),
        (("--since", "2026-11-26"), set()),
    ],
)
def test_times_narrow_a_search_and_include_their_days(home: Path, times: tuple[str, ...], numbers: set[int]) -> None:
    hits = json.loads(run(home, "zebras", *times, "--json").stdout)
    assert {hit["session"] for hit in hits} == {ID.format(number) for number in numbers}


def test_a_match_names_its_exchange_and_turn_and_the_command_that_shows_it(home: Path) -> None:
    prompt = run(home, "zebras", "7").stdout
    assert "exchange 1, prompt" in prompt
    answer = run(home, '"Answer 7"').stdout
    assert "exchange 1, turn 0, text" in answer
    for text in (prompt, answer):
        [command] = re.findall(r"agent-logger (show .*)", text)
        assert command == f"show {ID.format(7)[:8]} --turn 0"
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
        assert "Answer 7" in run_command(command.split(), environment).stdout
