"""Finds the sessions in the databases of an agent, opens them, and copies the databases.

What the tables mean is known by a module of the agent, whose `DATABASE` is a `SessionTables`. It is imported when a
database has changed.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, cast

from agent_logger.agents.base import Agent, AgentLocation, module
from agent_logger.agents.databases.opening import DatabaseLook, DatabaseSchema, ForeignDatabase, Row
from agent_logger.agents.databases.reading import read_database
from agent_logger.agents.folders import named_files
from agent_logger.agents.locations import main_files, matching
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files.sources import FileStamps, Source, StampCache, stat_of
from agent_logger.protocols.jsonl import Damage, JsonEntry

LOG = "-wal"
LATEST = 253_402_300_800.0  # seconds from 1970 to the year 10000
T = TypeVar("T")


class SessionStamp(NamedTuple):
    """A session in a database, with a stamp that changes when anything of the session does, or of what it started."""

    id: str
    modified: float  # seconds since 1970
    size: int
    stamp: str


class SessionTables(Protocol):
    """The meaning of an agent's tables. Everything works on an open database, and may raise what `sqlite3` does."""

    @property
    def schema(self) -> DatabaseSchema: ...

    def stamps(self, database: ForeignDatabase, /) -> list[SessionStamp]:
        """Return the sessions that no other session started, the newest first."""

    def started_by(self, database: ForeignDatabase, session: str, /) -> list[str]:
        """Return the sessions that this one started, and those that they started."""

    def root_of(self, database: ForeignDatabase, session: str, /) -> str | None:
        """Return the session that started this one, itself or through others; None if none did."""

    def rows(self, database: ForeignDatabase, session: str, /) -> Iterator[Row]:
        """Yield the rows of one session, in the order in which its reader needs them. `damage` in a row says what in it
        cannot be read."""


def root_among(parents: Mapping[str, str | None], session: str) -> str | None:
    """Return the first session in the line of those that started this one; None if none did. `parents`: all sessions of
    a database."""
    top = _top(parents, session)
    return top if top != session else None


def _top(parents: Mapping[str, str | None], session: str) -> str:
    """Return the session with which the line of those that started this one begins: of sessions that started each other
    in a circle, the one whose id sorts first."""
    line = {session: 0}
    while (parent := parents.get(session)) is not None and parent in parents:
        if parent in line:
            return min([*line][line[parent] :])
        line[parent] = len(line)
        session = parent
    return session


def trees(parents: Mapping[str, str | None], most: int) -> dict[str, list[str]]:
    """Return the sessions that no other one started, each with those below it, in the order of `parents`: all sessions
    of a database. Of sessions that started each other in a circle, one counts as such."""
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)

    def children_of(name: str) -> list[str]:
        return children.get(name, [])

    tree_of = {name: below(name, children_of, most) for name, parent in parents.items() if parent not in parents}
    placed = {name for root, tree in tree_of.items() for name in (root, *tree)}
    for name in parents.keys() - placed:
        if (top := _top(parents, name)) not in tree_of:
            tree_of[top] = below(top, children_of, most)
    return tree_of


def below(root: str, children_of: Callable[[str], Iterable[str]], most: int) -> list[str]:
    """Return at most so many sessions below one, breadth first. `children_of`: those that a session started itself."""
    names = {root}
    queue = [root]
    for parent in queue:  # grows meanwhile
        new = dict.fromkeys(name for name in children_of(parent) if name not in names)
        names.update(new)
        queue += new
        if len(names) > most:
            break
    return queue[1 : most + 1]


