"""The session that a run worked on, where neither its output nor its requests name it."""

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger.agents.base import Agent
from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.agents.gemini_cli import AGENT as GEMINI_CLI
from agent_logger.agents.gemini_cli.files import session_id
from agent_logger.agents.hermes import AGENT as HERMES
from agent_logger.recording.run.session_files import SessionFiles
from tests.agents.databases.recorded import recorded_database

SESSION = "20261119_041739_b0b064"


def asked_now(home: Path, text: str, session: str = SESSION) -> None:
    """Write a message into the database of Hermes."""
    with closing(sqlite3.connect(home / ".hermes/state.db")) as database, database:
        database.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
            (session, text, time.time()),
        )


@pytest.fixture
def files(home: Path) -> SessionFiles:
    path = recorded_database("hermes", "0.19.0/tree", home)
    with closing(sqlite3.connect(path)) as database, database:  # as if it were long ago
        database.execute("UPDATE messages SET timestamp = 1e9")
        database.execute("UPDATE sessions SET started_at = 1e9, ended_at = NULL")
        database.execute("UPDATE session_model_usage SET last_seen = 1e9")
        database.execute("INSERT INTO sessions (id, source, started_at) VALUES ('other', 'cli', 1e9)")
    return SessionFiles(HERMES, home)


def test_the_session_that_got_the_prompt_is_that_of_the_run(files: SessionFiles, home: Path) -> None:
    asked_now(home, "New question")
    asked_now(home, "Another program's question", "other")
    assert files.own_session(["New question"]) == SESSION
    assert files.own_session(["Nobody asked this"]) is None


def test_a_run_without_a_prompt_worked_on_the_only_session_that_changed(files: SessionFiles, home: Path) -> None:
    assert files.own_session([]) is None
    asked_now(home, "New question")
    assert files.own_session([]) == SESSION
    asked_now(home, "Another program's question", "other")
    assert files.own_session([]) is None


def test_a_prompt_of_an_earlier_run_is_not_that_of_this_one(files: SessionFiles, home: Path) -> None:
    asked_now(home, "New question")
    assert files.own_session(["Sure?"]) is None


@pytest.mark.parametrize("agent", [CLAUDE_CODE], ids=lambda agent: agent.name)
def test_an_agent_that_names_its_sessions_on_the_wire_is_not_guessed(agent: Agent, home: Path) -> None:
    assert SessionFiles(agent, home).own_session(["New question"]) is None


def test_a_session_is_called_by_the_id_in_its_file_not_by_the_name_of_the_file(home: Path) -> None:
    recorded = Path(__file__).parents[2] / "data/gemini-cli/0.61.0/exec_resume/home/.gemini"
    files = SessionFiles(GEMINI_CLI, home)
    shutil.copytree(recorded, home / ".gemini", copy_function=shutil.copyfile)  # which are new then
    (chat,) = (home / ".gemini/tmp").glob("*/chats/session-*.jsonl")
    assert files.own_session([]) == session_id(chat) != chat.stem
