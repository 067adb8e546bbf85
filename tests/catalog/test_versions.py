"""Catalogs of other versions: an older one is replaced, and the program that has it open is not disturbed.

`version_13/` is a home as the last version with another schema left it: two sessions (the second is a fork with a
label), and one that was removed.
"""

import gzip
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from agent_logger import Catalog
from agent_logger.catalog.sqlite.database import discard, open_database
from agent_logger.catalog.sqlite.schema import CATALOG, TEXT_INDEX
from tests.catalog.catalogs import ID, made_anew, user
from tests.catalog.catalogs import claude_file as add_lines

ONE, TWO, REMOVED = ID.format(1), ID.format(2), ID.format(3)
OLD = Path(__file__).parent / "version_13"
FILES = {"catalog.db": CATALOG, "catalog-text.db": TEXT_INDEX}
LAST_WITH_STEPS = {"catalog.db": 13, "catalog-text.db": 3}


@pytest.fixture
def old(home: Path) -> Path:
    """The home of agent-logger, as version 13 of the catalog left it."""
    shutil.copytree(OLD / "projects", home / ".claude" / "projects")
    own = home / ".agent-logger"
    own.mkdir()
    shutil.copy(OLD / "facts.jsonl", own)
    for name in FILES:
        (own / name).write_bytes(gzip.decompress((OLD / f"{name}.gz").read_bytes()))
    return own


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        (number,) = database.execute("PRAGMA user_version").fetchone()
    return int(number)


def answers(catalog: Catalog) -> list[object]:
    sessions = [
        (it.id, it.parent, it.title, it.exchanges, it.turns, it.tool_calls, it.errors, it.usage.counts[:2])
        for it in catalog.sessions()
    ]
    hits = [(hit.session, hit.forks) for word in ("zebra", "lion", "okapi") for hit in catalog.search(word)]
    return [sessions, hits, catalog.resolve("nightly"), catalog.summary(REMOVED)]


# As the program that wrote `version_13/` answered, but that a fork no longer counts the tool calls of its parent.
ANSWERS: list[object] = [
    [
        (TWO, ONE, "Mend the zebra crossing", 1, 1, 0, 0, (72, 162)),
        (ONE, None, "Mend the zebra crossing", 1, 2, 1, 1, (27, 207)),
    ],
    [(ONE, (TWO,)), (TWO, ())],
    [TWO],
    None,
]


def test_an_older_catalog_is_replaced_and_nothing_is_lost(old: Path, tmp_path: Path) -> None:
    assert {name: version(old / name) for name in FILES} == LAST_WITH_STEPS
    with Catalog.open(old) as catalog:
        assert answers(catalog) == ANSWERS
        assert catalog.problem is None
    with made_anew(old, tmp_path / "other") as catalog:
        assert answers(catalog) == ANSWERS, "all of it stands in files"
    assert {name: version(old / name) for name in FILES} == {name: schema.version for name, schema in FILES.items()}


def test_a_version_number_is_never_used_again() -> None:
    """A program with an older schema leaves these files alone, as it does every newer one."""
    assert all(schema.version > LAST_WITH_STEPS[name] for name, schema in FILES.items())


@pytest.fixture
def held(old: Path) -> Iterator[sqlite3.Connection]:
    """The catalog as a program of the older version has it open, with changes that only the log beside it has."""
    with closing(sqlite3.connect(old / "catalog.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE facts SET value = value + 1 WHERE name = 'changes'")
        yield database


def test_a_program_of_an_older_version_keeps_the_file_that_it_has_open(old: Path, held: sqlite3.Connection) -> None:
    before = (old / "catalog.db").stat().st_ino
    with Catalog.open(old) as catalog:
        assert answers(catalog) == ANSWERS
        assert held.execute("SELECT count(*) FROM told").fetchone() == (2,)
        held.execute("DELETE FROM told")
        assert (old / "catalog.db").stat().st_ino != before, "it asks for this before every question"
        held.close()
        assert answers(catalog) == ANSWERS
        add_lines(old.parent, ONE, [user(300, "And a gnu", ONE)])
        catalog.refresh()
    with Catalog.open(old) as catalog:
        assert catalog.search("gnu")
        assert catalog.problem is None
    with closing(sqlite3.connect(old / "catalog.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_opening_does_not_wait_for_a_program_writing_to_an_older_catalog(
    old: Path, held: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_logger.catalog.sqlite.database.WAIT_SECONDS", 0.1)
    held.execute("BEGIN IMMEDIATE")
    with Catalog.open(old) as catalog:
        assert answers(catalog) == ANSWERS
        assert catalog.problem is None


@pytest.mark.parametrize("round_", range(5))
def test_programs_opening_an_older_catalog_concurrently_share_the_new_one(old: Path, round_: int) -> None:
    start = Barrier(8)

    def catalog_id(_: int) -> str:
        start.wait()
        with closing(open_database(old / "catalog.db", CATALOG)) as database:
            (value,) = database.execute("SELECT value FROM properties WHERE name = 'catalog_id'").fetchone()
        return str(value)

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(catalog_id, range(8)))
    assert len(ids) == 1
    with Catalog.open(old) as catalog:
        assert answers(catalog) == ANSWERS


def test_a_damaged_catalog_is_removed_once(old: Path) -> None:
    path = old / "catalog.db"
    with closing(open_database(path, CATALOG)) as one, closing(open_database(path, CATALOG)) as two:
        assert discard(one, path)
        with closing(open_database(path, CATALOG)):
            new = path.stat().st_ino
            assert discard(two, path), "another process has noticed the damage before"
            assert path.stat().st_ino == new
