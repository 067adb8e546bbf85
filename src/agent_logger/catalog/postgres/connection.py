"""A connection to a catalog in PostgreSQL, which takes the statements of all queries."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from agent_logger.catalog.database import QUARTERS, LedgerValues, Parameters, Rows
from agent_logger.catalog.ledger.rows import NEVER
from agent_logger.catalog.postgres.dialect import has_numbers, translate
from agent_logger.catalog.postgres.tables import SUM_QUARTERS
from agent_logger.errors import ConfigError, StoreError
from agent_logger.files.stored_text import hashed

try:
    import psycopg
    from psycopg import conninfo, errors
    from psycopg.abc import Buffer
    from psycopg.types.bool import BoolDumper
    from psycopg.types.numeric import NumericLoader
    from psycopg.types.string import StrDumperUnknown, TextLoader
except ImportError as error:
    raise ConfigError(
        "a catalog in PostgreSQL needs psycopg, which is not installed: pip install 'agent-logger[hub]'"
    ) from error

SCHEMA = "agent_logger"  # all tables are in it
CONNECT_SECONDS = 10
MOST_TRIES = 20  # of work that another process got in the way of
CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)

# PostgreSQL has no NUL in texts. A character that is never exchanged stands for it.
NUL, INSTEAD = "\0", "\ufdd0"

T = TypeVar("T")


class PostgresDatabase:
    """A connection, which is opened again if it was lost. Outside of a transaction, every statement is one."""

    ledger_tables = ("ledger", QUARTERS)

    def __init__(self, url: str, *, is_read_only: bool = False) -> None:
        self._url, self._is_read_only = url, is_read_only
        self.name = describe(url)
        self._connection = self._connect()

    def close(self) -> None:
        self._connection.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection itself, for statements in PostgreSQL's SQL."""
        if self._connection.closed:
            self._connection = self._connect()
        return self._connection

    def run(self, work: Callable[[], T]) -> T:
        """Run queries, or work that can be done twice. Run it again if others wrote so that it could not be completed;
        queries also over a new connection, if this one was lost. Raises `StoreError`."""
        for attempt in range(MOST_TRIES):
            try:
                return work()
            except psycopg.Error as error:
                is_lost = self._connection.closed and self._is_read_only
                if attempt == MOST_TRIES - 1 or not (is_lost or isinstance(error, CONFLICTS)):
                    raise StoreError(f"the database {self.name} failed: {_reason(error)}") from error
        raise AssertionError

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        return self.connection.execute(translate(sql).encode(), _named(sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(translate(sql).encode(), [_named(sql, row) for row in parameters])

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows, in bulk."""
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self.connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def insert_ledger(self, rows: Iterable[LedgerValues], /) -> None:
        added = list(map(_ledger_row, rows))
        self.copy("ledger", _LEDGER, added)
        places = sorted({place for place, *_ in added})
        self.connection.execute(SUM_QUARTERS.format(where="WHERE place = ANY(%s)").encode(), (places,))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.connection.transaction():
            yield

    def retried(self, work: Callable[[], T]) -> T:
        """Do work in a transaction; do it again if others wrote so that it could not be completed."""
        for attempt in range(MOST_TRIES):
            try:
                with self.transaction():
                    return work()
            except CONFLICTS:
                if attempt == MOST_TRIES - 1:
                    raise
        raise AssertionError

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="agent-logger"
            )
        except psycopg.OperationalError as error:
            raise StoreError(f"cannot connect to the database {self.name}: {_reason(error)}") from None
        adapters = connection.adapters
        adapters.register_dumper(bool, _BoolDumper)
        adapters.register_dumper(str, _StrDumper)
        adapters.register_loader("text", _TextLoader)
        adapters.register_loader("numeric", _IntLoader)
        if connection.info.server_version < 150000:
            connection.close()
            raise StoreError(f"the database {self.name} is too old: PostgreSQL 15 or newer is needed")
        # Queries are those of pages: compiling one takes longer than running it, and its sums fit into memory.
        settings = {"search_path": SCHEMA, "jit": "off", "work_mem": "'64MB'", "client_min_messages": "warning"}
        connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode())
        if self._is_read_only:
            connection.execute("SET default_transaction_read_only = on")
        return connection


def _named(sql: str, parameters: Parameters) -> Parameters:
    if isinstance(parameters, Mapping) or not has_numbers(sql):
        return parameters
    return {f"p{number}": value for number, value in enumerate(parameters, 1)}


# The columns of the ledger: those of SQLite, and the hash of the message id.
_LEDGER = (
    *("place", "model_tier", "at", "message_id", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "cache_write_1h_tokens", "nano_usd", "unpriced_reason", "reported_cost_usd"),
    *("witnesses", "copies", "joined_by", "partial", "message_key"),
)


def _ledger_row(values: LedgerValues) -> LedgerValues:
    place, model, at, message_id, *rest = values
    *tokens_and_price, reason, reported, witnesses, copies, joined_by, partial = rest
    return (
        *(place, model, None if at == NEVER else at, message_id, *tokens_and_price, reason or None),
        *(None if reported == NEVER else reported, witnesses, copies, joined_by or None, partial),
        None if message_id is None else hashed(message_id),
    )


# ---------------------------------------------------------------- errors


def describe(url: str) -> str:
    """Return the database that a URL leads to, without the password. Raises `ConfigError` for anything else."""
    if not re.match(r"postgres(ql)?://", url):
        raise ConfigError("--database takes a URL such as postgresql://user@host:5432/name")
    try:
        values = conninfo.conninfo_to_dict(url)
    except psycopg.Error:  # its text may have the password
        raise ConfigError(
            "--database: this URL cannot be read; it is like postgresql://user@host:5432/name, with special characters"
            " of a password as %XX"
        ) from None
    host, port, name = (values.get(key) or "" for key in ("host", "port", "dbname"))
    return f"{host or 'localhost'}{f':{port}' if port else ''}/{name or values.get('user') or ''}"


def _reason(error: psycopg.Error) -> str:
    """Return why a statement or a connection failed, in one line. The server's messages do not repeat a password."""
    if error.diag.message_primary:
        return error.diag.message_primary
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if "FATAL" in line or "failed" in line), lines[-1] if lines else "")
    return last.rpartition("FATAL:")[2].strip() or last


# ---------------------------------------------------------------- values


class _BoolDumper(BoolDumper):
    """Flags are numbers in all tables."""

    oid = 0

    def dump(self, obj: bool) -> Buffer:
        return b"1" if obj else b"0"


class _StrDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(NUL, INSTEAD) if NUL in obj else obj)


class _TextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        text = super().load(data)
        assert isinstance(text, str)
        return text.replace(INSTEAD, NUL) if INSTEAD in text else text


class _IntLoader(NumericLoader):
    """Sums of whole numbers, which are exact however large they are."""

    def load(self, data: Buffer) -> Any:
        return int(bytes(data))
