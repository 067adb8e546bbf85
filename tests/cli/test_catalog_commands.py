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


def test_a_fork_is_listed_under_its_parent_and_output_fits_the_columns(world: Path) -> None:
    lines = run(world, "ls").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    narrow = run(world, "ls", COLUMNS="40").stdout.splitlines()
    assert max(map(len, narrow)) <= 40
    assert "Fix the" in "".join(narrow)
    parent = next(at for at, line in enumerate(lines) if "00000001" in line)
    assert "00000002" in lines[parent + 1]
    assert "└" in lines[parent + 1]
    assert "\x1b" not in "".join(lines)


def test_logs_are_read_from_the_configured_folders(home: Path) -> None:
    name, other = "20261115-080000-abcd", "20261115-090000-abcd"
    write_log(home / "copied" / "anthropic", name, [start(name), *calls(1)])
    write_log(home / "more" / "anthropic", other, [start(other), *calls(1)])
    assert "No sessions yet" in run(home, "ls").stderr
    assert run(home, "show", name, AGENT_LOGGER_LOG_DIR=str(home / "copied")).stdout.startswith("      session")
    (home / ".agent-logger").mkdir(exist_ok=True)
    (home / ".agent-logger" / "config.toml").write_text(f'sessions_dir = "{home}/more"\n')
    assert {it["id"] for it in json.loads(run(home, "ls", "--json").stdout)} == {name, other}
    run(home, "ls", AGENT_LOGGER_LOG_DIR=str(home / "not-there"))
    assert not (home / "not-there").exists()


