"""Labels, pins and notes on sessions."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.sessions import ID, write_session
from tests.commands import run_command
from tests.proxy.conversing import Client, World

from agent_logger.home.marks import label_session, session_labelled

DAY = datetime(2026, 11, 2, 12, tzinfo=UTC)
ONE, TWO, THREE = map(ID.format, (1, 2, 3))


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    for number, prompt in enumerate(("Fix the timer", "Write a poem", "Break the build"), 1):
        write_session(home, number, DAY + timedelta(days=number), prompt)


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command([*arguments], {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "140", "TZ": "UTC"})


def listed(home: Path, *arguments: str) -> list[str]:
    return [row["id"] for row in json.loads(run(home, "ls", "--json", *arguments).stdout)]


def marks(home: Path, session: str) -> tuple[list[str], bool, str | None]:
    row = next(row for row in json.loads(run(home, "ls", "--json").stdout) if row["id"] == session)
    return row["labels"], row["pinned"], row["note"]


def test_marks_are_listed_shown_found_and_removed(home: Path) -> None:
    assert "[todo, flaky test]" in run(home, "tag", ONE[:8], "todo", "flaky test").stdout
    run(home, "tag", ONE[:8], "--pin", "--note", "the clock was wrong")
    run(home, "tag", TWO[:8], "todo")
    assert marks(home, ONE) == (["todo", "flaky test"], True, "the clock was wrong")
    assert "[pinned, todo, flaky test] Fix the timer" in run(home, "ls").stdout
    shown = run(home, "show", ONE).stdout
    assert "[pinned, todo, flaky test]" in shown and "note: the clock was wrong" in shown
    assert listed(home, "--label", "TODO") == [TWO, ONE]
    assert listed(home, "--label", "todo", "--pinned") == [ONE]
    assert listed(home, "--label", "nobody") == []
    assert run(home, "show", "flaky test").stdout == shown
    run(home, "tag", ONE, "--remove", "todo", "--unpin", "--note", "")
    assert marks(home, ONE) == (["flaky test"], False, None)
    assert listed(home, "--label", "todo") == [TWO]
    assert [row["session"] for row in json.loads(run(home, "tag", "--json").stdout)] == [ONE, TWO]


def test_marks_outlive_the_catalog(home: Path) -> None:
    run(home, "tag", "last", "todo", "--pin")
    for path in (home / ".agent-logger").glob("catalog*"):
        path.unlink()
    assert marks(home, THREE) == (["todo"], True, None)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("clock", [(ONE, "note")]),
        ("clock label:todo", [(ONE, "note")]),
        ("clock project:elsewhere", []),
        ("clock agent:claude", [(ONE, "note")]),
        ("tool:Bash clock", []),
        ("label:todo", [(ONE, "note"), (TWO, "label")]),
        ("is:pinned", [(TWO, "label")]),
        ("poem is:pinned", [(TWO, "input")]),
        ("poem label:nobody", []),
    ],
)
def test_marks_are_searched(home: Path, words: str, found: list[tuple[str, str]]) -> None:
    run(home, "tag", ONE, "todo", "--note", "the clock was wrong")
    run(home, "tag", TWO, "todo", "--pin")
    hits = json.loads(run(home, "search", "--json", *words.split()).stdout)
    assert sorted((hit["session"], hit["kind"]) for hit in hits) == found


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("tag", "--pin"), "tag ID LABEL"),
        (("tag", "nobody", "todo"), "agent-logger ls"),
        (("tag", ONE, " "), "1 to 100 characters"),
    ],
)
def test_marks_without_a_session_or_a_label_are_an_error(home: Path, words: tuple[str, ...], hint: str) -> None:
    done = run(home, *words)
    assert done.returncode in (1, 2) and hint in done.stderr


def test_keys_and_control_characters_in_a_note_do_no_harm(home: Path) -> None:
    key = "sk-ant-api03-" + "Qz7" * 20
    run(home, "tag", ONE, "--note", f"use {key}\x1b[31m")
    assert key not in (home / ".agent-logger" / "facts.jsonl").read_text()
    for words in (("tag",), ("show", ONE), ("ls",), ("search", "use")):
        done = run(home, *words)
        assert key not in done.stdout and "\x1b" not in done.stdout


def test_marks_of_a_log_are_marks_of_its_session(home: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    Client(world.relay, "0b1c2d3e-named").ask("hello")
    world.record()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENT_LOGGER_HOME": str(world.home)}

    def told(*words: str) -> dict[str, Any]:
        row: dict[str, Any] = next(
            row for row in json.loads(run_command([*words, "--json"], environment).stdout) if "named" in str(row)
        )
        return row

    row = told("ls")
    assert row["log"] != row["id"]
    label_session(world.home, row["log"], "todo")
    assert told("ls")["labels"] == ["todo"]
    assert told("tag", row["id"], "--remove", "todo")["labels"] == []
    assert session_labelled(world.home, "todo") is None


def test_processes_at_the_same_time_lose_no_mark(home: Path) -> None:
    run(home, "ls")
    command = [sys.executable, "-m", "agent_logger", "tag", ONE]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with ThreadPoolExecutor(8) as threads:
        labels = [f"label-{number}" for number in range(8)]
        done = threads.map(lambda label: subprocess.run([*command, label], env=environment, check=True), labels)
        assert len(list(done)) == 8
    assert sorted(marks(home, ONE)[0]) == labels


def test_a_killed_process_leaves_the_facts_whole(home: Path) -> None:
    facts = home / ".agent-logger" / "facts.jsonl"
    run(home, "tag", ONE, "first")
    script = (
        "import sys, pathlib\nfrom agent_logger.home.marks import label_session\n"
        "for number in range(10**6): label_session(pathlib.Path(sys.argv[1]), sys.argv[2], f'label-{number}')"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(facts.parent), TWO]) as process:
        while b"label-3" not in facts.read_bytes():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    for line in facts.read_bytes().splitlines():
        assert json.loads(line)
    run(home, "tag", ONE, "last one")
    assert marks(home, ONE)[0] == ["first", "last one"]


def test_a_torn_line_hides_no_other_mark(home: Path) -> None:
    facts = home / ".agent-logger" / "facts.jsonl"
    run(home, "tag", ONE, "first")
    with facts.open("a") as file:
        file.write('{"type":"label","session":"')
    run(home, "tag", ONE, "second")
    assert marks(home, ONE)[0] == ["first", "second"]
