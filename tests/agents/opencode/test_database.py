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
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in folder.iterdir()
    }


def read_all(path: Path) -> list[str]:
    ids = opencode.session_ids(path)
    for name in ids:
        source = opencode.source_of(path, name)
        for file in (source.main, *source.others):
            assert all(isinstance(it, JsonEntry) for it in file.entries)
    return ids


def test_sessions_that_another_one_started_are_not_listed(database: Path) -> None:
    assert opencode.session_ids(database) == [FORK, MAIN]


def test_a_source_has_the_sessions_that_it_started(database: Path) -> None:
    source = opencode.source_of(database, MAIN)
    assert (source.main.name, [file.name for file in source.others]) == (MAIN, [CHILD])
    tables = [entry.value["table"] for entry in source.main.entries if isinstance(entry, JsonEntry)]
    assert [tables.count(table) for table in opencode.TABLES] == [1, 10, 22]
    assert len(list(source.main.entries)) == len(tables)  # again


@pytest.mark.parametrize(("name", "parent"), [(MAIN, None), (CHILD, None), (FORK, MAIN)])
def test_a_fork_is_told_by_the_times_of_its_copies(database: Path, name: str, parent: str | None) -> None:
    first = next(iter(opencode.source_of(database, name).main.entries))
    assert isinstance(first, JsonEntry)
    assert first.value["forked_from"] == parent


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_reading_leaves_no_trace(database: Path, mode: str) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute(f"PRAGMA journal_mode = {mode}")
    before = state(database.parent)
    read_all(database)
    assert state(database.parent) == before


def test_what_is_in_the_log_alone_is_read_and_the_log_left_as_it_is(database: Path) -> None:
    write(database)
    before = state(database.parent)
    assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
    assert read_all(database) == ["ses_new", FORK, MAIN]
    assert state(database.parent) == before


def test_a_log_without_its_index_is_read_too(database: Path) -> None:
    write(database)
    Path(f"{database}-shm").unlink()
    before = state(database.parent)
    assert read_all(database) == ["ses_new", FORK, MAIN]
    assert state(database.parent) == before


def test_opencode_may_go_on_while_it_is_read(live: Path) -> None:
    before = state(live.parent)
    assert read_all(live) == ["ses_new", FORK, MAIN]
    assert state(live.parent) == before


def test_a_folder_that_nobody_may_write_to_can_be_read(database: Path) -> None:
    write(database)
    os.chmod(database.parent, 0o500)
    try:
        assert read_all(database) == ["ses_new", FORK, MAIN]
    finally:
        os.chmod(database.parent, 0o700)


def test_a_locked_database_is_an_error_of_one_line_and_soon(database: Path) -> None:
    lock = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    with closing(lock):
        lock.execute("BEGIN EXCLUSIVE")
        lock.execute("CREATE TABLE other (x)")  # leaves a journal
        found: list[str] = []

        def attempt() -> None:
            try:
                opencode.session_ids(database)
            except SourceError as error:
                found.append(str(error))

        reader = threading.Thread(target=attempt)
        reader.start()
        reader.join(60)
        assert found and "locked" in found[0]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"not a database at all, but long enough" * 100, id="no database"),
        pytest.param(b"SQLite format 3\0" + b"\xff" * 5_000, id="a head alone"),
    ],
)
def test_what_is_no_database_of_opencode_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(content)
    with pytest.raises(SourceError):
        opencode.session_ids(path)


def test_an_empty_database_says_that_it_is_not_of_opencode(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.touch()
    with pytest.raises(SourceError, match="not a database of opencode's"):
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


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        opencode.session_ids(tmp_path / "opencode.db")
    assert not list(tmp_path.glob("*.db*"))


def test_a_link_is_not_followed(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)
    with pytest.raises(SourceError):
        opencode.session_ids(link)


def test_a_database_that_is_gone_by_now_is_damage(database: Path) -> None:
    source = opencode.source_of(database, MAIN)
    database.unlink()
    assert [type(it) for it in source.main.entries] == [Damage]


def test_damage_in_the_middle_ends_with_what_could_be_read(database: Path) -> None:
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
def test_a_name_is_only_ever_a_name(database: Path, name: str) -> None:
    assert list(opencode.source_of(database, name).main.entries) == []


def test_sessions_that_started_each_other_end(database: Path) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("UPDATE session SET parent_id = ? WHERE id = ?", (CHILD, MAIN))
        changed.commit()
    assert [file.name for file in opencode.source_of(database, MAIN).others] == [CHILD]


def test_texts_that_are_no_text_are_read(database: Path) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("UPDATE session SET title = CAST(x'ff00fe' AS TEXT) WHERE id = ?", (MAIN,))
        changed.execute("UPDATE part SET data = CAST(x'7bff' AS TEXT)")
        changed.execute("UPDATE message SET data = 5")
        changed.commit()
    assert read_all(database) == [FORK, MAIN]
