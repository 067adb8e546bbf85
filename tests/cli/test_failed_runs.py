"""Runs that failed: what `ls` and the page say about them."""

import json
import os
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_command
from tests.recording.played import script
from tests.web.page_process import showing

from agent_logger.agents.claude_code.naming import project_folders

SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"
INIT = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "claude-opus-4"}
ANSWER = {
    "type": "assistant",
    "session_id": SESSION,
    "message": {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "Let me look."}]},
}
RESULT = {"type": "result", "subtype": "success", "session_id": SESSION, "is_error": False, "result": "Done."}


class Runs:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "bin").mkdir()
        self.environment = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "COLUMNS": "100"}

    def run(self, text: str, *command: str) -> None:
        script(self.home / "bin/claude", text)
        words = ["run", "--sessions-dir", str(self.home / "s"), "--log-dir", str(self.home / "l"), "--", *command]
        run_command(words, self.environment, folder=self.home)

    def claude(self, *messages: object, end: str = "exit 0") -> None:
        """Run Claude Code with output in JSON."""
        lines = "\n".join(f"printf '%s\\n' {shlex.quote(json.dumps(message))}" for message in messages)
        self.run(f"{lines}\n{end}", "claude", "-p", "Fix the timer", "--output-format", "stream-json", "--verbose")

    @property
    def row(self) -> dict[str, Any]:
        done = run_command(["ls", "--json"], self.environment, folder=self.home)
        (row,) = json.loads(done.stdout)
        return dict(row)

    def listed(self) -> str:
        done = run_command(["ls"], self.environment, folder=self.home)
        return done.stdout + done.stderr


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


LIMIT = {**RESULT, "subtype": "error_max_turns", "result": None}
API_ERROR = {**RESULT, "is_error": True, "api_error_status": 529, "terminal_reason": "api_error"}


@pytest.mark.parametrize(
    ("messages", "end", "failure"),
    [
        pytest.param([INIT, ANSWER, RESULT], "exit 0", None, id="success"),
        pytest.param([INIT, ANSWER, LIMIT], "exit 1", "failed: max turns", id="a limit"),
        pytest.param([INIT, ANSWER, API_ERROR], "exit 1", "failed: api error", id="the API"),
        pytest.param([INIT, ANSWER], "exit 1", "failed: exit code 1", id="no result"),
        pytest.param([INIT, ANSWER], "kill -9 $$", "failed: signal 9", id="killed"),
        pytest.param([INIT, ANSWER], "kill -INT $$", "interrupted", id="interrupted"),
        pytest.param([INIT, ANSWER], "exit 143", "interrupted", id="exit code of an interrupted program"),
        pytest.param([], "exit 2", "failed: exit code 2", id="nothing printed"),
    ],
)
def test_a_failed_run_is_marked_with_the_reason(
    runs: Runs, messages: list[object], end: str, failure: str | None
) -> None:
    runs.claude(*messages, end=end)
    assert runs.row["failure"] == failure
    _, row, *below = runs.listed().splitlines()
    short_id = row.split()[2].rstrip("!")
    assert ("!  " in row) is (failure is not None)
    assert below == ([f"! {failure} ({short_id})"] if failure else [])


def test_a_command_that_is_no_agent_is_marked_too(runs: Runs) -> None:
    runs.run("", "sh", "-c", "echo trouble; exit 3")
    assert runs.row["failure"] == "failed: exit code 3"


def test_the_last_run_of_a_session_decides(runs: Runs) -> None:
    runs.claude(INIT, ANSWER, LIMIT, end="exit 1")
    runs.claude(INIT, ANSWER, RESULT)
    assert (runs.row["exchanges"], runs.row["failure"]) == (2, None)
    runs.claude(INIT, ANSWER, LIMIT, end="exit 1")
    assert (runs.row["exchanges"], runs.row["failure"]) == (3, "failed: max turns")


def test_the_exit_of_a_run_outranks_a_transcript_that_looks_whole(runs: Runs) -> None:
    """Printed as text, nothing but the exit code says that the run failed."""
    folder = runs.home / ".claude/projects" / project_folders(runs.home)[0]
    times = {"sessionId": SESSION, "cwd": str(runs.home), "timestamp": "@"}
    user = {"type": "user", "uuid": "u1", **times, "message": {"role": "user", "content": "Fix the timer"}}
    answer = {**ANSWER["message"], "stop_reason": "end_turn", "model": "claude-opus-4"}  # type: ignore[dict-item]
    assistant = {"type": "assistant", "uuid": "a1", "parentUuid": "u1", **times, "message": answer}
    (runs.home / "lines").write_text(f"{json.dumps(user)}\n{json.dumps(assistant)}\n")
    copy = f'mkdir -p {folder}; sed "s/@/$(date -u +%FT%TZ)/" {runs.home}/lines > {folder}/{SESSION}.jsonl'
    runs.run(f"{copy}\necho Let me look.\nexit 1", "claude", "-p", "Fix the timer")
    assert (runs.row["witnesses"], runs.row["failure"]) == (["run", "transcript"], "failed: exit code 1")
    assert runs.row["exchanges"] == 1


def test_sessions_that_failed_for_the_same_reason_share_a_line(runs: Runs) -> None:
    for code in (3, 3, 4):
        runs.run("", "sh", "-c", f"exit {code}")
    below = [line for line in runs.listed().splitlines() if line.startswith("! ")]
    assert [(line.partition(" (")[0], line.count(",")) for line in below] == [
        ("! failed: exit code 4", 0),
        ("! failed: exit code 3", 1),
    ]
    runs.environment["COLUMNS"] = "40"
    assert max(map(len, runs.listed().splitlines()[-2:])) <= 40


def test_the_page_shows_the_reason_in_the_list_and_on_the_session(runs: Runs) -> None:
    runs.claude(INIT, ANSWER, LIMIT, end="exit 1")
    with showing(runs.home) as page:
        page.settle()
        cookie = page.cookie()
        for path in ("/sessions", f"/sessions/{SESSION}"):
            answer = page.ask(path, cookie=cookie)
            assert (answer.status, "failed: max turns" in unescape(answer.text)) == (200, True), path
        (item,) = json.loads(page.ask("/api/v1/sessions", cookie=cookie).text)["items"]
        assert item["failure"] == "failed: max turns"
