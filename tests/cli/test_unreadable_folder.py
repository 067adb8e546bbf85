"""A folder that was chosen once for logs, and that nobody can look into now: it stops no command."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.sessions import write_session
from tests.commands import run_command

from agent_logger.agents.registry import AGENTS
from agent_logger.home.facts import register_log_folder

TOO_LONG = Path("/", "long" * 100)  # of such a path, the system refuses every question, also to root
# What is typed, and a text of the answer.
ANSWERS = {
    "ls": "Fix the timer",
    "usage": "total",
    "show last": "Fix the timer",
    "search timer": "Fix the timer",
    "find last": ".jsonl",
    "du": ".agent-logger",
    "verify": "0 damaged",
    "doctor": "cannot be read: File name too long",
}


@pytest.mark.parametrize(("typed", "answer"), ANSWERS.items())
@pytest.mark.parametrize("is_chosen", [False, True], ids=["once", "now"])
def test_a_folder_that_nobody_can_look_into_stops_no_command(
    home: Path, typed: str, answer: str, is_chosen: bool
) -> None:
    write_session(home, 1, datetime.now(UTC), "Fix the timer")
    register_log_folder(home / ".agent-logger", TOO_LONG)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    chosen = {"AGENT_LOGGER_LOG_DIR": str(TOO_LONG)} if is_chosen else {}
    done = run_command(typed.split(), environment | chosen, folder=home)
    assert (done.returncode, answer in done.stdout) == (0, True), done


VARIABLES = sorted({agent.location.variable for agent in AGENTS if agent.location and agent.location.variable})


@pytest.mark.parametrize("variable", [*VARIABLES, "AGENT_LOGGER_AGENT_FOLDERS", "XDG_DATA_HOME"])
def test_a_folder_of_an_agent_that_nobody_can_look_into_stops_no_command(home: Path, variable: str) -> None:
    write_session(home, 1, datetime.now(UTC), "Fix the timer")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), variable: str(TOO_LONG)}
    for typed in ("ls --all", "find", "doctor", "archive"):
        done = run_command(typed.split(), environment, folder=home)
        assert done.returncode == 0, done
