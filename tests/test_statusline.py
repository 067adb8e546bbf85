"""The line for Claude Code's status bar."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.claude_code.status_line import SessionStatus, read_status
from tests.cli.sessions import write_session
from tests.cli.test_run import Terminal
from tests.clients import ANTHROPIC_KEY, NOWHERE, QUIET_CLAUDE, find_claude
from tests.commands import run_command
from tests.fakeapi import FakeAPI

# As Claude Code 2.1 passes it, shortened.
INPUT: dict[str, Any] = {
    "hook_event_name": "Status",
    "session_id": "00000001-2222-4222-8222-222222222222",
    "transcript_path": "/tmp/x.jsonl",
    "cwd": "/work/shop",
    "model": {"id": "claude-opus-4-5", "display_name": "Opus 4.5"},
    "workspace": {"current_dir": "/work/shop", "project_dir": "/work/shop"},
    "version": "2.1.325",
    "cost": {"total_cost_usd": 0.4567, "total_duration_ms": 45000, "total_lines_added": 1},
    "context_window": {"context_window_size": 200000, "used_percentage": 42.4},
}


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}


def line(home: Path, given: str | None = None) -> str:
    done = run_command(["statusline"], environment(home), said=json.dumps(INPUT) if given is None else given)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    return done.stdout.strip()


def settled_line(home: Path, wanted: str) -> str:
    """The line, as soon as the catalog is up to date."""
    give_up = time.monotonic() + 60
    while wanted not in (text := line(home)) and time.monotonic() < give_up:
        time.sleep(0.2)
    return text


def test_the_line_has_the_costs_of_session_day_and_block_and_the_context(home: Path) -> None:
    write_session(home, 1, datetime.now(UTC), "Fix the timer", output_tokens=40_000)
    write_session(home, 2, datetime.now(UTC) - timedelta(days=2), "Earlier", output_tokens=40_000)
    text = settled_line(home, "today")
    form = r"Opus 4\.5 \| \$0\.46 session \| \$1\.00 today \| \$1\.00 block, (\d h )?\d+ m left \| 42% context"
    assert re.fullmatch(form, text), text
    usage = json.loads(run_command(["usage", "--since", "today", "--json"], environment(home)).stdout)
    assert f"{usage['totals']['cost_usd']:.2f}" == "1.00"


def test_new_usage_is_in_a_later_line(home: Path) -> None:
    write_session(home, 1, datetime.now(UTC), "Fix the timer", output_tokens=40_000)
    settled_line(home, "$1.00 today")
    write_session(home, 2, datetime.now(UTC), "More", output_tokens=80_000)
    assert "$3.00 today" in settled_line(home, "$3.00 today")


def test_an_unknown_price_is_not_zero(home: Path) -> None:
    write_session(home, 1, datetime.now(UTC), "Fix the timer", model="llama-unknown")
    assert "| ? today | ? block, " in settled_line(home, "today")


def test_without_usage_the_line_has_what_the_agent_says(home: Path) -> None:
    assert settled_line(home, "today") == "Opus 4.5 | $0.46 session | $0.00 today | 42% context"


@pytest.mark.parametrize("given", ["", "garbage", "[]", "null", "{", '{"model": 7, "cost": []}', "[" * 100_000, "\x00"])
def test_any_input_gets_a_line_and_exit_code_0(home: Path, given: str) -> None:
    assert line(home, given)


def test_a_home_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = {**environment(tmp_path), "AGENT_LOGGER_HOME": str(tmp_path / "file" / "home")}
    done = run_command(["statusline"], blocked, said=json.dumps(INPUT))
    assert (done.returncode, done.stdout) == (0, "Opus 4.5 | $0.46 session | 42% context\n")


def test_input_that_stays_open_is_not_waited_for(home: Path) -> None:
    command = [sys.executable, "-m", "agent_logger", "statusline"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment(home)) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(INPUT).encode())
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"Opus 4.5")
        assert process.wait(10) == 0


def test_control_characters_in_a_name_do_not_reach_the_terminal(home: Path) -> None:
    text = line(home, json.dumps({**INPUT, "model": {"display_name": "Op\x1b[31mus\n\n" + "x" * 1000}}))
    assert "\x1b" not in text and len(text) < 200


CURRENT_USAGE = {"input_tokens": 50, "cache_read_input_tokens": 150}
STATUSES = [
    (INPUT, SessionStatus(model="Opus 4.5", cost_usd=0.4567, context_percent=42.4)),
    ({"model": {"id": "opus"}}, SessionStatus(model="opus")),
    ({"cost": {"total_cost_usd": "much"}}, SessionStatus()),
    ({"cost": {"total_cost_usd": True}}, SessionStatus()),
    (
        {
            "context_window": {
                "context_window_size": 1000,
                "current_usage": {"input_tokens": 50, "cache_read_input_tokens": 150},
            }
        },
        SessionStatus(context_percent=20.0),
    ),
    ({"context_window": {"context_window_size": 0, "current_usage": {"input_tokens": 50}}}, SessionStatus()),
    ({"rate_limits": {"five_hour": {"used_percentage": 23}}}, SessionStatus(limit_percent=23.0)),
]


@pytest.mark.parametrize(("fields", "status"), STATUSES)
def test_versions_of_the_input_are_read_as_far_as_they_go(fields: dict[str, Any], status: SessionStatus) -> None:
    assert read_status(json.dumps(fields).encode()) == status


FIELDS = st.sampled_from(list(INPUT))
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(FIELDS, inner),
)


@given(JSON)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_json_breaks_the_reader(value: Any) -> None:
    assert isinstance(read_status(json.dumps(value).encode()), SessionStatus)


def test_a_line_takes_little_processor_time(home: Path) -> None:
    for number in range(1, 101):
        write_session(home, number, datetime.now(UTC) - timedelta(hours=number), "Fix the timer")
    settled_line(home, "today")
    command = [sys.executable, "-m", "agent_logger", "statusline"]
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command, input=json.dumps(INPUT).encode(), env=environment(home), check=True, capture_output=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.15


READS, LEAVES = b"\x1b[?2004h", b"\x1b[?2004l"  # Claude Code asks for pastes to be marked, and takes that back
HELLO = {"lanes": [{"name": "all", "repeat": True, "turns": [{"text": "Good evening from the script."}]}]}


@pytest.mark.needs("claude")
def test_claude_code_shows_the_line_in_its_status_bar(home: Path, tmp_path: Path) -> None:
    project, stored = tmp_path / "project", tmp_path / "input.json"
    project.mkdir()
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    answered = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(project): trusted},
        "customApiKeyResponses": {"approved": [ANTHROPIC_KEY[-20:]], "rejected": []},
    }
    (home / ".claude.json").write_text(json.dumps(answered))
    command = f"tee {stored} | {sys.executable} -m agent_logger statusline"
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps({"statusLine": {"type": "command", "command": command}}))
    with FakeAPI(HELLO) as api:
        variables = {
            **QUIET_CLAUDE,
            **environment(home),
            "AGENT_LOGGER_HOME": str(home / ".agent-logger"),
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1",
            "TERM": "xterm-256color",
        }
        terminal = Terminal(variables, "--", str(find_claude()), cwd=project)
        terminal.wait_for(READS)
        terminal.type_until(b"hello there", b"there")
        terminal.type_until(b"\r", b"evening")
        terminal.wait_for(b"today")
        while (
            not (read_status(stored.read_bytes()).cost_usd or 0) > 0
        ):  # the first line may come before the answer counts
            time.sleep(0.05)
        terminal.type_until(b"\x03\x03", LEAVES)
        assert terminal.end() == 0
    status = read_status(stored.read_bytes())
    assert status.model and status.cost_usd and status.context_percent is not None
