"""The real Claude Code and opencode go on with a session that was put back from the archive."""

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_logger.agents.opencode.database import source_of
from agent_logger.agents.opencode.session import responses_of, session_of
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session
from tests.clients import OPENAI_KEY, Sandbox, find_opencode, run_claude
from tests.fakeapi import FakeAPI
from tests.fakeapi.turns import answers, read_scenario

OPENCODE = Path(__file__).parents[1] / "data" / "opencode" / "1.18.33" / "agents_fork"


def archive(sandbox: Sandbox, *options: str) -> str:
    environment = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"]}
    line = [sys.executable, "-m", "agent_logger", "archive", *options]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.needs("claude")
def test_claude_code_resumes_a_deleted_and_restored_session(sandbox: Sandbox) -> None:
    with FakeAPI(answers({"text": "I will remember 4711."}, {"text": "It was 4711."})) as api:
        first = json.loads(run_claude(sandbox, api.url, "-p", "Remember 4711", "--output-format", "json").stdout)
        archive(sandbox, "--seal-after", "1s")
        shutil.rmtree(sandbox.home / ".claude" / "projects")
        lost = run_claude(sandbox, api.url, "-p", "What was it?", "--resume", first["session_id"])
        assert lost.exit_code == 1
        shown = archive(sandbox, "--restore", first["session_id"][:8], "--yes")
        (path,) = [Path(line.removeprefix("write ")) for line in shown.splitlines() if line.endswith(".jsonl")]
        assert path.is_relative_to(sandbox.home / ".claude" / "projects")
        done = run_claude(
            sandbox, api.url, "-p", "What was it?", "--resume", first["session_id"], "--output-format", "json"
        )
        told = json.loads(done.stdout)
        asked = json.loads(api.calls[-1].body)
    assert (told["result"], told["session_id"]) == ("It was 4711.", first["session_id"])
    assert "I will remember 4711." in json.dumps(asked["messages"])
    assert "It was 4711." in path.read_text()


# ---------------------------------------------------------------- opencode


def opencode(sandbox: Sandbox, url: str, *arguments: str, code: int = 0) -> str:
    return in_shell(sandbox, url, shlex.join(["opencode", *arguments]), code=code)


def in_shell(sandbox: Sandbox, url: str, lines: str, code: int = 0) -> str:
    """With the real opencode on the path."""
    prices = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}
    limit = {"context": 200_000, "output": 8_000}
    model = {"name": "Fake", "tool_call": True, "limit": limit, "cost": prices}
    options = {"baseURL": f"{url}/v1", "apiKey": OPENAI_KEY}
    provider = {"npm": "@ai-sdk/anthropic", "name": "Fake", "options": options, "models": {"fake-1": model}}
    settings = {
        "provider": {"fake": provider},
        "model": "fake/fake-1",
        "small_model": "fake/fake-1",
        "autoupdate": False,
        "permission": "allow",
    }
    program = find_opencode()
    assert program
    variables = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    done = sandbox.run(["sh", "-ec", lines], variables, seconds=180)
    assert done.exit_code == code, done.stderr
    return done.stdout


def listed(sandbox: Sandbox, url: str) -> list[str]:
    printed = opencode(sandbox, url, "session", "list", "--format", "json")
    return [session["id"] for session in json.loads(printed or "[]")]


def commands_in(printed: str) -> str:
    return printed.partition("Run these commands to import the session:\n")[2]


@dataclass(frozen=True)
class Recorded:
    """What opencode and our reader say of a session."""

    exports: list[Any]
    session: Session
    responses: list[ModelResponse]


def recorded(sandbox: Sandbox, url: str, database: Path, *names: str) -> Recorded:
    exports = [json.loads(opencode(sandbox, url, "export", name)) for name in names]
    source = source_of(database, names[0])
    return Recorded(exports, session_of(source), list(responses_of(source)))


def state_of(database: Path) -> tuple[dict[str, bytes], int]:
    files = {path.name: path.read_bytes() for path in database.parent.glob("opencode.db*")}
    return files, database.stat().st_mtime_ns


