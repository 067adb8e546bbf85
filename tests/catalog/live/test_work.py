"""How much is looked at to know which sessions are live: it grows with what has changed, not with the archive."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_logger import SessionLogger
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.queries import live_candidates
from agent_logger.catalog.sqlite.database import SqliteDatabase
from agent_logger.catalog.summary import Filter
from agent_logger.journal.sync import UPKEEP
from tests.catalog.catalogs import assistant, claude_file, user

LIVE = Filter(live=True)
ID = "{:08x}-1111-4111-8111-111111111111"
LOGGING = """
import sys, time
from agent_logger import SessionLogger
logger = SessionLogger(sys.argv[1])
logger.log_user_input("Make tea")
logger.log({"type": "system", "subtype": "init", "session_id": sys.argv[2]})
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def catalog(home: Path) -> Iterator[Catalog]:
    with Catalog.open(home / ".agent-logger") as opened:
        yield opened


def log_session(folder: Path, number: int) -> str:
    """Record a session and close its log."""
    session = ID.format(number)
    logger = SessionLogger(folder)
    logger.log_user_input("Make tea")
    logger.log({"type": "system", "subtype": "init", "session_id": session})
    block = {"type": "text", "text": "Done."}
    said = {"id": f"msg_01{number:022d}", "content": [block], "usage": {"input_tokens": 1}}
    logger.log({"type": "assistant", "message": said, "session_id": session})
    logger.close()
    return session


@contextmanager
def logging_program(folder: Path, number: int) -> Iterator[subprocess.Popen[str]]:
    """A process that has the log of a session open, and writes nothing more."""
    command = [sys.executable, "-c", LOGGING, str(folder), ID.format(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def age(folder: Path) -> None:
    """As if nothing had been written for an hour."""
    UPKEEP.finish()  # which removes the live files of exchanges that have ended
    hour_ago = time.time() - 3600
    for path in [*folder.iterdir(), folder]:
        os.utime(path, (hour_ago, hour_ago))


class Looks:
    """What this process does to the files of a folder: it opens, locks and lists."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self.is_watching = False
        self.opened: list[str] = []
        self.locked = 0
        self.listed = 0
        sys.addaudithook(self._watch)

    def _watch(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_watching:
            return
        if event == "open" and str(arguments[0]).startswith(f"{self._folder}/"):
            self.opened.append(Path(str(arguments[0])).name)
        self.locked += event == "fcntl.flock"
        self.listed += event == "os.scandir" and str(arguments[0]) == self._folder

    @contextmanager
    def watched(self) -> Iterator["Looks"]:
        self.opened, self.locked, self.listed = [], 0, 0
        self.is_watching = True
        try:
            yield self
        finally:
            self.is_watching = False


def ids_of_live_sessions(catalog: Catalog) -> list[str]:
    return [summary.id for summary in catalog.sessions(LIVE)]


def test_closed_logs_are_not_checked_for_locks_again(home: Path, catalog: Catalog) -> None:
    folder = home / "sessions"
    for number in range(1, 31):
        log_session(folder, number)
    with logging_program(folder, 100) as killed:
        killed.kill()
    looks = Looks(folder)
    with logging_program(folder, 200):
        age(folder)
        assert ids_of_live_sessions(catalog) == [ID.format(200)]
        for asked in (catalog, Catalog(home / ".agent-logger")):
            asked.refresh()
            with looks.watched():
                assert ids_of_live_sessions(asked) == [ID.format(200)]
                assert asked.count(LIVE) == 1
            assert {name[-14:-6] for name in looks.opened} <= {ID.format(200)[:8]}
            assert looks.locked <= 8
    catalog.refresh()
    with looks.watched():
        assert ids_of_live_sessions(catalog) == []
    assert {name[-14:-6] for name in looks.opened} <= {ID.format(200)[:8]}  # its program has just ended


def test_listing_live_sessions_does_not_read_closed_logs(home: Path, catalog: Catalog) -> None:
    folder = home / "sessions"
    for number in range(1, 31):
        log_session(folder, number)
    age(folder)
    catalog.refresh()
    backlog = catalog.backlog
    looks = Looks(folder)
    with looks.watched():
        assert catalog.count(LIVE) == 0
    assert catalog.backlog == backlog
    assert len(looks.opened) == looks.locked == 30  # each is tried once, and not read
    with looks.watched():
        assert catalog.count(LIVE) == 0
    assert (looks.opened, looks.locked) == ([], 0)


def test_listing_sessions_does_not_touch_closed_logs(home: Path, catalog: Catalog) -> None:
    folder = home / "sessions"
    for number in range(1, 6):
        log_session(folder, number)
    age(folder)
    assert len(catalog.sessions()) == 5
    looks = Looks(folder)
    catalog.refresh()
    with looks.watched():
        assert not any(summary.live for summary in catalog.sessions())
        assert catalog.summary(ID.format(1))
    assert (looks.opened, looks.locked, looks.listed) == ([], 0, 0)


def test_a_reopened_log_is_live_again(home: Path, catalog: Catalog) -> None:
    folder = home / "sessions"
    session = log_session(folder, 1)
    age(folder)
    assert ids_of_live_sessions(catalog) == []
    with logging_program(folder, 1):
        for path in folder.glob("*.jsonl*"):
            os.utime(path, (time.time() - 3000, time.time() - 3000))
        catalog.refresh()
        assert ids_of_live_sessions(catalog) == [session]
    catalog.refresh()
    assert ids_of_live_sessions(catalog) == []


def test_sealed_logs_are_not_opened_again(home: Path, catalog: Catalog) -> None:
    folder = home / "sessions"
    for number in range(1, 6):
        log_session(folder, number)
    age(folder)
    assert [summary.damaged_lines for summary in catalog.sessions()] == [0] * 5
    assert catalog.seal(0) == 5
    catalog.refresh()
    looks = Looks(folder)
    with looks.watched():
        assert [(summary.live, summary.damaged_lines) for summary in catalog.sessions()] == [(False, 0)] * 5
        assert ids_of_live_sessions(catalog) == []
    assert (looks.opened, looks.locked) == ([], 0)


def test_new_copies_of_old_sessions_are_not_live_candidates(home: Path, catalog: Catalog) -> None:
    for number in range(1, 31):
        name = ID.format(number)
        claude_file(home, name, [user(1, "one", name), assistant(2, "a", name)])
    assert catalog.count(LIVE) == 0
    database = sqlite3.connect(home / ".agent-logger" / "catalog.db", factory=SqliteDatabase)
    assert live_candidates(database) == []
    database.close()
