"""A catalog in PostgreSQL answers as one in SQLite does, whatever happened to the files and in whatever order."""

import shutil
from pathlib import Path
from random import Random
from string import ascii_letters

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from agent_logger import Catalog
from agent_logger.archive.imported import remove_import
from agent_logger.archive.run import archive_all
from agent_logger.home.facts import register_log_folder
from agent_logger.imports.run import run_import
from tests.agents.databases.recorded import recorded_database
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.catalog.postgres.answers import assert_equal, filters, indexed, read_only
from tests.catalog.test_stateful import Followed
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log
from tests.postgres import PostgresServer

pytestmark = pytest.mark.needs("postgresql")

ONE, TWO, THREE = (ID.format(number) for number in (1, 2, 3))
ODD = 'Zebra\'s 100%_ \\ "İstanbul" ΑΣ ß \u0000 NUL \ud800 half 日本'
MODEL = ODD.replace("\0", "")  # SQLite finds no name with a NUL in a list


def test_no_sessions_at_all(home: Path, postgres_url: str) -> None:
    with Catalog.open(home) as catalog, indexed(home, postgres_url) as other:
        other.refresh()
        assert_equal(catalog, other)


@pytest.mark.timeout(600)
def test_every_question(home: Path, postgres_url: str) -> None:
    root = home.parent
    claude_file(
        root,
        ONE,
        [
            user(1, "fix the timer", ONE),
            assistant(2, "a", ONE),
            *tool(4, ONE, "Bash", {"command": "ls"}, "no", failed=True),
        ],
    )
    claude_file(
        root, TWO, [user(100, ODD, TWO), assistant(101, ODD, TWO, model=ODD.replace("\0", ""))], project="-p-odd"
    )
    fork = claude_file(root, ONE, []).with_name(f"{THREE}.jsonl")
    shutil.copy(claude_file(root, ONE, []), fork)
    claude_file(root, THREE, [user(200, "more", THREE), assistant(201, "b", THREE), assistant(202, "c", THREE)])
    with fork.open("ab") as file:
        file.write(b"not json\n")
    with Catalog.open(home) as catalog, indexed(home, postgres_url) as other:
        catalog.refresh()
        catalog.mark(ONE, labels=["later"], pinned=True, note="look at this")
        other.refresh()
        assert_equal(catalog, other, filters(catalog))
        with read_only(home, postgres_url) as reader:
            assert_equal(catalog, reader)
        catalog.remove(TWO)
        other.refresh()
        assert_equal(catalog, other)


@pytest.mark.timeout(600)
def test_different_sessions_with_one_id(
    home: Path, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def assert_alike(count: int) -> None:
        catalog.refresh()
        other.refresh()
        assert len(catalog.sessions()) == count
        assert_equal(catalog, other)
        assert other.refresh().files_opened == 0

    colleague = tmp_path_factory.mktemp("colleague")
    recorded_database("goose", "1.52.0/compaction", colleague)
    with pytest.MonkeyPatch.context() as there:
        there.setenv("HOME", str(colleague))
        archive_all(colleague / ".agent-logger")
    with Catalog.open(home) as catalog, indexed(home, postgres_url) as other:
        imported = run_import(home, colleague / ".agent-logger")
        assert_alike(1)
        (session,) = catalog.sessions()
        catalog.mark(session.id, labels=["theirs"])
        database = recorded_database("goose", "1.52.0/failures", home.parent)
        assert_alike(2)
        archive_all(home)
        database.unlink()
        recorded_database("goose", "1.52.0/tree", home.parent)
        assert_alike(3)
        catalog.mark(session.id, labels=["ours"])
        assert_alike(3)
        catalog.remove(session.id)
        assert_alike(2)
        (theirs,) = (each.id for each in catalog.sessions() if each.labels == ("theirs",))
        catalog.remove(theirs)
        assert_alike(1)
        remove_import(home, imported.import_name)
        assert_alike(1)


def test_a_name_that_is_too_long_for_an_index_keeps_nothing_else_out(home: Path, postgres_url: str) -> None:
    long = "".join(Random(1).choices(ascii_letters, k=3000))
    folder = home.parent / "logs" / "/".join(long[at : at + 200] for at in range(0, len(long), 200))
    write_log(folder, "2026-log-1", [start("2026-log-1"), *calls(1)])
    register_log_folder(home, folder)
    claude_file(home.parent, ONE, [user(1, long, ONE, cwd=f"/{long}"), assistant(2, "a", ONE, model=long)])
    for name, line in ((TWO, user(3, "b", long)), (THREE, {"type": "summary", "summary": "c", "leafUuid": long})):
        claude_file(home.parent, name, [line, assistant(4, "b", long if name == TWO else name)])
    with indexed(home, postgres_url) as catalog:
        catalog.refresh()
        assert ONE in [session.id for session in catalog.sessions()]
        assert catalog.index()


class _FollowedByBoth(Followed):
    server: PostgresServer

    def __init__(self) -> None:
        super().__init__()
        self.database = self.server.new_database()
        self.url = self.server.url(self.database.__enter__())
        self.is_compared = True

    def teardown(self) -> None:
        self.database.__exit__(None, None, None)
        super().teardown()

    @rule()
    def look_with_both(self) -> None:
        with indexed(self.home, self.url) as other:
            other.refresh()

    @invariant()
    def is_the_one_that_is_made_anew(self) -> None:
        if not self.changed:
            return
        self.changed = False
        self.catalog.refresh()
        with indexed(self.home, self.url) as other:
            other.refresh()
            assert_equal(self.catalog, other)
            assert other.refresh().files_opened == 0


def follow(server: PostgresServer, examples: int, steps: int) -> None:
    _FollowedByBoth.server = server
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(_FollowedByBoth, settings=chosen)


@pytest.mark.timeout(600)
def test_both_follow_the_same_changes(postgres_server: PostgresServer) -> None:
    follow(postgres_server, 3, 8)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_both_follow_the_same_changes_in_a_long_run(postgres_server: PostgresServer) -> None:
    follow(postgres_server, 200, 30)
