"""A catalog in PostgreSQL: read by any number of processes, and written by any number of indexers."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from agent_logger.catalog.database import Database
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.migrations import check, migrate
from agent_logger.catalog.postgres.refresh import refresh
from agent_logger.catalog.refresh.changes import Progress
from agent_logger.catalog.refresh.refresh import RefreshReport
from agent_logger.home.homes import Homes

if TYPE_CHECKING:
    from agent_logger.catalog.search.text_index import TextIndex

T = TypeVar("T")


class PostgresEngine:
    """The database at a URL. `homes`: those that are indexed into it; if none are given, it is only read. Raises
    `ConfigError` if it is not such a URL, `StoreError` if it cannot be used."""

    problem: str | None = None

    def __init__(self, url: str, homes: Homes | None = None) -> None:
        self._homes = homes
        self._database = PostgresDatabase(url, is_read_only=homes is None)
        self.texts = self._database  # the same for ever
        try:
            (check if homes is None else migrate)(self._database)
        except BaseException:
            self.close()
            raise

    @property
    def is_written(self) -> bool:
        return self._homes is not None

    def close(self) -> None:
        self._database.close()

    def refresh(self, progress: Progress | None) -> RefreshReport:
        if self._homes is None:
            (count,) = self.run(lambda database: database.execute("SELECT count(*) FROM sources").fetchone())
            return RefreshReport(
                sources=count, changed=0, removed=0, files_opened=0, bytes_read=0, unsealed_since=float("inf")
            )
        homes = self._homes
        return self._database.run(lambda: refresh(self._database, homes, progress))

    def count_damaged_lines(self, sessions: Iterable[str] | None) -> None:
        from agent_logger.catalog.postgres.refresh import count_damaged_lines

        self._database.run(lambda: count_damaged_lines(self._database, sessions))

    def indexing(self) -> AbstractContextManager[bool]:
        """Any number of processes may: each session is indexed by one."""
        return nullcontext(self.is_written)

    def run(self, work: Callable[[Database], T]) -> T:
        return self._database.run(lambda: work(self._database))

    def run_with_texts(self, work: "Callable[[Database, TextIndex], T]") -> T:
        from agent_logger.catalog.postgres.texts import PostgresTextIndex

        return self._database.run(lambda: work(self._database, PostgresTextIndex(self._database)))
