"""`usage` and `ls` grouped, sorted and narrowed as people say it."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.sessions import ID, write_session
from tests.cli.terminals import STYLE, on_a_terminal
from tests.commands import run_command

DAY = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    write_session(home, 1, DAY, "Fix the timer", output_tokens=9000)
    write_session(home, 2, DAY + timedelta(days=1), "Write a poem", model="llama-unknown", project="/work/poems")
    write_session(home, 3, DAY + timedelta(days=2), "Break the build", output_tokens=10, failed_tools=2)


def run(home: Path, *arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": str(columns), "TZ": "UTC"}
    return run_command([*arguments], environment)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("daily",), "day"),
        (("weekly",), "week"),
        (("--by", "month"), "month"),
        (("--by", "Models"), "model"),
        (("monthly", "--by", "month"), "month"),
        (("blocks",), "block"),
        ((), "day"),
    ],
)
def test_usage_takes_everyday_words_for_its_keys(home: Path, words: tuple[str, ...], key: str) -> None:
    assert run(home, "usage", *words).stdout.split()[0] == key


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("usage", "today"), "--since today"),
        (("usage", "last week"), "--since 'last week'"),
        (("usage", "person"), "day, week, month"),
        (("usage", "day", "--by", "month"), "use one of them"),
        (("ls", "--sort", "price"), "did you mean cost?"),
        (("ls", "--sort", "newest"), "did you mean time?"),
        (("ls", "--sort", "colour"), "'tokens'"),
        (("ls", "--agent", "claud"), "claude-code (claude)"),
        (("usage", "--agent", "claud"), "claude-code (claude)"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(home: Path, words: tuple[str, ...], hint: str) -> None:
    done = run(home, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr


@pytest.mark.parametrize(
    ("sort", "first", "column"),
    [("cost", 1, "cost"), ("tokens", 1, "tokens"), ("errors", 3, "errors"), ("time", 3, "id")],
)
def test_ls_is_sorted_by_what_is_asked_for(home: Path, sort: str, first: int, column: str) -> None:
    head, row, *_ = run(home, "ls", "--sort", sort).stdout.splitlines()
    assert column in head and ID.format(first)[:8] in row
    assert json.loads(run(home, "ls", "--sort", sort, "--json").stdout)[0]["id"] == ID.format(first)


def test_an_agent_is_known_by_its_short_name_too(home: Path) -> None:
    assert len(run(home, "ls", "--agent", "claude").stdout.splitlines()) == 4
    assert run(home, "ls", "--agent", "gemini").stdout == ""
    assert run(home, "usage", "--agent", "Claude", "--json").stdout == run(home, "usage", "--json").stdout


def test_a_wide_list_spells_its_columns_out(home: Path) -> None:
    head, *rows = run(home, "ls", columns=140).stdout.splitlines()
    assert {"exchanges", "sources"} <= set(head.split())
    assert all(row.endswith("  file") for row in rows)
    for columns in (40, 60, 80, 100):
        assert max(map(len, run(home, "ls", columns=columns).stdout.splitlines())) <= columns


def test_usage_by_session_says_which_they_were(home: Path) -> None:
    head, first, *_ = run(home, "usage", "session").stdout.splitlines()
    assert head.split()[:5] == ["session", "last", "active", "title", "project"]
    assert "Fix the timer" in first and " shop " in first
    row = json.loads(run(home, "usage", "session", "--json").stdout)["rows"][0]
    assert (row["title"], row["project"], row["ended"][:10]) == ("Fix the timer", "/work/shop", "2026-11-02")
    shown = STYLE.sub("", on_a_terminal(home, "usage", "session", COLUMNS="80")).splitlines()
    assert max(map(len, shown)) <= 80 and "Fix the timer" in shown[1]


def test_the_total_names_the_models_without_a_price(home: Path) -> None:
    assert run(home, "usage").stdout.splitlines()[-1].endswith("1 unpriced  llama-unknown (1)")
    shown = STYLE.sub("", on_a_terminal(home, "usage", COLUMNS="80"))
    assert "llama-unknown (1)" in shown and max(map(len, shown.splitlines())) <= 80
    assert json.loads(run(home, "usage", "--json").stdout)["unpriced_models"] == ["llama-unknown"]
    assert json.loads(run(home, "usage", "--model", "opus", "--json").stdout)["unpriced_models"] == []
