"""Details of sessions: when their files are read for them, and that each way gives the same."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger import Catalog
from tests.agents.claude_code.claude_files import fixtures
from tests.catalog.witnesses import printed


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_LOGGER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def rows(home: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home / "catalog.db")) as database:
        return database.execute(query, values).fetchall()


def is_related(home: Path, session: str) -> bool:
    family = "SELECT 1 FROM sessions WHERE family = (SELECT family FROM sessions WHERE id = ?)"
    named = "SELECT 1 FROM sources WHERE session = ? AND parent IS NOT NULL"
    return len(rows(home, family, session)) > 1 or bool(rows(home, named, session))


def test_a_log_of_ours_is_read_once_for_its_cost_and_its_details(home: Path) -> None:
    assert [list(printed(fixture, home / "sessions")) for fixture in fixtures()]
    with Catalog.open(home) as catalog:
        catalog.refresh()
        late = {name for (name,) in rows(home, "SELECT id FROM sessions WHERE details_stamp IS NOT stamp")}
        early = catalog.sessions()
        assert len(early) - len(late) > 10
        assert late == {session.id for session in early if is_related(home, session.id)}
    with sqlite3.connect(home / "catalog.db") as database:
        database.execute("UPDATE sessions SET details_stamp = NULL, title = NULL, exchanges = 0")
        database.execute("DELETE FROM response_tools")
    with Catalog.open(home) as catalog:
        assert catalog.read_details() is True
        assert catalog.sessions() == early
