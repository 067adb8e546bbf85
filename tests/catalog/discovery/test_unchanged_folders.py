"""Folders that look as they did are passed over, and nothing that changed ever is."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger import Catalog
from agent_logger.archive.run import archive_all
from agent_logger.catalog.refresh.changes import count_change
from agent_logger.catalog.refresh.refresh import refresh
from agent_logger.catalog.sqlite.database import SqliteDatabase
from agent_logger.home.facts import bury, register_log_folder
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, made_anew, sqlite_of, user
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

ONE, TWO, THREE = (ID.format(it) for it in (1, 2, 3))
LOG = "20261115-080000-abcd"


@pytest.fixture
def catalog(home: Path) -> Iterator[Catalog]:
    for number, name in enumerate((ONE, TWO, THREE)):
        lines = [user(1, "begin", name), assistant(number * 100, "the zebra runs", name)]
        claude_file(home, name, lines, project=f"-p{number}")
    write_log(home / "logs" / "anthropic", LOG, [start(LOG), *calls(1)])
    register_log_folder(home / ".agent-logger", home / "logs")
    with Catalog.open(home / ".agent-logger") as opened:
        yield opened


def rows(catalog: Catalog) -> SqliteDatabase:
    return sqlite3.connect(catalog.home / "catalog.db", isolation_level=None, factory=SqliteDatabase)


def test_unchanged_sources_are_neither_queried_nor_written(catalog: Catalog) -> None:
    all_of(catalog)
    with Catalog.open(catalog.home) as other, rows(catalog) as database:
        asked: list[str] = []
        sqlite_of(other).main().set_trace_callback(asked.append)
        done = other.refresh()
        assert (done.sources, done.changed, done.files_opened) == (4, 0, 0)
        assert not any(it.lstrip().startswith(("BEGIN", "INSERT", "UPDATE", "DELETE")) for it in asked)
        # Not one row of a source is read: they could be anything.
        database.execute("UPDATE sources SET stamp = 'another'")
        assert other.refresh().changed == 0


def test_a_change_in_one_folder_does_not_reread_the_other_folders(home: Path, catalog: Catalog) -> None:
    all_of(catalog)
    claude_file(home, TWO, [assistant(500, "more", TWO)], project="-p1")
    with rows(catalog) as database:
        database.execute("UPDATE sources SET stamp = 'another' WHERE name = ?", (ONE,))
    done = catalog.refresh()
    assert (done.changed, done.sources) == (1, 4)
    assert catalog.total().responses == 5


def test_a_folder_moved_away_and_back_is_listed_again(home: Path, catalog: Catalog) -> None:
    before = all_of(catalog)
    for folder in (home / ".claude" / "projects" / "-p1", home / "logs" / "anthropic"):
        shutil.move(folder, home / "away")
        assert len(all_of(catalog).sessions) == 3
        shutil.move(home / "away", folder)
        assert all_of(catalog) == before


def test_a_renamed_session_file_is_another_session(home: Path, catalog: Catalog) -> None:
    all_of(catalog)
    path = claude_file(home, TWO, [], project="-p1")
    path.rename(path.with_stem(ID.format(9)))
    catalog.refresh()
    assert catalog.resolve(ID.format(9)) and not catalog.resolve(TWO)


def test_a_tombstone_of_another_process_is_respected(catalog: Catalog) -> None:
    all_of(catalog)
    bury(catalog.home, TWO, [])
    assert {it.id for it in all_of(catalog).sessions} == {ONE, THREE, LOG}
    assert all_of(catalog) == all_of(made_anew(catalog.home, catalog.home.parent / "other"))


def test_a_folder_with_an_unreadable_file_is_checked_on_every_refresh(home: Path, catalog: Catalog) -> None:
    (home / ".codex" / "sessions").mkdir(parents=True)
    path = home / "logs" / "anthropic" / "20261115-090000-beef.jsonl.zst"
    path.write_bytes(b"no sealed part at all")
    for _ in range(3):
        assert catalog.refresh().changed > 0
    path.unlink()
    catalog.refresh()
    assert catalog.refresh().changed == 0


def test_unchanged_archive_copies_are_skipped_until_the_original_is_back(home: Path, catalog: Catalog) -> None:
    (home / ".claude" / "history.jsonl").write_text(
        "".join(
            json.dumps({"display": "typed", "timestamp": 1e12, "project": "/p", "sessionId": it}) + "\n"
            for it in (ONE, TWO, ID.format(7))
        )
    )
    all_of(catalog)
    archive_all(catalog.home)
    path = claude_file(home, TWO, [], project="-p1")
    data = path.read_bytes()
    path.unlink()
    gone = all_of(catalog)
    assert [it.prompts_only for it in gone.sessions if it.id in (ONE, TWO, ID.format(7))] == [
        False,
        False,
        True,
    ]
    assert catalog.refresh().changed == 0
    with rows(catalog) as database:
        database.execute("UPDATE sources SET stamp = 'another'  WHERE name = ?", (TWO,))
    assert catalog.refresh().changed == 0
    assert len(all_of(catalog).sessions) == 5
    path.write_bytes(data)
    assert catalog.refresh().changed == 1
    assert [it.path for it in catalog.places(TWO)] == [path]
    assert all_of(catalog).ledger == gone.ledger


def test_a_refresh_does_not_cache_folder_state_if_another_process_wrote(home: Path, catalog: Catalog) -> None:
    """The other may have put down what it had seen earlier still."""
    all_of(catalog)
    claude_file(home, TWO, [assistant(500, "more", TWO)], project="-p1")

    def meanwhile(_done: int, _total: int) -> None:
        with rows(catalog) as database:
            database.execute("UPDATE sources SET stamp = 'as it was' WHERE name = ?", (TWO,))
            count_change(database)

    refresh(sqlite_of(catalog).main(), catalog.homes, meanwhile)
    assert catalog.refresh().changed == 1
    assert catalog.refresh().changed == 0
