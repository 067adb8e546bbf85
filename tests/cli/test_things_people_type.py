"""Things that people type, right and wrong: each gets its answer, or an error that names the right word.

`python -m tests.cli.test_things_people_type` prints the table.
"""

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.sessions import write_session
from tests.commands import run_command

# What is typed, and a text of the answer on stdout.
RIGHT = {
    "usage": "total",
    "usage monthly": "month ",
    "usage --by month": "month ",
    "usage daily --since 7d": "day ",
    "usage weekly": "week ",
    "usage blocks": "block ",
    "usage model --since 'this month'": "claude-opus-4-5",
    "usage session": "Fix the timer",
    "usage --since monday": "total",
    "usage --since yesterday --until yesterday": "total",
    "usage --since 'last month'": "total",
    "usage --explain last": "estimated cost",
    "ls --sort cost": "Fix the timer",
    "ls -n 5": "last active",
    "ls --limit 5": "last active",
    "ls --agent claude": "Fix the timer",
    "ls --since today": "Write a poem",
    "show": "Write a poem",
    "show last": "Write a poem",
    "tree last": "Write a poem",
    "find last": ".jsonl",
    "export last --to md": "Write a poem",
    "search timer --since 2w": "--turn 0",
    "tag last todo": "[todo]",
    "help": "agent-logger ls",
    "help usage": "--since",
    "version": "agent-logger 0",
    "--version": "agent-logger 0",
}
# What is typed, and the right word in the error.
WRONG = {
    "sessions": "did you mean ls?",
    "list": "did you mean ls?",
    "log": "did you mean ls?",
    "history": "did you mean ls?",
    "stats": "did you mean usage?",
    "cost": "did you mean usage?",
    "monthly": "did you mean usage month?",
    "today": "did you mean usage --since today?",
    "dashboard": "did you mean view?",
    "delete last": "did you mean rm?",
    "grep timer": "did you mean search?",
    "claude": "did you mean run -- claude?",
    "usgae": "did you mean usage?",
    "usage today": "use --since today",
    "usage --today": "use --since today",
    "usage --month": "use --since 'this month'",
    "usage --group-by model": "use --by",
    "usage price": "not one of day, week, month",
    "usage --since soon": "try 2026-11-01, today, monday, 7d, 'last week'",
    "usage --agent cloude": "known: claude-code (claude)",
    "ls --sort price": "did you mean cost?",
    "ls --sort date": "did you mean time?",
    "ls --order cost": "use --sort",
    "ls --tag todo": "use --label",
    "ls --from monday": "use --since",
    "ls 5": "use --limit 5",
    "ls yesterday": "use --since yesterday",
    "ls claude": "use --agent claude",
    "ls --limit few": "'few' is not a whole number",
    "ls --min-cost cheap": "'cheap' is not a number",
    "show latest": "'last' is the most recent one",
    "show ./session.jsonl": "./session.jsonl: No such file",
    "show /": "/ is a folder",
    f"show /{'long' * 100}": "File name too long",
    "show last --turn 3": "the session has 1 turn, numbered from 0",
    "search is:pin": "is:pinned",
    "tag --pin": "agent-logger tag ID LABEL",
}


def write_sessions(home: Path) -> None:
    now = datetime.now(UTC)
    yesterday = datetime.now().astimezone().replace(hour=12) - timedelta(days=1)
    write_session(home, 1, yesterday, "Fix the timer", output_tokens=9000)
    write_session(home, 2, now - timedelta(seconds=1), "Write a poem")


def run(home: Path, typed: str) -> subprocess.CompletedProcess[str]:
    import shlex

    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
    return run_command(shlex.split(typed), environment, folder=home)


@pytest.mark.parametrize(("typed", "answer"), RIGHT.items())
def test_the_right_answer_is_printed(home: Path, typed: str, answer: str) -> None:
    write_sessions(home)
    done = run(home, typed)
    assert (done.returncode, answer in done.stdout) == (0, True), done


@pytest.mark.parametrize(("typed", "right_word"), WRONG.items())
def test_an_error_names_the_right_word(home: Path, typed: str, right_word: str) -> None:
    write_sessions(home)
    done = run(home, typed)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert right_word in done.stderr and "\n" not in done.stderr.strip()


def _print_table() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_sessions(Path(folder))
        for typed in (*RIGHT, *WRONG):
            done = run(Path(folder), typed)
            text = (done.stdout or done.stderr).strip().splitlines() or ["-"]
            sys.stdout.write(f"{done.returncode}  {typed:45}  {text[0]}\n")


if __name__ == "__main__":
    _print_table()
