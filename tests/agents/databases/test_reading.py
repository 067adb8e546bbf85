"""A foreign database is read as far as it can be, whatever state it is in, and nothing of it is touched."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.databases import snapshots
from agent_logger.agents.databases.opening import DatabaseSchema, ForeignDatabase
from agent_logger.agents.databases.reading import databases_kept_open, read_database
from agent_logger.errors import SourceError

PAGE = 4096
NOTES = 2_000
SCHEMA = DatabaseSchema("notes", {"folder": ("id", "name"), "note": ("id", "folder_id", "data")}, ("extra",))

# Writes when told to, and holds its transaction open until it is told to go on.
WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for pragma in sys.argv[2:]:
    database.execute(f"PRAGMA {pragma}").fetchall()
for number, line in enumerate(sys.stdin):
    begin, _, rows = line.partition(" ")
    if begin == "close":
        break
    database.execute("BEGIN EXCLUSIVE")
    for row in range(int(rows)):
        database.execute("INSERT INTO note VALUES (?, 'f', ?)", (f"new-{number}-{row}", "x" * 500))
    if begin == "commit":
        database.execute("COMMIT")
    print("done", flush=True)
    if begin == "open":
        sys.stdin.readline()
        database.execute("ROLLBACK")
        print("done", flush=True)
import os
os._exit(0)  # as when it is killed: the last to close a database would move its log into it
"""


class Writer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, line: str) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(60)

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def writing(path: Path, *pragmas: str) -> Iterator[Writer]:
    command = [sys.executable, "-c", WRITER, str(path), *pragmas]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        writer = Writer(process)
        try:
            yield writer
        finally:
            writer.end()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "here" / "notes.db"
    made.parent.mkdir()
    with closing(sqlite3.connect(made)) as new, new:
        new.execute(f"PRAGMA page_size = {PAGE}")
        new.execute("CREATE TABLE folder (id TEXT PRIMARY KEY, name TEXT)")
        new.execute("CREATE TABLE note (id TEXT PRIMARY KEY, folder_id TEXT, data TEXT)")
        new.execute("INSERT INTO folder VALUES ('f', 'First')")
        rows = [(f"note-{number:05}", "f", f"{number} " * 20) for number in range(NOTES)]
        new.executemany("INSERT INTO note VALUES (?, ?, ?)", rows)
    return made


Reading = tuple[list[str], tuple[str, ...]]


def ids_of(path: Path) -> list[str]:
    ids, damage = reading_of(path)
    assert damage == ()
    return ids


def reading_of(path: Path) -> Reading:
    def work(database: ForeignDatabase) -> Reading:
        rows = database.rows("SELECT id, data FROM note NOT INDEXED")
        return [row["id"] for row in rows], database.damage

    return read_database(path, SCHEMA, work)


