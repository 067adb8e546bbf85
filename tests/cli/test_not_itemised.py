"""What a client counts beyond the responses that were told, as commands and the page show it."""

import json
import os
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.recording.sdk_fixtures import SDK, objects
from tests.web.page_process import showing

from agent_logger import SessionLogger
from agent_logger.home.facts import register_log_folder

SESSION = "416b4d36"


@pytest.fixture
def logged(home: Path) -> Path:
    """A session with sub-agents that only the SDK's logger saw."""
    with SessionLogger(home / "s") as logger:
        for _, message in objects(SDK / "client_subagents" / "subagent.jsonl"):
            logger.log(message)
    register_log_folder(home / ".agent-logger", home / "s")
    return home


def printed(home: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "120", "TZ": "UTC"}
    done = run_command([*arguments], environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_usage_of_a_single_sdk_log_matches_its_result_message(logged: Path) -> None:
    [row] = json.loads(printed(logged, "usage", "session", "--json"))["rows"]
    assert row["cost_usd"] == 0.024242
    assert (row["input_tokens"], row["output_tokens"]) == (15, 295)
    assert (row["cache_read_tokens"], row["cache_write_tokens"]) == (3410, 3520)


def test_explain_shows_usage_that_is_not_itemised_as_a_separate_row(logged: Path) -> None:
    told = json.loads(printed(logged, "usage", "--explain", SESSION, "--json"))
    [rest] = [row for row in told["rows"] if row["joined_by"] == "result"]
    assert (rest["model"], rest["message_id"], rest["copies"]) == ("claude-opus-5-5", None, 0)
    assert rest["why"].startswith("not itemised")
    assert sum(row["cost_usd"] for row in told["rows"]) == pytest.approx(told["totals"]["cost_usd"])
    assert told["totals"]["responses"] == len(told["rows"]) - 1
    text = printed(logged, "usage", "--explain", SESSION)
    assert "not itemised" in text
    assert "estimated cost: $0.0242" in text
    assert "reported by the client: $0.0242" in text


def test_show_lists_usage_that_is_not_itemised(logged: Path) -> None:
    text = printed(logged, "show", SESSION)
    assert "not itemised: claude-opus-5-5" in text
    assert "$0.0242" in text
    [rest] = json.loads(printed(logged, "show", SESSION, "--json"))["not_itemised"]
    assert (rest["model"], rest["exchange"]) == ("claude-opus-5-5", 1)
    assert "not itemised: claude-opus-5-5" in printed(logged, "export", SESSION, "--to", "md")


def test_the_page_shows_usage_that_is_not_itemised(logged: Path) -> None:
    with showing(logged) as page:
        page.settle()
        cookie, base = page.cookie(), "/sessions/416b4d36-871a-434e-9be3-5412c272366c"
        for path in (base, f"{base}/why", f"{base}/why?exchange=1"):
            answer = page.ask(path, cookie=cookie)
            assert "not itemised" in answer.text.lower(), path
            assert "0.0242" in answer.text, path
