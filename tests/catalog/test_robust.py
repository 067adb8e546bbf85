"""Whatever became of the catalog's files, and wherever they are: the answers are the same, and nothing is raised."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from _corpus import fill
from agent_logger import Catalog
from agent_logger.catalog.sqlite.database import is_file, is_same_file, open_database, open_in_memory
from agent_logger.catalog.sqlite.schema import CATALOG
from tests.catalog.catalogs import ID, Told, all_of, assistant, claude_file, made_anew, user

DATABASES = ("catalog.db", "catalog-text.db")


def _a_word() -> str:
    with tempfile.TemporaryDirectory() as folder:
        words: list[str] = fill(Path(folder), 0.01, 5)[0].lines[0]["message"]["content"].split()
    return words[0]


OLD = ID.format(99)
WORD = _a_word()


@pytest.fixture
def home(home: Path) -> Path:
    fill(home / ".claude", 0.5, 5)
    return home


def asked(home: Path) -> Told:
    with Catalog.open(home / ".agent-logger") as catalog:
        return all_of(catalog, [WORD])


def delete(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40_000] = os.urandom(40_000)
    path.write_bytes(data)


def schema_is_no_text(path: Path) -> None:
    _replace(path, b"CREATE TABLE", b"CREATE T\xabBLE")


def values_are_no_text(path: Path) -> None:
    _replace(path, b"claude", b"cl\xffude")


def _replace(path: Path, old: bytes, new: bytes) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes().replace(old, new))


def another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (other)")
        database.execute("CREATE TABLE texts (other)")


def no_database(path: Path) -> None:
    path.write_text("hello " * 10_000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")


def older(path: Path) -> None:
    """Of a time before any table."""
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 0")


FATES = [
    delete,
    cut,
    scribble,
    schema_is_no_text,
    values_are_no_text,
    another_program,
    no_database,
    empty,
    folder,
    newer,
    older,
]


BLOBS = ["x''", "x'00ff'", "zeroblob(1000)", "substr(responses, 1, length(responses) / 2)", "substr(responses, 2)"]


@pytest.mark.parametrize("blob", BLOBS)
def test_stored_responses_that_cannot_be_decoded_are_read_from_the_files_again(
    home: Path, tmp_path: Path, blob: str
) -> None:
    assert asked(home).ledger
    with closing(sqlite3.connect(home / ".agent-logger" / "catalog.db")) as database, database:
        database.execute(f"UPDATE source_responses SET responses = {blob}")
    claude_file(home, OLD, [user(1, "hi", OLD), assistant(2, WORD, OLD)])
    for path in (home / ".claude" / "projects").rglob("*.jsonl"):
        with path.open("ab") as file:
            file.write(b'{"type":"later"}\n')
    assert asked(home) == all_of(made_anew(home / ".agent-logger", tmp_path / "other"), [WORD])


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("fate", FATES, ids=lambda it: it.__name__)
def test_a_damaged_or_deleted_catalog_gives_the_same_answers(
    home: Path, name: str, fate: Callable[[Path], None]
) -> None:
    before = asked(home)
    assert before.sessions
    assert before.ledger
    assert before.hits
    fate(home / ".agent-logger" / name)
    for suffix in ("-wal", "-shm"):
        Path(f"{home / '.agent-logger' / name}{suffix}").unlink(missing_ok=True)
    assert asked(home) == before
    assert asked(home) == before


@pytest.mark.parametrize("name", DATABASES)
def test_a_newer_catalog_is_left_alone(home: Path, name: str) -> None:
    asked(home)
    path = home / ".agent-logger" / name
    newer(path)
    asked(home)
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (99,)
        assert database.execute("SELECT count(*) > 5 FROM sqlite_master").fetchone() == (1,)


def test_a_catalog_deleted_while_open_is_created_again(home: Path) -> None:
    with Catalog.open(home / ".agent-logger") as catalog:
        before = all_of(catalog, [WORD])
        shutil.rmtree(home / ".agent-logger")
        assert all_of(catalog, [WORD]) == before
        assert (home / ".agent-logger" / "catalog.db").stat().st_size > 0
        assert catalog.problem is None


def test_queries_are_answered_from_the_files_if_the_home_is_not_writable(home: Path, tmp_path: Path) -> None:
    before = asked(home)
    (tmp_path / "file").write_text("no folder")
    for other in (tmp_path / "file" / "below", Path("/proc/nothing/here")):
        with Catalog.open(other) as catalog:
            assert all_of(catalog, [WORD]) == before
            assert catalog.problem
            assert str(other) in catalog.problem


def test_queries_are_answered_while_the_catalog_is_locked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = asked(home)
    fill(home / ".claude", 2, 5)
    monkeypatch.setattr("agent_logger.catalog.sqlite.database.WAIT_SECONDS", 0.1)
    holder = sqlite3.connect(home / ".agent-logger" / "catalog.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with Catalog.open(home / ".agent-logger") as catalog:
            assert len(catalog.sessions()) > len(before.sessions)
            assert "locked" in (catalog.problem or "")
    finally:
        holder.close()


def test_queries_are_answered_from_the_files_if_the_disk_is_full(home: Path, small_disk: Path) -> None:
    before = asked(home)
    (small_disk / "filler").write_bytes(b"x" * ((4 << 20) - 200_000))
    with Catalog.open(small_disk) as catalog:
        assert all_of(catalog, [WORD]) == before
        assert catalog.problem
    (small_disk / "filler").unlink()
    with Catalog.open(small_disk) as catalog:
        assert all_of(catalog, [WORD]) == before
        assert catalog.problem is None


def test_search_works_if_the_disk_fills_up_before_the_index_exists(home: Path, small_disk: Path) -> None:
    before = asked(home)
    with Catalog.open(small_disk) as catalog:
        catalog.refresh()
    with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 4096):
            pass
    left = 48 << 10  # for what SQLite needs beside the catalog, and no more
    os.truncate(small_disk / "filler", (small_disk / "filler").stat().st_size - left)
    with Catalog.open(small_disk) as catalog:
        assert all_of(catalog, [WORD]) == before
        assert catalog.problem


def test_an_unreadable_file_is_skipped_until_it_is_readable(home: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to be somebody else: root may read everything")
    whole = asked(home)
    for path in [home, *home.parents]:
        path.chmod(path.stat().st_mode | 0o055)
    kept = tmp_path / "theirs"
    kept.mkdir()
    kept.chmod(0o777)
    locked = sorted((home / ".claude").rglob("*.jsonl"))[0]
    locked.chmod(0)
    assert 0 < int(_as_nobody(kept)) < len(whole.ledger)
    locked.chmod(0o644)
    assert int(_as_nobody(kept)) == len(whole.ledger)


def _as_nobody(home: Path) -> str:
    """How many responses another user is told of. All that is needed is imported by now."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        with Catalog.open(home) as catalog:
            os.write(writer, str(catalog.total().responses).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as told:
        return told.read()


def test_a_new_price_list_updates_all_costs(home: Path) -> None:
    before = asked(home)
    with sqlite3.connect(home / ".agent-logger" / "catalog.db") as database:
        database.execute("UPDATE properties SET value = '2020-01-01' WHERE name = 'price_date'")
        database.execute("UPDATE ledger SET nano_usd = 1")
        database.execute("UPDATE sessions SET nano_usd = 1")
    assert asked(home) == before


def test_a_session_without_a_response_keeps_its_place_when_costs_are_updated(home: Path) -> None:
    claude_file(home, OLD, [user(1, "hello?", OLD) | {"timestamp": "2020-01-01T00:00:00.000Z"}])
    with Catalog.open(home / ".agent-logger") as catalog:
        before = [it.id for it in catalog.sessions()]
    assert before[-1] == OLD
    with sqlite3.connect(home / ".agent-logger" / "catalog.db") as database:
        database.execute("UPDATE properties SET value = '2020-01-01' WHERE name = 'price_date'")
    with Catalog.open(home / ".agent-logger") as catalog:
        assert [it.id for it in catalog.sessions()] == before


def test_an_in_memory_catalog_is_not_a_file_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    with closing(open_in_memory(CATALOG)) as memory, closing(open_database(path, CATALOG)) as file:
        assert (is_file(memory), is_file(file)) == (False, True)
        assert (is_same_file(memory, path), is_same_file(file, path)) == (True, True)
        path.unlink()
        assert (is_same_file(memory, path), is_same_file(file, path)) == (True, False)