@pytest.mark.long
@pytest.mark.needs("opencode")
def test_opencode_imports_and_continues_a_deleted_session(sandbox: Sandbox) -> None:
    """With a sub-agent, a tool that fails, and thinking."""
    scenario = read_scenario(OPENCODE / "scenario.json", {"CWD": str(sandbox.project)})
    database = sandbox.home / ".local" / "share" / "opencode" / "opencode.db"
    with FakeAPI(scenario) as api:
        opencode(sandbox, api.url, "run", "How many files?")
        (name,) = listed(sandbox, api.url)
        with closing(sqlite3.connect(database)) as made:
            ((sub,),) = made.execute("SELECT id FROM session WHERE parent_id IS NOT NULL").fetchall()
        before = recorded(sandbox, api.url, database, name, sub)
        archive(sandbox)
        opencode(sandbox, api.url, "session", "delete", name)
        assert listed(sandbox, api.url) == []

        untouched = state_of(database)
        commands = commands_in(archive(sandbox, "--restore", name, "--yes"))
        assert state_of(database) == untouched
        imports = [line for line in commands.splitlines() if line.strip().startswith("opencode import")]
        assert len(imports) == 2
        assert all(len(line) <= 80 for line in imports)
        folder = sandbox.home / ".agent-logger" / "restored"
        documents = [json.loads((folder / f"{it}.json").read_text()) for it in (name, sub)]
        assert documents == before.exports

        said = in_shell(sandbox, api.url, f"cd /\n{commands}")
        assert said.splitlines() == [f"Imported session: {it}" for it in (name, sub)]
        assert listed(sandbox, api.url) == [name]
        assert recorded(sandbox, api.url, database, name, sub) == before
        assert sum(response.reported_cost_usd or 0 for response in before.responses) > 0

        opencode(sandbox, api.url, "run", "--session", name, "And then?")
        request = api.calls[-1].body.decode()
        assert listed(sandbox, api.url) == [name]
    assert "How many files?" in request
    assert "One file." in request


@pytest.mark.long
@pytest.mark.needs("opencode")
def test_opencode_imports_the_intact_rows_of_a_damaged_session(
    sandbox: Sandbox,
) -> None:
    database = sandbox.home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    session = "ses_e2090ac44ffeRxh9TZzNatan0E"
    with closing(sqlite3.connect(database)) as made, made:
        made.executescript((OPENCODE / "opencode.sql").read_text())
        parts = [row[0] for row in made.execute("SELECT id FROM part WHERE session_id = ?", (session,))]
        for part, data in zip(parts, DAMAGED_PARTS, strict=False):
            made.execute("UPDATE part SET data = ? WHERE id = ?", (data, part))
        messages = [row[0] for row in made.execute("SELECT id FROM message WHERE session_id = ?", (session,))]
        made.execute("UPDATE message SET data = '{' WHERE id = ?", (messages[-1],))
        made.execute("UPDATE message SET data = json_remove(data, '$.time') WHERE id = ?", (messages[-2],))
        made.execute("DELETE FROM message WHERE id = ?", (messages[-3],))
        made.execute("UPDATE session SET model = '{', revert = '{}', share_url = 5 WHERE id = ?", (session,))
    archive(sandbox)
    shutil.rmtree(database.parent)
    report = json.loads(archive(sandbox, "--restore", session, "--yes", "--json"))
    assert not database.exists()
    assert len(report["left_out"]) >= len(DAMAGED_PARTS) + 3
    for command in report["next"]:
        opencode(sandbox, "http://127.0.0.1:9", *command["arguments"][1:])
    export = json.loads(opencode(sandbox, "http://127.0.0.1:9", "export", session))
    written = json.loads(Path(report["files"][0]["path"]).read_text())
    assert export["messages"] == written["messages"]
    assert [message["info"]["id"] for message in export["messages"]] == messages[:-3]


DAMAGED_PARTS = [
    "{",
    "[]",
    '{"type":"text","text":null}',
    '{"type":"reasoning","text":"x"}',
    '{"type":"tool","tool":"x","callID":"y","state":{"status":"completed"}}',
    '{"type":"step-finish","reason":"stop","cost":1e999,"tokens":{}}',
]
