"""Sessions of Kilo and Goose that were deleted come back from the archive, as files that their own import takes."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agents.databases.recorded import DATABASES, recorded_database
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


@pytest.mark.parametrize(
    ("agent", "recording", "place", "session"),
    [
        ("openclaw", "2026.9.6/tools", None, "cfac7f99-557b-45d5-bd56-8a2b40c351f6"),
        ("hermes", "0.19.0/tools", None, "20261116_051103_f60ad2"),
        ("hermes", "0.19.0/tools", ".hermes/profiles/work/state.db", "20261116_051103_f60ad2"),
    ],
)
@pytest.mark.parametrize("is_moved", [False, True], ids=["the same home", "another home"])
def test_a_lost_database_is_restored_to_its_own_place(
    home: Path, agent: str, recording: str, place: str | None, session: str, is_moved: bool
) -> None:
    path = recorded_database(agent, recording, home)
    if place:
        (home / place).parent.mkdir(parents=True)
        path = path.rename(home / place)
        for log in home.glob(f"{DATABASES[agent]}-*"):
            log.rename(f"{path}{log.name[log.name.index('-') :]}")
    archive()
    shutil.rmtree(home / path.relative_to(home).parts[0])
    now = home.with_name("moved") if is_moved else home
    if is_moved:
        home.rename(now)
    variables = {"PATH": os.environ["PATH"], "HOME": str(now)}
    done = run_command(["archive", "--restore", session, "--yes"], variables)
    assert done.returncode == 0, done.stderr
    assert [file.relative_to(now) for file in now.rglob(path.name) if ".agent-logger" not in file.parts] == [
        path.relative_to(home)
    ]
    [installed] = json.loads(run_command(["find", "--json"], variables).stdout)
    assert (installed["agent"], installed["sessions"]) == (agent, 1)
