"""Sessions of Kilo and Goose that were deleted come back from the archive, as files that their own import takes."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agents.databases.recorded import recorded_database
from tests.commands import run_command

TABLES = {"kilo": ("part", "message", "session"), "goose": ("messages", "usage_ledger", "sessions")}

IMPORTS = {"kilo": "kilo import", "goose": "goose session import"}


def archive(*options: str) -> Any:
    done = run_command(["archive", *options], os.environ)
    assert done.returncode == 0, done.stderr
    return done


def delete_sessions(agent: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for table in TABLES[agent]:
            assert database.execute(f"DELETE FROM {table}").rowcount


@pytest.mark.parametrize(
    ("agent", "session"),
    [("kilo", "ses_e1d450f22ffeWyTMAygs9KkVzk"), ("goose", "20261116_1")],
)
def test_a_deleted_session_is_restored_from_the_archive_by_the_command(home: Path, agent: str, session: str) -> None:
    path = recorded_database(agent, f"{'7.7.9' if agent == 'kilo' else '1.52.0'}/tools", home)
    archive()
    delete_sessions(agent, path)
    before = path.read_bytes()
    done = archive("--restore", session, "--yes")
    document = (home / ".agent-logger/restored" / f"{session}.json").read_text()
    assert json.loads(document)
    for said in ("List the files", "Two files; missing.txt is not there.", "What is the function called?"):
        assert said in document
    assert IMPORTS[agent] in done.stdout
    assert path.read_bytes() == before
