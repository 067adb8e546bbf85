"""opencode's database is read whole, whatever lies beside it, and nothing of it is touched."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger.agents.opencode import database as opencode
from agent_logger.errors import SourceError
from agent_logger.protocols.jsonl import Damage, JsonEntry

DUMP = Path(__file__).parents[2] / "data/opencode/1.18.33/agents_fork/opencode.sql"
MAIN, CHILD, FORK = (
    "ses_e2090ac44ffeRxh9TZzNatan0E",
    "ses_e2090a3a1ffetWAEKGMxCYMYhA",
    "ses_e209093e4ffebVAVMYwIIYHZLz",
)
MORE = """
    INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
    VALUES ('ses_new', 'global', 's', '/p', 't', '1', 9999999999999, 0)
"""

# Leaves a log with its index, as opencode does when it is killed: the last change is in the log alone.
WRITER = """
import os, sqlite3, sys
path, change, wait = sys.argv[1:]
database = sqlite3.connect(path, isolation_level=None)
database.execute("PRAGMA journal_mode = wal")
database.execute("PRAGMA wal_autocheckpoint = 0")
database.execute(change)
print("written", flush=True)
if wait == "wait":
    sys.stdin.read()
os._exit(0)
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "here" / "opencode.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as new:
        new.executescript(DUMP.read_text())
    return path


def write(path: Path, change: str = MORE) -> None:
    subprocess.run([sys.executable, "-c", WRITER, str(path), change, "go"], check=True, capture_output=True)


@pytest.fixture
def live(database: Path) -> Iterator[Path]:
    """While another process has it open, and has just written."""
    command = [sys.executable, "-c", WRITER, str(database), MORE, "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdin and writer.stdout
        assert writer.stdout.readline() == b"written\n"
        yield database
        writer.stdin.close()


def state(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) for path in folder.iterdir()}


def read_all(path: Path) -> list[str]:
    ids = opencode.session_ids(path)
    for name in ids:
        source = opencode.source_of(path, name)
        for file in (source.main, *source.others):
            assert all(isinstance(it, JsonEntry) for it in file.entries)
    return ids


def test_child_sessions_are_not_listed(database: Path) -> None:
    assert opencode.session_ids(database) == [FORK, MAIN]


def test_a_source_contains_the_child_sessions(database: Path) -> None:
    source = opencode.source_of(database, MAIN)
    assert (source.main.name, [file.name for file in source.others]) == (MAIN, [CHILD])
    tables = [entry.value["table"] for entry in source.main.entries if isinstance(entry, JsonEntry)]
    assert [tables.count(table) for table in opencode.TABLES] == [1, 10, 22]
    assert len(list(source.main.entries)) == len(tables)  # again


@pytest.mark.parametrize(("name", "parent"), [(MAIN, None), (CHILD, None), (FORK, MAIN)])
def test_a_fork_is_detected_by_the_times_of_its_copied_messages(database: Path, name: str, parent: str | None) -> None:
    first = next(iter(opencode.source_of(database, name).main.entries))
    assert isinstance(first, JsonEntry)
    assert first.value["forked_from"] == parent


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_reading_does_not_modify_the_database_folder(database: Path, mode: str) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute(f"PRAGMA journal_mode = {mode}")
    before = state(database.parent)
    read_all(database)
    assert state(database.parent) == before


def test_rows_only_in_the_wal_are_read_and_the_wal_is_unchanged(database: Path) -> None:
    write(database)
    before = state(database.parent)
    assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
    assert read_all(database) == ["ses_new", FORK, MAIN]
    assert state(database.parent) == before


def test_a_wal_without_its_shm_file_is_read(database: Path) -> None:
    write(database)
    Path(f"{database}-shm").unlink()
    before = state(database.parent)
    assert read_all(database) == ["ses_new", FORK, MAIN]
    assert state(database.parent) == before


def test_a_database_in_use_by_opencode_is_read_without_changes(live: Path) -> None:
    before = state(live.parent)
    assert read_all(live) == ["ses_new", FORK, MAIN]
    assert state(live.parent) == before


