"""Many new sessions are indexed by several processes. Whatever ends one of them, the index becomes what one process
makes of the same files."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger import Catalog, platform
from agent_logger.catalog.search import parallel
from agent_logger.catalog.search.shard_builder import ShardBuilder
from agent_logger.catalog.search.text_index import IndexedSession
from agent_logger.catalog.search.texts import INPUT, Text
from agent_logger.catalog.sqlite.database import open_database
from agent_logger.catalog.sqlite.schema import TEXT_INDEX
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, made_anew, sqlite_of, tool, user

FAMILIES = 40
WORDS = ("zebra", "answer", "refused", "tool:Bash", "is:error", '"question 7"')
SECONDS = 60.0

INDEX = """
import sys
from pathlib import Path
from agent_logger import Catalog, platform
from agent_logger.catalog.search import parallel

def start(*arguments):
    indexer = start_indexer(*arguments)
    print(indexer.pid, flush=True)
    return indexer

start_indexer, parallel._start_indexer = parallel._start_indexer, start
parallel.SHARE_BYTES = parallel.SHARD_TEXT_BYTES = 1
platform.usable_cores = lambda: 2
with Catalog.open(Path(sys.argv[1])) as catalog:
    catalog.index()
"""


@pytest.fixture
def home(home: Path) -> Path:
    """Sessions, of which every fifth has a fork."""
    for number in range(1, FAMILIES + 1):
        name = ID.format(number)
        lines = [
            user(20 * number, f"question {number} about a zebra", name),
            *tool(20 * number + 1, name, "Bash", {"command": "ls"}, "connection refused", failed=True),
            assistant(20 * number + 3, f"answer {number} " + "word " * 50, name),
        ]
        path = claude_file(home, name, lines)
        path.write_bytes(path.read_bytes() + b'{"type": "torn' if number == 3 else path.read_bytes())
        if number % 5 == 0:
            fork = ID.format(1000 + number)
            copied = [{**line, "sessionId": fork} for line in lines]
            claude_file(home, fork, [*copied, assistant(20 * number + 9, "answer of the fork", fork)])
    return home


@pytest.fixture
def on_two_cores(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have two processes index whatever there is. Returns their ids."""
    started: list[int] = []
    start_indexer = parallel._start_indexer

    def start(home: Path, output: int) -> "subprocess.Popen[bytes]":
        indexer = start_indexer(home, output)
        started.append(indexer.pid)
        return indexer

    monkeypatch.setattr(parallel, "_start_indexer", start)
    monkeypatch.setattr(parallel, "SHARE_BYTES", 1)
    monkeypatch.setattr(platform, "usable_cores", lambda: 2)
    return started


def test_several_processes_index_what_one_process_does(home: Path, on_two_cores: list[int]) -> None:
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        done: list[tuple[int, int]] = []
        assert catalog.index(lambda *so_far: done.append(so_far))
        assert len(on_two_cores) == 2
        total = sum(path.stat().st_size for path in home.rglob("*.jsonl"))
        assert done[-1] == (total, total)
        _check_equal(home)
        assert _shards(catalog.home) == 2
        assert _index_rows(catalog.home) == _index_rows(_made_by_one(home))


def test_few_sessions_are_indexed_without_another_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "usable_cores", lambda: 64)
    monkeypatch.setattr(parallel, "_start_indexer", lambda *_: pytest.fail("a process was started"))
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.index()


def test_sessions_are_indexed_where_no_process_can_be_started(
    home: Path, on_two_cores: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(home / "python"))
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.index()
        assert not on_two_cores
        _check_equal(home)


def test_sessions_that_follow_are_added_to_what_several_processes_made(home: Path, on_two_cores: list[int]) -> None:
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.index()
        claude_file(home, ID.format(7), [assistant(999, "a zebra came later", ID.format(7))])
        claude_file(home, ID.format(500), [user(5, "another zebra", ID.format(500))])
        assert catalog.index()
        assert (len(on_two_cores), _shards(catalog.home)) == (2, 2)
        _check_equal(home)


def test_words_of_a_session_that_is_removed_leave_the_index(home: Path, on_two_cores: list[int]) -> None:
    claude_file(home, ID.format(600), [user(5, "the xylophone", ID.format(600))])
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.index()
        assert b"xylophone" in _words(catalog.home)
        catalog.remove(ID.format(600))
        assert catalog.search("xylophone") == []
        assert catalog.index()
        assert b"xylophone" not in _words(catalog.home)
        assert len(catalog.search("zebra", limit=1000)) == FAMILIES


