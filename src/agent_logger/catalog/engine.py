"""The database system that a catalog is kept in, as the catalog sees it: SQLite (`sqlite/`) or PostgreSQL
(`postgres/`). Both answer every question alike."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent_logger.catalog.database import Database
from agent_logger.catalog.refresh.changes import Progress
from agent_logger.catalog.refresh.refresh import RefreshReport

if TYPE_CHECKING:
    from agent_logger.catalog.search.text_index import TextIndex

T = TypeVar("T")


class Engine(Protocol):
    @property
    def is_written(self) -> bool:
        """Whether this catalog takes in what changes in the files. If not, another process does, and this one never
        writes."""

    @property
    def problem(self) -> str | None:
        """Why what is written is lost when the catalog is closed; None if it is not."""

    @property
    def texts(self) -> object:
        """The search index as it was opened last: another object if it was replaced."""

    def close(self) -> None: ...

    def refresh(self, progress: Progress | None) -> RefreshReport:
        """Take in what has changed."""

    def count_damaged_lines(self, sessions: Iterable[str] | None) -> None:
        """Count damaged lines in the files of these sessions, or of all, that have changed since the last count."""

    def indexing(self) -> AbstractContextManager[bool]:
        """Yield whether this process may fill the search index now."""

    def run(self, work: Callable[[Database], T]) -> T:
        """Run a query, or work that writes."""

    def run_with_texts(self, work: "Callable[[Database, TextIndex], T]") -> T:
        """Run a query that needs the search index too."""
