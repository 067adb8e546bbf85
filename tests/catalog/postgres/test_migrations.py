"""The tables of a database: made once, whoever is first, and never changed by a program that does not know them."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.migrations import STEPS, Migration, migrate
from agent_logger.errors import ConfigError, StoreError
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.catalog.postgres.answers import indexed, read_only
from tests.postgres import USER, PostgresServer

pytestmark = pytest.mark.needs("postgresql")


def names(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM agent_logger.migrations ORDER BY at, name")]


def migrate_to(url: str, steps: tuple[Migration, ...] = STEPS) -> None:
    with closing(PostgresDatabase(url)) as database:
        migrate(database, steps)


def tables(url: str, *wanted: str) -> list[str | None]:
    with closing(PostgresDatabase(url)) as database:
        return [database.execute("SELECT to_regclass(?)::text", (name,)).fetchone()[0] for name in wanted]


def test_processes_that_start_at_once_make_the_tables_once(postgres_url: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: migrate_to(postgres_url), range(8)))
    assert names(postgres_url) == [step.name for step in STEPS]


def test_a_step_is_done_wholly_or_not_at_all(postgres_url: str) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate_to(postgres_url, (*STEPS, Migration("broken", "CREATE TABLE half (id bigint); SELECT 1 / 0")))
    assert tables(postgres_url, "half", "sessions") == [None, None]
    migrate_to(postgres_url)
    migrate_to(postgres_url, (*STEPS, Migration("mended", "CREATE TABLE half (id bigint)")))
    assert tables(postgres_url, "half", "sessions") == ["half", "sessions"]


def test_a_database_that_is_newer_than_the_program(home: Path, postgres_url: str) -> None:
    migrate_to(postgres_url, (*STEPS, Migration("9999 something new", "SELECT 1")))
    for opened in (indexed, read_only):
        with pytest.raises(StoreError, match=r"newer version of agent-logger \('9999 something new'\); update"):
            opened(home, postgres_url)


def test_a_database_that_is_older_than_the_program_is_not_read(home: Path, postgres_url: str) -> None:
    migrate_to(postgres_url, STEPS[:1])
    with pytest.raises(StoreError, match="is older than this program"):
        read_only(home, postgres_url)


def test_an_empty_database_is_not_written_to_by_a_reader(home: Path, postgres_url: str) -> None:
    with pytest.raises(StoreError, match="has no catalog: nothing was indexed into it yet"):
        read_only(home, postgres_url)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace('agent_logger')").fetchone() == (None,)


@pytest.mark.parametrize(
    "url", ["mysql://host/name", "host=x password=secret", "postgresql://user:se%zzcret@host/name", "/a/path"]
)
def test_another_text_than_a_url_is_refused_without_its_password(home: Path, url: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_only(home, url)
    assert "secret" not in str(error.value)
    assert "zz" not in str(error.value)


def test_a_server_that_does_not_answer_is_named_without_the_password(home: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot connect to the database 127\.0\.0\.1:1/name: .*refused") as error:
        read_only(home, "postgresql://user:secret@127.0.0.1:1/name")
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None


def test_a_database_that_does_not_exist(home: Path, postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreError, match='database "nothing" does not exist'):
        read_only(home, postgres_server.url("nothing"))


def grants() -> list[str]:
    """Return the statements that the documentation names."""
    text = (Path(__file__).parents[3] / "docs" / "hub.md").read_text()
    script = text.partition("```sql\n")[2].partition("```")[0].replace("owner", USER)
    return [statement.strip() for statement in script.split(";") if statement.strip()]


def test_three_roles(home: Path, postgres_url: str, postgres_server: PostgresServer) -> None:
    """The owner makes the tables, an indexer writes, and a reader reads."""
    name = postgres_url.partition("@/")[2].partition("?")[0]
    claude_file(home.parent, ID.format(1), [user(1, "zebra", ID.format(1)), assistant(2, "a", ID.format(1))])
    with indexed(home, postgres_url) as catalog:
        catalog.refresh()
        catalog.index()
    for role in ("indexer", "reader"):
        postgres_server.execute(f"CREATE ROLE {role} LOGIN", name)
    for statement in grants():
        postgres_server.execute(statement, name)
    claude_file(home.parent, ID.format(1), [user(10, "zebra", ID.format(1)), assistant(20, "b", ID.format(1))])
    with indexed(home, postgres_server.url(name, "indexer")) as catalog:
        catalog.refresh()
        assert catalog.index()
    with read_only(home, postgres_server.url(name, "reader")) as reader:
        assert [session.exchanges for session in reader.sessions()] == [2]
        assert len(reader.search("zebra")) == 2
    with (
        indexed(home, postgres_server.url(name, "reader")) as writer,
        pytest.raises(StoreError, match="permission denied"),
    ):
        writer.refresh()
    for role in ("indexer", "reader"):
        postgres_server.execute(f"DROP OWNED BY {role}", name)
        postgres_server.execute(f"DROP ROLE {role}", name)


def test_a_reader_outlives_the_end_of_its_connection(
    home: Path, postgres_url: str, postgres_server: PostgresServer
) -> None:
    indexed(home, postgres_url).close()
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agent-logger'"
    with read_only(home, postgres_url) as reader:
        postgres_server.execute(end)
        assert reader.sessions() == []
    with indexed(home, postgres_url) as catalog:
        postgres_server.execute(end)
        with pytest.raises(StoreError, match="failed: terminating connection"):
            catalog.refresh()
        assert catalog.refresh().sources == 0
