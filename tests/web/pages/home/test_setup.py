"""What the page finds of agents on a machine where nothing was recorded yet."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger.web.pages.home.setup import agent_setups
from tests.agents.opencode.test_database import DUMP
from tests.agents.opencode.test_older_files import OLDER, left_behind


def sessions_of(agent: str) -> int:
    return next(it.sessions for it in agent_setups() if it.agent == agent)


def test_opencode_sessions_in_databases_and_older_files_are_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    folder = left_behind(OLDER, tmp_path)
    assert sessions_of("opencode") == 2, "one, and its fork; a sub-agent is none"
    with closing(sqlite3.connect(folder / "opencode.db")) as new:
        new.executescript(DUMP.read_text())
        (count,) = new.execute("SELECT count(*) FROM session WHERE parent_id IS NULL").fetchone()
    assert sessions_of("opencode") == 2 + count
    (folder / "opencode-broken.db").write_bytes(b"no database")
    assert sessions_of("opencode") == 2 + count
