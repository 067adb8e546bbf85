"""A search of the catalog has the same hits in SQLite and in PostgreSQL, whoever indexed what when."""

import shutil
import subprocess
import sys
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from agent_logger import Catalog, Hit
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.texts import PostgresTextIndex
from agent_logger.catalog.search import search
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.catalog.postgres.answers import indexed, read_only
from tests.hostile import HOSTILE

pytestmark = pytest.mark.needs("postgresql")

SESSIONS = [ID.format(number) for number in range(1, 7)]
QUERIES = [
    *("timer", "TIMER", "timer login", '"connection refused"', "connection refused", "start*", "start"),
    *("timer tool:Bash", "tool:bash", "tool:Read timer", "file:login.py", "file:src/login.py", "is:error", "größe"),
    *("host project:other", "host project:OTHER agent:claude", "label:later", "is:pinned", "label:later timer", "note"),
    *("machine:nowhere timer", "漢字", '"漢字 timer"', "zzz", "project:shop", "tool:", "common", "is:error refused"),
]


@pytest.fixture
def root(home: Path) -> Path:
    for number, session in enumerate(SESSIONS):
        project, at = "-p-other" if number % 2 else "-p-shop", 100 * number
        claude_file(
            home,
            session,
            [
                user(at + 1, f"Fix the login timer, common word, please: 漢字 {number}", session),
                *tool(at + 2, session, "Bash", {"command": "pytest -k timer"}, "connection refused, host", failed=True),
                *tool(at + 4, session, "Read", {"file_path": "/p/shop/src/login.py"}, f"def login(user): {number}"),
                assistant(at + 6, "The timer was never started. Größe café common", session),
            ],
            project,
        )
    origin = claude_file(home, SESSIONS[0], [])
    fork = ID.format(8)
    shutil.copy(origin, origin.with_name(f"{fork}.jsonl"))
    claude_file(home, fork, [user(900, "more of the timer", fork), assistant(901, "common end", fork)])
    return home / ".agent-logger"


def hits(catalog: Catalog, typed: str, **when: date) -> list[Hit] | str:
    try:
        found_hits = catalog.search(typed, limit=500, **when)
    except ValueError as error:
        return str(error)
    assert catalog.count_hits(typed, **when) == len(found_hits), typed
    return sorted(found_hits, key=repr)


def assert_same_hits(catalog: Catalog, *others: Catalog) -> None:
    for typed in (*QUERIES, *HOSTILE):
        expected = hits(catalog, typed)
        for other in others:
            assert hits(other, typed) == expected, typed


def test_every_query_has_the_same_hits_and_snippets(root: Path, postgres_url: str) -> None:
    with Catalog.open(root) as catalog, indexed(root, postgres_url) as other:
        catalog.refresh()
        catalog.mark(SESSIONS[0], labels=["later"], pinned=True, note="a note on it")
        other.refresh()
        assert other.index()
        with read_only(root, postgres_url) as reader:
            assert_same_hits(catalog, other, reader)
            assert reader.coverage.is_whole
        day = date(2026, 1, 1)
        assert hits(other, "timer", since=day) == hits(catalog, "timer", since=day)
        assert hits(other, "timer", until=day) == hits(catalog, "timer", until=day)
        assert len(hits(catalog, "common")) == 13
        session = SESSIONS[1]
        claude_file(root.parent, session, [assistant(990, "a common end of it", session)], "-p-other")
        for one in (catalog, other):
            one.refresh()
            one.index()
        assert len(hits(catalog, "common")) == 14
        assert_same_hits(catalog, other)
        catalog.remove(session)
        other.refresh()
        other.index()
        assert_same_hits(catalog, other)


INDEXER = [sys.executable, "-m", "agent_logger.catalog.postgres.indexer"]


def start_indexer(root: Path, url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([*INDEXER, str(root)], stdin=subprocess.PIPE, text=True)
    assert process.stdin
    process.stdin.write(f"{url}\n")
    process.stdin.close()
    return process


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BATCH_BYTES", 1)


def test_indexers_at_once_leave_what_one_leaves(root: Path, postgres_url: str) -> None:
    with Catalog.open(root) as catalog, indexed(root, postgres_url) as other:
        indexers = [start_indexer(root, postgres_url) for _ in range(3)]
        assert [indexer.wait(60) for indexer in indexers] == [0, 0, 0]
        assert other.coverage.is_whole
        assert_same_hits(catalog, other)


def test_a_session_that_another_indexer_has_is_left_to_it(root: Path, postgres_url: str, small_batches: None) -> None:
    with indexed(root, postgres_url) as other, closing(PostgresDatabase(postgres_url)) as database:
        other.refresh()
        index = PostgresTextIndex(database)
        assert index.claim(SESSIONS[2])
        assert not other.index()
        assert other.coverage.done < other.coverage.total
        assert SESSIONS[2] not in index.stamps() and SESSIONS[3] in index.stamps()
        index.index([])
        assert other.index()
        assert not index.claim(SESSIONS[2]), "it is indexed"