def test_words_of_a_session_that_is_removed_meanwhile_are_not_published(home: Path) -> None:
    name = ID.format(7)
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        assert not catalog.coverage.is_whole
        with closing(open_database(catalog.home / "catalog-text.db", TEXT_INDEX)) as texts:
            builder = ShardBuilder(texts)
            builder.add(IndexedSession(name, "stamp", [Text(1, 0, INPUT, 0, text="xylophone")]))
            catalog.remove(name)
            builder.publish(catalog.home)
            builder.add(IndexedSession("other", "stamp", [Text(1, 0, INPUT, 0, text="clarinet")]))
            builder.publish(catalog.home)
    words = _words(catalog.home)
    assert b"xylophone" not in words
    assert b"clarinet" in words


def test_a_session_that_two_processes_index_at_once_is_found_once(home: Path) -> None:
    session = IndexedSession(ID.format(7), "stamp", [Text(1, 0, INPUT, 0, text="xylophone")])
    ours = home / ".agent-logger"
    path = ours / "catalog-text.db"
    with closing(open_database(path, TEXT_INDEX)) as one, closing(open_database(path, TEXT_INDEX)) as other:
        builders = [ShardBuilder(database) for database in (one, other)]
        for builder in builders:
            builder.add(session)
        for builder in builders:
            builder.publish(ours)
        assert one.execute("SELECT count(*) FROM indexed_sessions").fetchone() == (1,)
    assert (_shards(ours), _index_rows(ours)) == (1, (1, 1, 1))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "shards", [pytest.param(0, marks=pytest.mark.long), 1, pytest.param(12, marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    ("name", "end"),
    [
        pytest.param("index", signal.SIGKILL, id="the process that started them is killed"),
        pytest.param("index", signal.SIGINT, id="Ctrl-C"),
        pytest.param("indexer", signal.SIGKILL, id="one of them is killed"),
    ],
)
def test_the_index_is_completed_after_a_process_was_ended(
    home: Path, name: str, end: signal.Signals, shards: int
) -> None:
    ours = home / ".agent-logger"
    with subprocess.Popen(
        [sys.executable, "-c", INDEX, str(ours)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        indexers = [int(process.stdout.readline()) for _ in range(2)]
        _wait(lambda: _shards(ours) >= shards)
        if end == signal.SIGINT:
            os.kill(indexers[0], signal.SIGSTOP)  # it does not end by itself
        os.kill(process.pid if name == "index" else indexers[0], end)
        process.wait(SECONDS)
        _wait(lambda: not any(map(_runs, indexers)))
    if name == "indexer":
        assert process.returncode == 0
        with closing(sqlite3.connect(ours / "catalog-text.db")) as texts:
            assert texts.execute("SELECT count(*) FROM indexed_sessions").fetchone() == (FAMILIES + FAMILIES // 5,)
    _check_equal(home)


def _check_equal(home: Path) -> None:
    with Catalog.open(home / ".agent-logger") as catalog, Catalog.open(_made_by_one(home)) as other:
        assert all_of(catalog, WORDS) == all_of(other, WORDS)
        names = [session.id for session in catalog.sessions()]
        assert catalog.damaged_files(*names) == other.damaged_files(*names)
        for (shard,) in sqlite_of(catalog).text_database().execute("SELECT id FROM shards").fetchall():
            check = f"INSERT INTO words_{shard} (words_{shard}) VALUES ('integrity-check')"
            sqlite_of(catalog).text_database().execute(check)


def _made_by_one(home: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch, made_anew(home / ".agent-logger", home / "other") as other:
        patch.setattr(platform, "usable_cores", lambda: 1)
        assert other.index()
        return other.home


def _shards(ours: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{ours}/catalog-text.db?mode=ro", uri=True)) as texts:
            (count,) = texts.execute("SELECT count(*) FROM shards").fetchone()
            return int(count)
    except sqlite3.OperationalError:  # it is being made
        return 0


def _index_rows(ours: Path) -> tuple[int, int, int]:
    """Return how many texts there are, how many of them have words of their own, and the rows of all shards."""
    with closing(sqlite3.connect(ours / "catalog-text.db")) as texts:
        count, different = texts.execute("SELECT count(*), count(DISTINCT index_row) FROM texts").fetchone()
        (rows,) = texts.execute("SELECT sum(rows) FROM shards").fetchone()
        return count, different, rows


def _words(ours: Path) -> bytes:
    with closing(sqlite3.connect(ours / "catalog-text.db")) as texts:
        shards = [shard for (shard,) in texts.execute("SELECT id FROM shards")]
        blocks = [block for shard in shards for (block,) in texts.execute(f"SELECT block FROM words_{shard}_data")]
    return b"".join(blocks)


def _runs(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def _wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < end
        time.sleep(0.005)