@dataclass(frozen=True, slots=True)
class SessionDatabases:
    """The databases of one agent. `tables_module`: the module that has its `DATABASE`."""

    tables_module: str

    @property
    def _tables(self) -> SessionTables:
        return cast("SessionTables", module(self.tables_module).DATABASE)

    def discover(
        self, agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
    ) -> Iterator[Source]:
        paths = _databases(agent.location, folders) if agent.location else ()
        for source in (source for path in paths for source in self.sessions_in(agent, path, cache)):
            if source.name not in skip:
                yield source

    def sessions_in(self, agent: Agent, path: Path, cache: StampCache) -> Iterator[Source]:
        """Find the sessions of a database. It is not opened while it is unchanged."""
        files = FileStamps()
        for name in (str(path), f"{path}{LOG}"):
            if stat := stat_of(name):
                files.add_stat(stat, "")
        for name, modified, size, stamp in cache.cached(str(path), files.stamp, partial(self._stamps, path)):
            yield Source(f"{path}#{name}", agent.name, str(path), name, modified, size, stamp)

    def _stamps(self, path: Path) -> list[SessionStamp]:
        with suppress(SourceError, OSError):
            return [_with_plausible_time(stamp) for stamp in self._read(path, self._tables.stamps)]
        return []

    def session_ids(self, path: Path) -> list[str]:
        """Return the sessions that no other session started, the newest first. Raises `SourceError`,
        `FileNotFoundError`."""
        return [stamp.id for stamp in self._read(path, self._tables.stamps)]

    def open_session(self, source: Source) -> SourceFiles:
        """Open a session; without a name, the newest session of a database. Raises `SourceError`,
        `FileNotFoundError`."""
        path = Path(source.path)
        name = source.name or next(iter(self.session_ids(path)), None)
        if name is None:
            raise SourceError(f"{path}: contains no session")
        return self.source_of(path, name)

    def source_of(self, path: Path, session: str) -> SourceFiles:
        """Return a session with those that it started. Rows are read when they are iterated over; what fails then is
        `Damage`."""
        tables = self._tables
        names = [session, *self._read(path, lambda database: tables.started_by(database, session))]
        main, *others = [File(name, _Entries(path, tables, name, is_main=name == session)) for name in names]
        return SourceFiles(main, others)

    def root_of(self, path: Path, session: str) -> str | None:
        """Return the session that started this one, itself or through others; None if none did, or the database cannot
        be read."""
        tables = self._tables
        with suppress(SourceError, OSError):
            return self._read(path, lambda database: tables.root_of(database, session))
        return None

    def copy(self, path: Path, to: Path) -> None:
        """Copy the whole database as it is now, its log included, into an empty file. Raises `SourceError`,
        `OSError`."""
        self._read(path, lambda database: database.backup(to))

    def unreadable(self, location: AgentLocation, folders: Sequence[Path]) -> Iterator[str]:
        """Yield why databases cannot be read at all. An empty one was only begun."""
        for path in _databases(location, folders):
            try:
                if DatabaseLook.at(path).has_content:
                    self.session_ids(path)
            except SourceError as error:
                yield str(error)
            except OSError as error:
                yield f"{path}: {error.strerror}"

    def tables(self) -> tuple[str, ...]:
        return tuple(self._tables.schema.tables)

    def _read(self, path: Path, work: Callable[[ForeignDatabase], T]) -> T:
        return read_database(path, self._tables.schema, work)


def _with_plausible_time(stamp: SessionStamp) -> SessionStamp:
    """Return the stamp; with the time 0 if its own is beyond any clock, or infinite, which JSON and SQL have no number
    for."""
    return stamp if 0 <= stamp.modified < LATEST else stamp._replace(modified=0.0)


def _databases(location: AgentLocation, folders: Sequence[Path]) -> list[Path]:
    """Return the databases, and those of which only the log is left."""
    logs = (
        path for folder in folders for glob in location.globs for path in matching(folder, f"{glob}{LOG}".split("/"))
    )
    without_log = (path.with_name(path.name.removesuffix(LOG)) for path in logs)
    return sorted({*main_files(location, folders), *named_files(location, folders), *without_log})


class _Entries:
    """The rows of a session, read when they are iterated over for the first time."""

    def __init__(self, path: Path, tables: SessionTables, session: str, *, is_main: bool) -> None:
        self._path, self._tables, self._session, self._is_main = path, tables, session, is_main
        self._read: tuple[list[Row], tuple[str, ...]] | None = None

    def __iter__(self) -> Iterator[JsonEntry | Damage]:
        try:
            self._read = self._read or read_database(self._path, self._tables.schema, self._rows)
        except (SourceError, OSError) as error:
            yield Damage(1, 0, 0, str(error))
            return
        rows, damage = self._read
        for number, row in enumerate(rows, 1):
            yield JsonEntry(number, 0, row, b"")
            if reason := row.get("damage"):
                yield Damage(number, 0, 0, f"{self._path}: {reason}")
        for number, reason in enumerate(damage, len(rows) + 1):
            yield Damage(number, 0, 0, f"{self._path}: {reason}")

    def _rows(self, database: ForeignDatabase) -> tuple[list[Row], tuple[str, ...]]:
        """Read all rows at once: a program that writes must not wait until a reader has understood them. The damage of
        a database is said once."""
        return list(self._tables.rows(database, self._session)), database.damage if self._is_main else ()
