"""The databases of a catalog, whatever happens to them: a damaged one is made again, and one that cannot be written is
replaced by one in memory."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent_logger.catalog.folders_of_catalogs import mark_used
from agent_logger.catalog.refresh.changes import Progress
from agent_logger.catalog.refresh.refresh import RefreshReport, refresh
from agent_logger.catalog.sqlite.database import (
    DAMAGED,
    SqliteDatabase,
    UnusableError,
    discard,
    is_damage,
    is_file,
    is_same_file,
    open_database,
    open_in_memory,
    prepare,
)
from agent_logger.catalog.sqlite.schema import CATALOG, TEXT_INDEX
from agent_logger.home.homes import Homes

if TYPE_CHECKING:
    from agent_logger.catalog.search.text_index import TextIndex

CATALOG_FILES = ("catalog.db", "catalog-text.db")

T = TypeVar("T")


class SqliteEngine:
    """The database of the catalog and that of the search index; each is opened when it is first needed. `problem` says
    why they are in memory alone, if they are."""

    is_written = True

    def __init__(self, homes: Homes, folder: Path) -> None:
        self.problem: str | None = None
        self.texts: SqliteDatabase | None = None  # as it was opened last
        self._homes, self._folder = homes, folder
        self._path, self._text_path = (folder / name for name in CATALOG_FILES)
        self._open: SqliteDatabase | None = None

    def close(self) -> None:
        for database in (self._open, self.texts):
            if database:
                database.close()
        self._open = self.texts = None

    def refresh(self, progress: Progress | None) -> RefreshReport:
        return self.run(lambda database: refresh(database, self._homes, progress))

    def count_damaged_lines(self, sessions: Iterable[str] | None) -> None:
        from agent_logger.catalog.refresh.damage import count_damaged_lines

        self.run(lambda database: count_damaged_lines(database, sessions))

    def indexing(self) -> AbstractContextManager[bool]:
        from agent_logger.catalog.search.index_lock import indexing

        return indexing(self._folder)

    def run(self, work: Callable[[SqliteDatabase], T]) -> T:
        """Run a query, and run it again with another database if this one fails: a new one, else one in memory."""
        try:
            return work(self.main())
        except DAMAGED as error:
            if self._open and not is_file(self._open):
                raise
            self._recover(error)
        return work(self.main())

    def run_with_texts(self, work: "Callable[[SqliteDatabase, TextIndex], T]") -> T:
        """Run a query that needs the search index too, with recovery. The index is replaced if another catalog does not
        help."""
        from agent_logger.catalog.search.index import SqliteTextIndex

        try:
            return self.run(lambda database: work(database, SqliteTextIndex(self.text_database())))
        except DAMAGED as error:
            if self.texts is None or self.problem:
                raise
            self._recover_texts(self.texts, error)
        return self.run(lambda database: work(database, SqliteTextIndex(self.text_database())))

    def main(self) -> SqliteDatabase:
        """Return the database of the catalog."""
        if self._open and not self.problem and not is_same_file(self._open, self._path):
            self.close()  # the file was deleted
        if self._open is None:
            try:
                self._open = open_database(self._path, CATALOG)
                if not self._homes.are_own_alone:
                    mark_used(self._folder)
            except UnusableError as error:
                self._open, self.problem = open_in_memory(CATALOG), str(error)
            prepare(self._open)
        return self._open

    def text_database(self) -> SqliteDatabase:
        """Return the database of the search index."""
        if self.texts and not self.problem and not is_same_file(self.texts, self._text_path):
            self.texts.close()
            self.texts = None
        if self.texts is None:
            try:
                if self.problem:
                    raise UnusableError(self.problem)
                self.texts = open_database(self._text_path, TEXT_INDEX)
            except UnusableError as error:
                self.texts, self.problem = open_in_memory(TEXT_INDEX), str(error)
        return self.texts

    def _recover(self, error: Exception) -> None:
        damaged = self._open
        self.close()
        if not (damaged and is_damage(error) and discard(damaged, self._path)):  # full, locked, not to be written to
            self._open, self.problem = open_in_memory(CATALOG), f"{self._path}: {error}"
            prepare(self._open)
        refresh(self.main(), self._homes)

    def _recover_texts(self, texts: SqliteDatabase, error: Exception) -> None:
        texts.close()
        is_gone = is_damage(error) and discard(texts, self._text_path)
        self.texts = None if is_gone else open_in_memory(TEXT_INDEX)