def test_output_of_a_run_is_shown_searched_and_exported(home: Path) -> None:
    script = "printf 'seen \\033[31mzebras\\033[0m\\n'; echo trouble >&2; exit 3"
    run(home, "run", "--sessions-dir", str(home / "s"), "--", "sh", "-c", script, code=3)
    (name,) = (it["id"] for it in json.loads(run(home, "ls", "--json").stdout))
    shown = run(home, "show", name).stdout
    assert "sh -c " in shown
    assert [line.strip() for line in shown.splitlines()][-3:] == [
        "seen zebras",
        "trouble",
        "(incomplete (exit code 3))",
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
    assert run(home, "show", newest["id"]).stdout.rstrip().endswith("(incomplete (exit code 1))")


def test_every_log_folder_is_verified_and_measured_once(world: Path) -> None:
    register_log_folder(world / ".agent-logger", world / "logs" / "anthropic")
    assert run(world, "verify").stdout.startswith("2 files, ")  # the log, and what is known of folders
    measured = {it["path"]: it["logs"] for it in json.loads(run(world, "du", "--json").stdout)}
    assert measured == {str(world / ".agent-logger"): 1, str(world / "logs"): 1}


def test_a_word_inside_colour_codes_is_found(home: Path) -> None:
    said = "\x1b[1;31mFAILED\x1b[0m tests/test_timer.py"
    claude_file(home, ONE, [user(1, "Test it", ONE), *tool(2, ONE, "Bash", {"command": "make"}, said)])
    assert "FAILED tests/test_timer.py" in run(home, "search", "failed").stdout


def test_a_session_of_another_year_is_listed_with_its_year(home: Path) -> None:
    claude_file(home, ONE, [{**user(1, "Long ago", ONE), "timestamp": "2019-03-04T05:06:07.000Z"}])
    assert run(home, "ls").stdout.splitlines()[1].startswith("2019-03-04")
    assert "  2019-03-04  " in run(home, "tree", ONE).stdout


@pytest.mark.parametrize(("time", "zone"), [("0001-01-01T00:00:00Z", "XXX12"), ("9999-12-31T23:59:59Z", "XXX-14")])
def test_a_time_that_overflows_in_the_local_zone_is_ignored(home: Path, time: str, zone: str) -> None:
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


def test_the_note_about_more_sessions_counts_only_matching_sessions(world: Path) -> None:
    assert "1 of 3 sessions" in run(world, "ls", "-n", "1").stderr
    assert run(world, "ls", "--min-cost", "0.0001", "--agent", "claude-code").stderr == ""


def test_usage_by_tool_is_split_and_explained(world: Path) -> None:
    rows = json.loads(run(world, "usage", "tool", "--agent", "claude-code", "--json").stdout)
    assert {row["key"]: row["responses"] for row in rows["rows"]} == {"Bash": 1, None: 2}
    assert rows["totals"]["output_tokens"] == 102 + 105 + 190
    told = run(world, "usage", "--explain", "00000002").stdout
    assert "seen once (transcript); counted once" in told
    assert f"counted in {ONE}, which had it first" in told
    assert "reported by the client: nothing" in told
    narrow = STYLE.sub("", on_a_terminal(world, "usage", "--explain", "00000002", COLUMNS="70")).splitlines()
    assert max(map(width, narrow)) <= 70
    assert [it.split() for it in told.splitlines()] != [it.split() for it in narrow]
    assert told.split() == " ".join(narrow).split()


def test_usage_totals_fit_a_narrow_terminal(world: Path) -> None:
    lines = STYLE.sub("", on_a_terminal(world, "usage", "model", COLUMNS="40")).splitlines()
    assert max(map(width, lines)) <= 40
    assert lines[0].split() == ["model", "input", "output", "cost"]
    assert lines[-1].startswith("total")


def test_search_results_name_the_turn_to_open(world: Path) -> None:
    told = run(world, "search", "zebra").stdout
    assert "The zebra runs" in told
    assert "agent-logger show 00000001 --turn 1" in told
    (hit,) = json.loads(run(world, "search", "zebra", "--json").stdout)
    assert (hit["session"], hit["turn"], hit["marks"]) == (ONE, 1, [[4, 9]])
    assert "runs" in run(world, "show", "00000001", "--turn", "1").stdout
    assert "No matches" in run(world, "search", "nothing-like-it").stderr


@pytest.mark.parametrize("columns", [40, 80])
def test_search_results_fit_the_terminal_and_highlight_every_match(home: Path, columns: int) -> None:
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


def test_similar_ids_are_shortened_to_their_unique_prefixes(home: Path) -> None:
    ids = ["01a1df80-6d47-7f40-8abe-e75c554681fc", "01a1df80-7890-7630-b878-385c5984b873", ONE]
    for number, name in enumerate(ids):
        claude_file(home, name, [user(1, "zebra", name), assistant(10 + number, "runs", name)])
    short = ["01a1df80-6", "01a1df80-7", ONE[:8]]
    assert sorted(line.split()[2] for line in run(home, "ls").stdout.splitlines()[1:]) == sorted(short)
    usage = run(home, "usage", "session").stdout.splitlines()[1:-1]
    assert sorted(line.split()[0] for line in usage) == sorted(short)
    found = run(home, "search", "zebra").stdout
    for name in short:
        assert f"agent-logger show {name} --turn 0\n" in found
        assert run(home, "tree", name).stdout.startswith(f"{name} *")


def test_a_search_field_without_a_value_is_a_usage_error(world: Path) -> None:
    done = run(world, "search", "zebra", "tool:", code=2)
    assert "tool: needs a value, for example tool:Bash" in done.stderr
    assert "zebra" in run(world, "search", '"the zebra').stdout


def test_rm_names_the_files_and_deletes_the_session(world: Path) -> None:
    log = world / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    assert str(log) in run(world, "rm", "20261115-080000-abcd", "--dry-run").stdout
    assert log.exists()
    run(world, "rm", "20261115-080000-abcd", "--yes")
    assert not log.exists()
    done = run(world, "rm", "00000001", "--yes")
    assert re.search(rf"keep \S+{ONE}\.jsonl", done.stderr)
    assert {row["id"] for row in json.loads(run(world, "ls", "--json").stdout)} == {TWO}
    run(world, "rm", "00000001", "--yes", code=1)


def test_rm_and_prune_delete_nothing_without_confirmation(world: Path) -> None:
    log = world / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    os.utime(log, (time.time() - 3600,) * 2)
    for command in (["rm", log.stem], ["prune", "--larger-than", "1B"]):
        refused = run(world, *command, say="n\n", code=1)
        assert str(log) in refused.stdout
        assert "Permanently delete " in refused.stderr
        question, error = run(world, *command, code=2).stderr.splitlines()[-2:]
        assert question.startswith("Permanently delete ")
        assert error.startswith("agent-logger: not a terminal, so nothing was changed; pass --yes to confirm")
        assert "--yes" in run(world, *command, "--json", say="y\n", code=2).stderr
    assert log.exists()
    assert "1 session" in run(world, "rm", log.stem, log.stem, say="y\n").stdout
    assert not log.exists()


@pytest.mark.parametrize(
    "asked",
    ["ls -n 99999999999999999999", "search zebra -n 99999999999999999999", "prune --older-than 99999y --yes"],
)
def test_very_large_numbers_are_accepted_as_limits(world: Path, asked: str) -> None:
    assert "00000001" in run(world, *asked.split()).stdout or asked.startswith("prune")
    assert "as a size" in run(world, "prune", "--larger-than", "9" * 400, code=2).stderr


def test_a_failed_deletion_is_reported_in_one_line(world: Path) -> None:
    (world / "file").write_text("no folder")
    told = run(world, "rm", ONE, "--yes", code=1, AGENT_LOGGER_HOME=str(world / "file" / "home")).stderr
    last = told.splitlines()[-1]
    assert last.startswith(f"agent-logger: {world / 'file'}")
    assert last.endswith("; not everything was deleted")


def test_prune_deletes_only_large_logs_of_agent_logger(world: Path) -> None:
    run(world, "prune", code=2)
    assert run(world, "prune", "--larger-than", "1GB").stderr == "No sessions match.\n"
    log = world / "logs" / "anthropic" / "20261115-080000-abcd.jsonl"
    old = time.time() - 3600
    os.utime(log, (old, old))
    (told,) = json.loads(run(world, "prune", "--larger-than", "1kB", "--dry-run", "--json").stdout)
    assert told["session"] == "20261115-080000-abcd"
    assert log.exists()
    assert "1 session" in run(world, "prune", "--larger-than", "1kB", "--yes").stdout
    assert not log.exists()
    assert len(json.loads(run(world, "ls", "--json").stdout)) == 2


def test_commands_work_and_warn_if_the_home_is_not_writable(world: Path) -> None:
    (world / "file").write_text("")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(world),
        "AGENT_LOGGER_HOME": str(world / "file" / "x"),
    }
    for arguments in (["ls", "--json"], ["usage", "--json"], ["search", "zebra", "--json"]):
        done = run_command(arguments, environment)
        assert done.returncode == 0
        assert "this command keeps it in memory" in done.stderr
        assert ONE[:8] in done.stdout or "totals" in done.stdout


def test_a_pipe_closed_early_is_not_an_error(world: Path) -> None:
    line = f"{sys.executable} -m agent_logger ls --all --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    environment = {"PATH": os.environ["PATH"], "HOME": str(world)}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_the_first_command_indexes_remaining_sessions_in_the_background(home: Path) -> None:
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
