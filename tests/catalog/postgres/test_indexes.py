"""Questions that must not read all sessions are answered from an index."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

import pytest

from agent_logger import Filter
from agent_logger.catalog.database import Database, Parameters, Rows
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.migrations import migrate
from agent_logger.catalog.queries import import_machines, live_candidates, session_ids

pytestmark = pytest.mark.needs("postgresql")


class _Explained(PostgresDatabase):
    """A database that answers with its plans."""

    plan = ""

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        rows = super().execute(f"EXPLAIN {sql}", parameters)
        self.plan = "\n".join(line for (line,) in rows)
        return super().execute("SELECT WHERE false")


QUESTIONS = [
    pytest.param(
        lambda database: session_ids(database, Filter(since=datetime(2026, 1, 1, tzinfo=UTC)), "active", 10, 0),
        "sessions_ended",
        id="sessions since a time",
    ),
    pytest.param(live_candidates, "sessions_modified", id="sessions that are live"),
    pytest.param(import_machines, "sources_imported", id="machines of imports"),
]


@pytest.mark.parametrize(("question", "index"), QUESTIONS)
def test_rows_are_looked_up(postgres_url: str, question: Callable[[Database], object], index: str) -> None:
    with closing(PostgresDatabase(postgres_url)) as database:
        migrate(database)
    with closing(_Explained(postgres_url)) as database:
        database.connection.execute("SET enable_seqscan = off; SET enable_sort = off")
        database.connection.execute("DROP INDEX sessions_last_active")
        question(database)
    assert index in database.plan
