"""Questions that must not read all sessions are answered from an index."""

from contextlib import closing
from datetime import UTC, datetime

import pytest

from agent_logger import Filter
from agent_logger.catalog.database import Parameters, Rows
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.migrations import migrate
from agent_logger.catalog.queries import session_ids

pytestmark = pytest.mark.needs("postgresql")


class _Explained(PostgresDatabase):
    """A database that answers with its plans."""

    plan = ""

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        rows = super().execute(f"EXPLAIN {sql}", parameters)
        self.plan = "\n".join(line for (line,) in rows)
        return super().execute("SELECT WHERE false")


def test_sessions_since_a_time_are_looked_up(postgres_url: str) -> None:
    with closing(PostgresDatabase(postgres_url)) as database:
        migrate(database)
    with closing(_Explained(postgres_url)) as database:
        database.connection.execute("SET enable_seqscan = off; SET enable_sort = off")
        database.connection.execute("DROP INDEX sessions_last_active")
        session_ids(database, Filter(since=datetime(2026, 1, 1, tzinfo=UTC)), "active", 10, 0)
    assert "sessions_ended" in database.plan
