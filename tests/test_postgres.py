"""The PostgreSQL server of the tests."""

import os
from pathlib import Path

import psycopg
import pytest

from tests.postgres import PostgresServer, find_postgresql, running_server

pytestmark = pytest.mark.needs("postgresql")


def test_a_database_is_empty_and_belongs_to_a_user_without_other_rights(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() or ()
        assert tables == 0
        connection.execute("CREATE TABLE sessions (id text)")
        query = "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(query).fetchone() == (False, False, False)


def test_texts_are_ordered_by_the_rules_of_a_language(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\"").fetchone() == (True, False)


def test_a_server_is_a_process_of_another_user_that_ends_with_the_tests_whatever_happens() -> None:
    with pytest.raises(ZeroDivisionError), running_server() as server:
        ((folder,),) = server.execute("SHOW data_directory")
        pid = int((Path(folder) / "postmaster.pid").read_text().split()[0])
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        raise ZeroDivisionError
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_crashed_server_starts_again_with_what_was_committed() -> None:
    with running_server() as server:
        server.execute("CREATE TABLE numbers AS SELECT 1 AS number")
        server.crash()
        with pytest.raises(psycopg.OperationalError):
            server.execute("SELECT 1")
        server.start()
        assert server.execute("SELECT number FROM numbers") == [(1,)]


def test_a_database_can_be_made_of_a_template(postgres_server: PostgresServer) -> None:
    with postgres_server.new_database() as template:
        postgres_server.execute("CREATE TABLE numbers AS SELECT 1 AS number", template)
        with postgres_server.new_database(template) as copy:
            assert postgres_server.execute("SELECT number FROM numbers", copy) == [(1,)]
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            postgres_server.execute("SELECT 1", copy)


def test_the_newest_version_that_is_installed_is_used() -> None:
    folder = find_postgresql()
    assert folder
    assert (folder / "initdb").exists()