def test_a_database_in_a_read_only_folder_is_read(database: Path) -> None:
    write(database)
    os.chmod(database.parent, 0o500)
    try:
        assert read_all(database) == ["ses_new", FORK, MAIN]
    finally:
        os.chmod(database.parent, 0o700)


def test_a_locked_database_is_read_as_it_was_before_the_lock(database: Path) -> None:
    lock = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    with closing(lock):
        lock.execute("BEGIN EXCLUSIVE")
        lock.execute("CREATE TABLE other (x)")  # leaves a journal
        ids: list[str] = []
        reader = threading.Thread(target=lambda: ids.extend(opencode.session_ids(database)))
        reader.start()
        reader.join(60)
        assert ids == [FORK, MAIN]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"not a database at all, but long enough" * 100, id="no database"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 5_000, id="a head alone"),
    ],
)
def test_a_file_that_is_not_an_opencode_database_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(content)
    with pytest.raises(SourceError):
        opencode.session_ids(path)


def test_the_error_for_an_empty_database_says_it_is_not_from_opencode(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.touch()
    with pytest.raises(SourceError, match="not a database of opencode"):
        opencode.session_ids(path)


def test_a_later_fork_is_not_the_parent_of_an_earlier_one(database: Path) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("CREATE TEMP TABLE copy AS SELECT * FROM session WHERE id = ?", (FORK,))
        changed.execute("UPDATE copy SET id = 'ses_later', time_created = time_created + 5000")
        changed.execute("INSERT INTO session SELECT * FROM copy")
        columns = "session_id, time_created, time_updated, data"
        changed.execute(
            f"INSERT INTO message (id, {columns}) SELECT 'x' || id, 'ses_later', time_created, 0, data"
            " FROM message WHERE session_id = ?",
            (FORK,),
        )
        changed.commit()
    parents = {}
    for name in (FORK, "ses_later"):
        first = next(iter(opencode.source_of(database, name).main.entries))
        assert isinstance(first, JsonEntry)
        parents[name] = first.value["forked_from"]
    assert parents == {FORK: MAIN, "ses_later": FORK}


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        opencode.session_ids(tmp_path / "opencode.db")
    assert not list(tmp_path.glob("*.db*"))


def test_a_symlink_to_a_database_is_not_followed(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)
    with pytest.raises(SourceError):
        opencode.session_ids(link)


def test_a_database_deleted_after_opening_is_reported_as_damage(database: Path) -> None:
    source = opencode.source_of(database, MAIN)
    database.unlink()
    assert [type(it) for it in source.main.entries] == [Damage]


def test_reading_a_corrupted_database_ends_with_a_damage_entry(database: Path) -> None:
    pages = bytearray(database.read_bytes())
    for at in range(6 * 4096, len(pages) - 4096, 4096):
        pages[at : at + 200] = b"\xff" * 200
    database.write_bytes(pages)
    try:
        found = list(opencode.source_of(database, MAIN).main.entries)
    except SourceError:
        return
    assert isinstance(found[-1], Damage)


@pytest.mark.parametrize("name", ["x' OR 1=1 --", "", "\0", "../../etc/passwd"])
def test_session_ids_are_not_interpreted_as_sql_or_paths(database: Path, name: str) -> None:
    assert list(opencode.source_of(database, name).main.entries) == []


def test_cyclic_parent_sessions_do_not_loop(database: Path) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("UPDATE session SET parent_id = ? WHERE id = ?", (CHILD, MAIN))
        changed.commit()
    assert [file.name for file in opencode.source_of(database, MAIN).others] == [CHILD]


def test_invalid_text_values_are_read(database: Path) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("UPDATE session SET title = CAST(x'ff00fe' AS TEXT) WHERE id = ?", (MAIN,))
        changed.execute("UPDATE part SET data = CAST(x'7bff' AS TEXT)")
        changed.execute("UPDATE message SET data = 5")
        changed.commit()
    assert read_all(database) == [FORK, MAIN]
