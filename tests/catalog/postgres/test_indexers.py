"""Several indexers fill one database at once, and are killed."""

import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from agent_logger import Catalog
from agent_logger.archive.run import archive_all
from agent_logger.catalog.database import Database
from agent_logger.catalog.postgres import refresh as postgres_refresh
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.migrations import migrate
from agent_logger.catalog.postgres.refresh import _look
from agent_logger.catalog.refresh import families
from agent_logger.catalog.refresh.same_ids import tell_apart
from agent_logger.home.homes import Homes
from agent_logger.imports.run import run_import
from tests.agents.databases.recorded import recorded_database
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.catalog.postgres.answers import assert_equal, indexed, read_only

pytestmark = pytest.mark.needs("postgresql")

SESSIONS = 200


def grow(root: Path, count: int, chance: random.Random) -> None:
    """Write sessions and lines of sessions, some of which are forks of others."""
    for _ in range(count):
        name, number = ID.format(chance.randrange(SESSIONS)), chance.randrange(1, 80_000)
        lines = [user(number, "fix the timer", name), assistant(number + 1, "done", name)]
        lines += tool(number + 2, name, "Bash", {"command": "make"}, "refused", failed=chance.random() < 0.3)
        path = claude_file(root, name, lines, project=f"-p-{number % 3}")
        if chance.random() < 0.3:
            fork = path.with_name(f"{ID.format(SESSIONS + chance.randrange(SESSIONS))}.jsonl")
            shutil.copy(path, fork)
        elif chance.random() < 0.1:
            path.unlink()


@contextmanager
def indexers(home: Path, url: str, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    processes = [start(home, url) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def start(home: Path, url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agent_logger.catalog.postgres.indexer", str(home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    assert process.stdin
    process.stdin.write(f"{url}\n")
    process.stdin.close()
    return process


@pytest.mark.timeout(600)
def test_three_indexers_share_the_work_of_a_first_index(home: Path, postgres_url: str) -> None:
    grow(home.parent, 400, random.Random(1))
    with indexers(home, postgres_url, 3) as processes:
        for process in processes:
            assert process.wait(300) == 0
    with Catalog.open(home) as catalog, read_only(home, postgres_url) as reader:
        catalog.index()
        assert_equal(catalog, reader)
        assert reader.coverage.is_whole


def follow_and_kill(home: Path, url: str, seconds: float) -> None:
    chance = random.Random(2)
    grow(home.parent, 300, chance)
    until = time.monotonic() + seconds
    with indexers(home, url, 3) as processes:
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.05, 1.0))
            which = chance.randrange(3)
            killed = processes[which].poll() is None
            processes[which].send_signal(signal.SIGKILL)
            assert processes[which].wait() == 0 or killed
            grow(home.parent, 20, chance)
            processes[which] = start(home, url)
    with Catalog.open(home) as catalog, indexed(home, url) as other:
        catalog.refresh()
        other.refresh()
        other.index()
        assert_equal(catalog, other)
        assert other.coverage.is_whole
    with psycopg.connect(url) as connection:
        for table in ("source_work", "session_work WHERE is_due"):
            assert connection.execute(f"SELECT count(*) FROM agent_logger.{table}".encode()).fetchone() == (0,)


@pytest.mark.timeout(600)
def test_killed_indexers_leave_nothing_half_done(home: Path, postgres_url: str) -> None:
    follow_and_kill(home, postgres_url, 10)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_indexers_are_killed_for_five_minutes(home: Path, postgres_url: str) -> None:
    follow_and_kill(home, postgres_url, 300)


def test_work_of_a_killed_indexer_on_a_file_that_is_gone_is_dropped(home: Path, postgres_url: str) -> None:
    path = claude_file(home.parent, ID.format(1), [user(1, "a", ID.format(1)), assistant(2, "b", ID.format(1))])
    with closing(PostgresDatabase(postgres_url)) as database:
        migrate(database)
        _look(database, Homes(home))  # and then it is killed
    path.unlink()
    with indexed(home, postgres_url) as catalog:
        assert catalog.refresh().sources == 0
        assert catalog.sources(ID.format(1)) == []


@pytest.mark.timeout(120)
def test_two_indexers_tell_sessions_with_one_id_apart(
    home: Path, postgres_url: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scenario in ("compaction", "failures"):
        colleague = tmp_path_factory.mktemp(scenario)
        recorded_database("goose", f"1.52.0/{scenario}", colleague)
        with monkeypatch.context() as there:
            there.setenv("HOME", str(colleague))
            archive_all(colleague / ".agent-logger")
        run_import(home, colleague / ".agent-logger")
    monkeypatch.setattr(postgres_refresh, "AT_ONCE", 1)
    both_have_stored = threading.Barrier(2)

    def tell_apart_late(database: Database, ids: Iterable[str | None]) -> set[str]:
        with suppress(threading.BrokenBarrierError):  # one waits for the other
            both_have_stored.wait(2)
        return tell_apart(database, ids)

    def refresh() -> None:
        with indexed(home, postgres_url) as catalog:
            catalog.refresh()

    with monkeypatch.context() as late, ThreadPoolExecutor(2) as threads:
        late.setattr(families, "tell_apart", tell_apart_late)
        for done in [threads.submit(refresh) for _ in range(2)]:
            done.result()
    assert both_have_stored.broken  # it was waited for, and no two have stored at once
    with indexed(home, postgres_url) as indexer, Catalog.open(home) as catalog:
        assert indexer.refresh().files_opened == 0
        assert len(catalog.sessions()) == 2
        assert_equal(catalog, indexer)
