"""What `find`, `ls` and `usage` print, as their pages say."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.agents.foreign import DATA
from tests.commands import run_command

PAGES = Path(__file__).parents[2] / "docs" / "commands"
EXAMPLE = re.compile(r"^```\n\$ agent-logger (.*)\n((?:.*\n)*?)```$", re.MULTILINE)

# The home of the examples.
SCENARIOS = ("claude-cli/2.1.325/resume_chain", "codex/0.166.0/exec_resume")


def home_of_examples(home: Path) -> None:
    for scenario in SCENARIOS:
        shutil.copytree(DATA / scenario / "home", home, dirs_exist_ok=True)
    shutil.copy(DATA / "claude-cli/2.1.325/interactive_tui/home/.claude/history.jsonl", home / ".claude")
    for path in home.rglob("*.jsonl"):
        os.utime(path, (1_794_700_000, 1_794_700_000))


EXAMPLES = [
    pytest.param(line, printed, id=f"{page}: {line}")
    for page in ("find", "ls", "usage")
    for line, printed in EXAMPLE.findall((PAGES / f"{page}.md").read_text())
]


@pytest.mark.parametrize(("line", "printed"), EXAMPLES)
def test_documented_examples_match_the_printed_output(home: Path, line: str, printed: str) -> None:
    home_of_examples(home)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "TZ": "UTC"}
    done = run_command(shlex.split(line), environment)
    assert done.returncode == 0
    assert _in_any_year(done.stdout.replace(str(home), "/home/user")) == _in_any_year(printed)


def _in_any_year(text: str) -> str:
    """A day of another year is told with that, and without the time."""
    return re.sub(r"(^|  )(?:\d{4}-\d\d-\d\d |\d\d-\d\d \d\d:\d\d)", r"\1(when)", text, flags=re.MULTILINE)


def test_the_pages_contain_at_least_five_examples() -> None:
    assert len(EXAMPLES) >= 5