def look(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Everything that a trace could be left in, but for the time of the last chown: as root, SQLite gives a log the
    owner that it has."""
    files = {entry.name: entry for entry in os.scandir(folder)}
    statuses = {name: entry.stat(follow_symlinks=False) for name, entry in files.items()}
    return {
        name: ((folder / name).read_bytes(), status.st_ino, status.st_mtime_ns, status.st_mode, status.st_uid)
        for name, status in statuses.items()
    }


# ---------------------------------------------------------------- many sessions in a row


def open_descriptors(path: Path) -> int:
    links = (os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return sum(link == str(path) for link in links)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_database_is_kept_open_until_all_is_read(path: Path) -> None:
    with databases_kept_open():
        for _ in range(3):
            assert len(ids_of(path)) == NOTES
            assert open_descriptors(path) == 1
        with databases_kept_open():
            assert len(ids_of(path)) == NOTES
        assert open_descriptors(path) == 1
    assert open_descriptors(path) == 0
    assert len(ids_of(path)) == NOTES
    assert open_descriptors(path) == 0


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate"])
def test_a_database_that_is_kept_open_is_read_as_it_is_now(path: Path, mode: str) -> None:
    with databases_kept_open():
        assert len(ids_of(path)) == NOTES
        with writing(path, f"journal_mode = {mode}") as writer:
            for step in range(1, 4):
                writer.do("commit 7")
                before = look(path.parent)
                assert len(ids_of(path)) == NOTES + 7 * step
                assert look(path.parent) == before
        other = path.with_name("other.db")
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(other)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = delete")
            target.execute("DELETE FROM note WHERE id LIKE 'new-%'")
            target.commit()
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        os.replace(other, path)
        assert len(ids_of(path)) == NOTES


def test_a_query_that_fails_closes_a_database_that_is_kept_open(path: Path) -> None:
    with databases_kept_open():
        assert len(ids_of(path)) == NOTES
        with pytest.raises(SourceError):
            read_database(path, SCHEMA, lambda database: list(database.rows("SELECT nothing FROM note")))
        assert len(ids_of(path)) == NOTES


def test_a_database_with_json_functions_in_an_index_is_read_in_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE INDEX by_text ON note (json_extract(data, '$.text')) WHERE json_valid(data)")
    monkeypatch.setattr("tempfile.tempdir", str(path.parent / "missing"))  # where a copy would be made
    assert len(ids_of(path)) == NOTES


# ---------------------------------------------------------------- without a trace


@pytest.mark.parametrize("mode", ["wal", "delete", "persist", "truncate"])
@pytest.mark.parametrize("rows", [1, 3_000])  # the larger change leaves the writer's memory before it is committed
def test_reading_leaves_no_trace_while_a_writer_writes(path: Path, mode: str, rows: int) -> None:
    pragmas = [f"journal_mode = {mode}", "wal_autocheckpoint = 50", "busy_timeout = 60000", "cache_size = 10"]
    expected = NOTES
    with writing(path, *pragmas) as writer:
        for step in ("commit", "open", "commit", "commit"):
            writer.do(f"{step} {rows}")
            expected += rows if step == "commit" else 0
            before = look(path.parent)
            assert len(ids_of(path)) == expected
            assert look(path.parent) == before
            if step == "open":
                writer.do("rollback")
    before = look(path.parent)
    assert len(ids_of(path)) == expected
    assert look(path.parent) == before


def test_reading_leaves_no_trace_while_a_writer_never_pauses(path: Path) -> None:
    """Its own files aside, whose content is its own business: no further file, and no lost row."""
    with writing(path, "journal_mode = wal", "wal_autocheckpoint = 20", "busy_timeout = 60000") as writer:
        writer.do("commit 1")
        names = set(os.listdir(path.parent))
        done = threading.Event()

        def write() -> None:
            for _ in range(60):
                writer.do("commit 20")
            done.set()

        thread = threading.Thread(target=write)
        thread.start()
        counts = []
        while not done.is_set():
            counts.append(len(ids_of(path)))
            assert set(os.listdir(path.parent)) == names
        thread.join(60)
        assert len(ids_of(path)) == NOTES + 1 + 60 * 20
    assert counts == sorted(counts)
    assert all((count - NOTES - 1) % 20 == 0 for count in counts)  # whole changes only


def test_a_writer_does_not_wait_for_a_reader_that_thinks(path: Path) -> None:
    with writing(path, "journal_mode = wal", "busy_timeout = 0") as writer:
        writer.do("commit 1")

        def work(database: ForeignDatabase) -> int:
            count = len(list(database.rows("SELECT id FROM note")))
            writer.do("commit 1")
            return count

        assert read_database(path, SCHEMA, work) == NOTES + 1


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_an_empty_database_keeps_its_log(path: Path, suffix: str) -> None:
    """SQLite deletes the log of an empty database."""
    with writing(path, "journal_mode = wal") as writer:
        writer.do("commit 1")
    Path(f"{path}{suffix}").write_bytes(b"")
    before = look(path.parent)
    if suffix:
        assert len(ids_of(path)) == NOTES
    else:  # most of its pages were in the database itself
        with pytest.raises(SourceError):
            ids_of(path)
    assert look(path.parent) == before


def test_copies_that_were_needed_are_gone_from_the_disk(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with writing(path, "journal_mode = wal") as writer:
        writer.do("commit 1")
    Path(f"{path}-shm").unlink()
    assert len(ids_of(path)) == NOTES + 1
    assert list(temporary.iterdir()) == []
    assert len(ids_of(path)) == NOTES + 1


# ---------------------------------------------------------------- locked, cut, half copied


def test_a_database_that_its_writer_has_to_itself_is_read(path: Path) -> None:
    with writing(path, "journal_mode = wal", "locking_mode = EXCLUSIVE") as writer:
        writer.do("commit 1")
        assert not Path(f"{path}-shm").exists()
        before = look(path.parent)
        assert len(ids_of(path)) == NOTES + 1
        assert look(path.parent) == before


@pytest.mark.parametrize("rows", [1, 3_000])
def test_the_change_that_a_killed_writer_began_is_not_read(path: Path, rows: int) -> None:
    with writing(path, "journal_mode = delete", "cache_size = 10") as writer:
        writer.do(f"open {rows}")
        writer.kill()
    assert Path(f"{path}-journal").exists() or rows == 1
    before = look(path.parent)
    assert len(ids_of(path)) == NOTES
    assert look(path.parent) == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_database_is_read_from_its_log_alone(path: Path, is_there: bool) -> None:
    with writing(path, "journal_mode = wal", "wal_autocheckpoint = 0") as writer:
        writer.do("commit 1")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("VACUUM")  # every page is in the log now
        for suffix in ("", "-wal"):
            Path(f"{path}-kept{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    copy = Path(f"{path}-kept")
    if is_there:
        copy.write_bytes(b"")
    else:
        copy.unlink()
    assert len(ids_of(copy)) == NOTES + 1


def test_a_cut_log_is_reported(path: Path) -> None:
    with writing(path, "journal_mode = wal", "wal_autocheckpoint = 0") as writer:
        writer.do("commit 100")
        writer.do("commit 100")
    log = Path(f"{path}-wal")
    Path(f"{path}-shm").unlink()
    log.write_bytes(log.read_bytes()[:-1000])
    ids, damage = reading_of(path)
    assert len(ids) == NOTES + 100
    assert damage == ("the log is damaged, or cut within a page",)


@pytest.mark.parametrize("damage", ["inserted", "NUL", "a whole frame"])
def test_a_log_with_something_else_in_the_place_of_a_frame_is_reported(path: Path, damage: str) -> None:
    with writing(path, "journal_mode = wal", "wal_autocheckpoint = 0") as writer:
        writer.do("commit 100")
    log = Path(f"{path}-wal")
    Path(f"{path}-shm").unlink()
    data, frame = log.read_bytes(), 24 + PAGE
    at = 32 + frame + 100  # in the second frame
    log.write_bytes(
        {
            "inserted": data[:at] + "\u2028".encode() + data[at:],
            "NUL": data[:at] + bytes(frame) + data[at + frame :],
            "a whole frame": data[: 32 + frame] + bytes(frame) + data[32 + 2 * frame :],
        }[damage]
    )
    ids, reported = reading_of(path)
    assert len(ids) == NOTES
    assert reported == ("the log is damaged, or cut within a page",)


def test_old_frames_in_a_log_that_was_begun_again_are_no_damage(path: Path) -> None:
    with writing(path, "journal_mode = wal", "wal_autocheckpoint = 0") as writer:
        for _ in range(4):
            writer.do("commit 1")
        size = Path(f"{path}-wal").stat().st_size
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(RESTART)")
            writer.do("commit 1")
        assert Path(f"{path}-wal").stat().st_size == size  # it was begun again
        copy = path.with_name("copy.db")
        for suffix in ("", "-wal"):
            Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    ids, reported = reading_of(copy)
    assert (len(ids), reported) == (NOTES + 5, ())


def test_changes_behind_a_damaged_page_of_the_log_are_reported(path: Path) -> None:
    with writing(path, "journal_mode = wal", "wal_autocheckpoint = 0") as writer:
        for _ in range(3):
            writer.do("commit 1")
    log = Path(f"{path}-wal")
    Path(f"{path}-shm").unlink()
    data = bytearray(log.read_bytes())
    data[-PAGE * 3 // 2] ^= 0xFF
    log.write_bytes(data)
    ids, (damage,) = reading_of(path)
    assert NOTES <= len(ids) < NOTES + 3
    assert "at the end of the log cannot be read" in damage


def pages_of(path: Path, table: str) -> list[int]:
    """The leaves of a table, as offsets."""
    data = path.read_bytes()
    with closing(sqlite3.connect(path)) as database:
        [(root,)] = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    return list(_leaves(data, root))


def _leaves(data: bytes, page: int) -> Iterator[int]:
    start = (page - 1) * PAGE
    head = data[start : start + PAGE]
    if head[0] == 13:
        yield start
        return
    assert head[0] == 5
    cells = [int.from_bytes(head[at : at + 2], "big") for at in range(12, 12 + 2 * head[4] + 512 * head[3], 2)]
    for child in [*(head[at : at + 4] for at in cells), head[8:12]]:
        yield from _leaves(data, int.from_bytes(child, "big"))


DAMAGES: dict[str, Callable[[int], bytes]] = {
    "zeros": lambda size: bytes(size),
    "noise": lambda size: bytes((at * 7 + 3) % 251 for at in range(size)),
    "ones": lambda size: b"\xff" * size,
}


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("which", [(0,), (-1,), (3, 4, 9)], ids=["first", "last", "three"])
def test_only_the_rows_of_damaged_pages_are_lost(path: Path, kind: str, which: tuple[int, ...]) -> None:
    leaves = pages_of(path, "note")
    data = bytearray(path.read_bytes())
    lost = 0
    for number in which:
        start = leaves[number]
        lost += int.from_bytes(data[start + 3 : start + 5], "big")
        data[start : start + PAGE] = DAMAGES[kind](PAGE)
    path.write_bytes(data)
    before = look(path.parent)
    ids, (damage,) = reading_of(path)
    assert len(ids) == NOTES - lost
    assert "in the table note cannot be read" in damage
    assert look(path.parent) == before


def test_the_rows_of_a_cut_database_are_read_up_to_the_cut(path: Path) -> None:
    leaves, data = pages_of(path, "note"), path.read_bytes()
    for part in (0.95, 0.6, 0.4):
        cut = int(len(data) * part)
        path.write_bytes(data[:cut])
        whole = [start for start in leaves if start + PAGE <= cut]
        ids, damage = reading_of(path)
        assert len(ids) == sum(int.from_bytes(data[start + 3 : start + 5], "big") for start in whole)
        assert damage


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_raises_anything_but_a_source_error(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    try:
        content = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, max(len(content) - 1, 0)))
            piece = data.draw(st.binary(min_size=1, max_size=64))
            content[at : at + len(piece)] = piece
        path.write_bytes(content)
        try:
            ids, _ = reading_of(path)
        except SourceError:
            return
        assert len(ids) <= NOTES
    finally:
        path.write_bytes(whole)


def test_a_value_that_is_too_long_costs_its_row_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_logger.agents.databases.opening.LONGEST_VALUE", 100_000)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE note SET data = ? WHERE id = 'note-00007'", ("x" * 200_000,))
    ids, (damage,) = reading_of(path)
    assert len(ids) == NOTES - 1
    assert damage == "1 place in the table note cannot be read"


def test_databases_of_others_are_refused(path: Path) -> None:
    schema = DatabaseSchema("letters", {"letter": ("id",)})
    with pytest.raises(SourceError, match="not a database of letters"):
        read_database(path, schema, lambda database: None)


def test_a_query_that_does_not_fit_is_an_error_and_copies_nothing(path: Path) -> None:
    before = len(snapshots._snapshots)
    with pytest.raises(SourceError, match="no such column"):
        read_database(path, SCHEMA, lambda database: list(database.rows("SELECT missing FROM note")))
    assert len(snapshots._snapshots) == before


def test_rows_that_a_damaged_tree_leads_to_again_are_read_once(path: Path) -> None:
    data = bytearray(path.read_bytes())
    leaves = pages_of(path, "note")
    first = (leaves[0] // PAGE + 1).to_bytes(4, "big")
    root = next(start for start in range(PAGE, len(data), PAGE) if data[start] == 5)
    for number in range(int.from_bytes(data[root + 3 : root + 5], "big")):
        cell = root + int.from_bytes(data[root + 12 + 2 * number : root + 14 + 2 * number], "big")
        data[cell : cell + 4] = first
    data[leaves[-1] : leaves[-1] + 8] = bytes(8)  # so that SQLite refuses the table
    path.write_bytes(data)
    ids, damage = reading_of(path)
    assert len(ids) == len(set(ids))
    assert damage
