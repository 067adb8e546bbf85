"""`ls`, `usage`, `search`, `rm` and `prune` as a person runs them."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.cli.terminals import STYLE, on_a_terminal
from tests.commands import run_command
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

from agent_logger import Catalog
from agent_logger.home.facts import register_log_folder
from agent_logger.views.terminal.screen import width

ONE, TWO = ID.format(1), ID.format(2)


@pytest.fixture
def world(home: Path) -> Path:
    lines = [
        user(1, "Fix the timer\x1b[31m", ONE),
        *tool(2, ONE, "Bash", {"command": "make"}, "refused", failed=True),
    ]
    claude_file(home, ONE, [*lines, assistant(5, "The zebra runs", ONE)])
    fork = [{**line, "sessionId": TWO} for line in lines]
    claude_file(home, TWO, [*fork, assistant(90, "another way", TWO)])
    write_log(home / "logs" / "anthropic", "20261115-080000-abcd", [start("20261115-080000-abcd"), *calls(1)])
    register_log_folder(home / ".agent-logger", home / "logs")
    return home


def run(
    home: Path, *arguments: str, code: int = 0, say: str = "", zone: str = "UTC", **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TZ": zone, **variables}
    done = run_command([*arguments], environment, said=say, folder=home)
    assert done.returncode == code, done.stderr
    return done


def test_a_fork_stands_under_its_parent_and_everything_fits_in_80_columns(world: Path) -> None:
    lines = run(world, "ls").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    narrow = run(world, "ls", COLUMNS="40").stdout.splitlines()
    assert max(map(len, narrow)) <= 40
    assert "Fix the" in "".join(narrow)
    parent = next(at for at, line in enumerate(lines) if "00000001" in line)
    assert "00000002" in lines[parent + 1]
    assert "└" in lines[parent + 1]
    assert "\x1b" not in "".join(lines)


def test_logs_from_elsewhere_are_read_where_a_setting_says_they_are(home: Path) -> None:
    name, other = "20261115-080000-abcd", "20261115-090000-abcd"
    write_log(home / "copied" / "anthropic", name, [start(name), *calls(1)])
    write_log(home / "more" / "anthropic", other, [start(other), *calls(1)])
    assert "No sessions yet" in run(home, "ls").stderr
    assert run(home, "show", name, AGENT_LOGGER_LOG_DIR=str(home / "copied")).stdout.startswith(
        "      session"
    )
    (home / ".agent-logger").mkdir(exist_ok=True)
    (home / ".agent-logger" / "config.toml").write_text(f'sessions_dir = "{home}/more"\n')
    assert {it["id"] for it in json.loads(run(home, "ls", "--json").stdout)} == {name, other}
    run(home, "ls", AGENT_LOGGER_LOG_DIR=str(home / "not-there"))
    assert not (home / "not-there").exists()


def test_what_a_run_printed_is_shown_found_and_exported_like_what_an_agent_said(home: Path) -> None:
    script = "printf 'seen \\033[31mzebras\\033[0m\\n'; echo trouble >&2; exit 3"
    run(home, "run", "--sessions-dir", str(home / "s"), "--", "sh", "-c", script, code=3)
    (name,) = (it["id"] for it in json.loads(run(home, "ls", "--json").stdout))
    shown = run(home, "show", name).stdout
    assert "sh -c " in shown
    assert [line.strip() for line in shown.splitlines()][-3:] == [
        "seen zebras",
        "trouble",
        "(exit code 3: not complete)",
    ]
    assert "seen zebras" in run(home, "search", "zebras").stdout
    for form in ("md", "html", "json"):
        assert "trouble" in run(home, "export", name, "--to", form).stdout
    run(home, "run", "--sessions-dir", str(home / "s"), "--", "echo", "all well")
    (newest, _) = json.loads(run(home, "ls", "--json").stdout)
    shown = run(home, "show", newest["id"]).stdout
    assert shown.rstrip().endswith("all well")
    run(home, "run", "--sessions-dir", str(home / "s"), "--", "false", code=1)
    newest, *_ = json.loads(run(home, "ls", "--json").stdout)
    assert run(home, "show", newest["id"]).stdout.rstrip().endswith("(exit code 1: not complete)")


def test_every_folder_that_was_recorded_to_is_checked_and_measured_once(world: Path) -> None:
    register_log_folder(world / ".agent-logger", world / "logs" / "anthropic")
    assert run(world, "verify").stdout.startswith("2 files, ")  # the log, and what is known of folders
    measured = {it["path"]: it["logs"] for it in json.loads(run(world, "du", "--json").stdout)}
    assert measured == {str(world / ".agent-logger"): 1, str(world / "logs"): 1}


def test_a_word_in_colours_is_found(home: Path) -> None:
    said = "\x1b[1;31mFAILED\x1b[0m tests/test_timer.py"
    claude_file(home, ONE, [user(1, "Test it", ONE), *tool(2, ONE, "Bash", {"command": "make"}, said)])
    assert "FAILED tests/test_timer.py" in run(home, "search", "failed").stdout


def test_a_session_of_another_year_says_which(home: Path) -> None:
    claude_file(home, ONE, [{**user(1, "Long ago", ONE), "timestamp": "2019-03-04T05:06:07.000Z"}])
    assert run(home, "ls").stdout.splitlines()[1].startswith("2019-03-04")
    assert "  2019-03-04  " in run(home, "tree", ONE).stdout


@pytest.mark.parametrize(
    ("time", "zone"), [("0001-01-01T00:00:00Z", "XXX12"), ("9999-12-31T23:59:59Z", "XXX-14")]
)
def test_a_time_that_is_none_in_this_zone_is_no_time(home: Path, time: str, zone: str) -> None:
    claude_file(home, ONE, [{**user(1, "zebra", ONE), "timestamp": time}])
    for line in (["show", ONE], ["export", ONE, "--to", "md"]):
        assert "zebra" in run(home, *line, zone=zone).stdout


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["--title", "timer"], {ONE, TWO}),
        (["--witness", "wire"], {"20261115-080000-abcd"}),
        (["--agent", "claude-code", "--model", "haiku"], {ONE, TWO}),
        (["--until", "2026-11-15T00:01:00"], {ONE, TWO}),
        (["--min-cost", "1000"], set()),
        (["-n", "1"], None),
    ],
)
def test_sessions_are_filtered(world: Path, arguments: list[str], ids: set[str] | None) -> None:
    rows = json.loads(run(world, "ls", "--json", *arguments).stdout)
    assert {row["id"] for row in rows} == ids if ids is not None else len(rows) == 1


def test_that_there_are_more_is_said_only_of_those_that_were_asked_for(world: Path) -> None:
    assert "1 of 3 sessions" in run(world, "ls", "-n", "1").stderr
    assert run(world, "ls", "--min-cost", "0.0001", "--agent", "claude-code").stderr == ""


def test_usage_by_tool_is_shared_out_and_explained(world: Path) -> None:
    rows = json.loads(run(world, "usage", "tool", "--agent", "claude-code", "--json").stdout)
    assert {row["key"]: row["responses"] for row in rows["rows"]} == {"Bash": 1, None: 2}
    assert rows["totals"]["output_tokens"] == 102 + 105 + 190
    told = run(world, "usage", "--explain", "00000002").stdout
    assert "seen once (transcript); counted once" in told
    assert f"counts in {ONE}, which had it first" in told
    assert "the client says: nothing" in told
    narrow = STYLE.sub("", on_a_terminal(world, "usage", "--explain", "00000002", COLUMNS="70")).splitlines()
    assert max(map(width, narrow)) <= 70
    assert [it.split() for it in told.splitlines()] != [it.split() for it in narrow]
    assert told.split() == " ".join(narrow).split()


def test_sums_fit_a_narrow_terminal(world: Path) -> None:
    lines = STYLE.sub("", on_a_terminal(world, "usage", "model", COLUMNS="40")).splitlines()
    assert max(map(width, lines)) <= 40
    assert lines[0].split() == ["model", "input", "output", "cost"]
    assert lines[-1].startswith("total")


def test_what_is_found_says_which_turn_to_open(world: Path) -> None:
    told = run(world, "search", "zebra").stdout
    assert "The zebra runs" in told
    assert "agent-logger show 00000001 --turn 1" in told
    (hit,) = json.loads(run(world, "search", "zebra", "--json").stdout)
    assert (hit["session"], hit["turn"], hit["marks"]) == (ONE, 1, [[4, 9]])
    assert "runs" in run(world, "show", "00000001", "--turn", "1").stdout
    assert "Nothing found" in run(world, "search", "nothing-like-it").stderr


@pytest.mark.parametrize("columns", [40, 80])
def test_what_is_found_fits_the_terminal_and_is_marked_wherever_it_stands(home: Path, columns: int) -> None:
    long = " ".join(f"word{number}" for number in range(8))
    said = f"{long} zebra \x1b[2J\u202e {long} zebras {long}"
    claude_file(home, ONE, [user(1, "Where?", ONE), assistant(3, said, ONE)])
    claude_file(home, TWO, [user(2, "斑马在草原上奔跑" * 8 + " zebra " + "草原很大" * 20, TWO)])
    told = on_a_terminal(home, "search", "zebra*", COLUMNS=str(columns))
    plain = STYLE.sub("", told)
    assert max(map(width, plain.splitlines())) <= columns
    assert plain.count("word") == 24  # nothing is left out
    assert "\\x1b[2J\\u202e" in plain
    assert sorted(re.findall(r"\x1b\[1m(\w+)\x1b\[0m", told)) == ["zebra", "zebra", "zebras"]


def test_ids_that_begin_alike_are_told_as_far_as_each_can_be_called_by(home: Path) -> None:
    ids = ["01a1df80-6d47-7f40-8abe-e75c554681fc", "01a1df80-7890-7630-b878-385c5984b873", ONE]
    for number, name in enumerate(ids):
        claude_file(home, name, [user(1, "zebra", name), assistant(10 + number, "runs", name)])
    short = ["01a1df80-6", "01a1df80-7", ONE[:8]]
    assert sorted(line.split()[2] for line in run(home, "ls").stdout.splitlines()[1:]) == sorted(short)
    usage = run(home, "usage", "session").stdout.splitlines()[1:-1]
    assert sorted(line.split()[0] for line in usage) == sorted(short)
    found = run(home, "search", "zebra").stdout
    for name in short:
        assert f"agent-logger show {name}\n" in found
        assert run(home, "tree", name).stdout.startswith(f"{name} *")


def test_a_field_without_a_value_is_wrong_usage(world: Path) -> None:
    done = run(world, "search", "zebra", "tool:", code=2)
    assert "tool: lacks what it should be, as in tool:Bash" in done.stderr
    assert "zebra" in run(world, "search", '"the zebra').stdout


def test_what_is_removed_is_named_and_gone(world: Path) -> None:
    log = world / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    assert str(log) in run(world, "rm", "20261115-080000-abcd", "--dry-run").stdout
    assert log.exists()
    run(world, "rm", "20261115-080000-abcd", "--yes")
    assert not log.exists()
    done = run(world, "rm", "00000001", "--yes")
    assert f"{ONE}.jsonl stays" in done.stderr
    assert {row["id"] for row in json.loads(run(world, "ls", "--json").stdout)} == {TWO}
    run(world, "rm", "00000001", "--yes", code=1)


def test_nothing_is_deleted_before_somebody_agrees(world: Path) -> None:
    log = world / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    os.utime(log, (time.time() - 3600,) * 2)
    for command in (["rm", log.stem], ["prune", "--larger-than", "1B"]):
        refused = run(world, *command, say="n\n", code=1)
        assert str(log) in refused.stdout
        assert "for good?" in refused.stderr
        assert "--yes" in run(world, *command, code=2).stderr
        assert "--yes" in run(world, *command, "--json", say="y\n", code=2).stderr
    assert log.exists()
    assert "1 session" in run(world, "rm", log.stem, log.stem, say="y\n").stdout
    assert not log.exists()


@pytest.mark.parametrize(
    "asked",
    ["ls -n 99999999999999999999", "search zebra -n 99999999999999999999", "prune --older-than 99999y --yes"],
)
def test_a_number_beyond_all_there_is_is_a_number(world: Path, asked: str) -> None:
    assert "00000001" in run(world, *asked.split()).stdout or asked.startswith("prune")
    assert "no size" in run(world, "prune", "--larger-than", "9" * 400, code=2).stderr


def test_what_cannot_be_deleted_is_one_line_that_says_so(world: Path) -> None:
    (world / "file").write_text("no folder")
    told = run(world, "rm", ONE, "--yes", code=1, AGENT_LOGGER_HOME=str(world / "file" / "home")).stderr
    last = told.splitlines()[-1]
    assert last.startswith(f"agent-logger: {world / 'file'}")
    assert last.endswith("; not all was deleted")


def test_what_is_old_or_large_is_pruned_if_it_is_ours(world: Path) -> None:
    run(world, "prune", code=2)
    assert "0 sessions" in run(world, "prune", "--larger-than", "1GB").stdout
    log = world / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    old = time.time() - 3600
    os.utime(log, (old, old))
    (told,) = json.loads(run(world, "prune", "--larger-than", "1kB", "--dry-run", "--json").stdout)
    assert told["session"] == "20261115-080000-abcd"
    assert log.exists()
    assert "1 session" in run(world, "prune", "--larger-than", "1kB", "--yes").stdout
    assert not log.exists()
    assert len(json.loads(run(world, "ls", "--json").stdout)) == 2


def test_a_home_that_cannot_be_written_to_is_said_and_answered_all_the_same(world: Path) -> None:
    (world / "file").write_text("")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(world),
        "AGENT_LOGGER_HOME": str(world / "file" / "x"),
    }
    for arguments in (["ls", "--json"], ["usage", "--json"], ["search", "zebra", "--json"]):
        done = run_command(arguments, environment)
        assert done.returncode == 0
        assert "the catalog is kept in memory" in done.stderr
        assert ONE[:8] in done.stdout or "totals" in done.stdout


def test_a_pipe_that_is_closed_early_is_no_error(world: Path) -> None:
    line = f"{sys.executable} -m agent_logger ls --all --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    environment = {"PATH": os.environ["PATH"], "HOME": str(world)}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_first_look_has_the_rest_read_in_the_background(home: Path) -> None:
    text = "word " * 2000
    for number in range(40):
        name = ID.format(number)
        lines = [user(1, "begin", name), *(assistant(number * 100 + it, text, name) for it in range(60))]
        claude_file(home, name, lines)
    run(home, "usage")
    until = time.monotonic() + 100
    with Catalog.open(home / ".agent-logger") as catalog:
        while catalog.coverage.done < catalog.coverage.total and time.monotonic() < until:
            time.sleep(0.1)
        assert catalog.coverage.is_whole
