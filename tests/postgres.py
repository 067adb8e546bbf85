"""A PostgreSQL server for the tests of one process: its data and its socket are in a folder of its own.

The server of the machine, if there is one, is neither used nor needed. What a test could take for granted here and not
elsewhere is made unusual: texts are ordered by a language's rules, the time zone is not UTC, and the user of the
databases may do nothing but use them.
"""

import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FIRST_VERSION = 15
USER = "agent_logger"  # owns the databases
UNPRIVILEGED = "nobody"  # runs the server where root runs the tests, as the server refuses to be root's
MOST_SECONDS = 60  # until it answers, or has ended
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "timezone": "Asia/Kolkata",
}


def find_postgresql() -> Path | None:
    """Return the folder with the programs of the newest version that is installed, if that is new enough."""
    versions = {
        int(folder.parent.name): folder
        for folder in Path("/usr/lib/postgresql").glob("*/bin")
        if folder.parent.name.isdecimal() and (folder / "postgres").exists()
    }
    if not versions and (program := shutil.which("postgres")):  # other systems than Debian
        output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        if version := re.search(r"(\d+)(\.|devel|beta|rc)", output):
            versions[int(version[1])] = Path(program).resolve().parent
    newest = max(versions, default=0)
    return versions[newest] if newest >= FIRST_VERSION else None


class PostgresServer:
    def __init__(self, programs: Path, folder: Path, settings: Mapping[str, str]) -> None:
        self._programs, self._folder = programs, folder
        self._settings = {**SETTINGS, **settings}
        self._numbers = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        self._initialize()

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@/{database}?host={self._folder}"

    @contextmanager
    def new_database(self, template: str = "template0") -> Iterator[str]:
        """Create a database, a copy of the template, and drop it in the end. Yields its name."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {USER}")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement as the superuser. Returns the rows, if it has some."""
        import psycopg

        with psycopg.connect(self.url(database, "postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        command = [self._program("postgres"), "-D", str(self._data), f"-k{self._folder}", *settings]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_as_user())
        self._wait_until_ready(self._process)

    def stop(self) -> None:
        """End it in order, without waiting for its clients."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End it at once. What it has in memory is lost."""
        self._end(signal.SIGQUIT)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _program(self, name: str) -> str:
        return str(self._programs / name)

    def _initialize(self) -> None:
        rules = ["--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]
        command = [self._program("initdb"), "-D", str(self._data), "-U", "postgres", "-A", "trust", "--no-sync", *rules]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_as_user())
        assert done.returncode == 0, done.stderr

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        command = [self._program("pg_isready"), "-q", "-h", str(self._folder)]
        until = time.monotonic() + MOST_SECONDS
        while subprocess.run(command, check=False).returncode != 0:
            log = (self._folder / "log").read_text()
            assert process.poll() is None, log
            assert time.monotonic() < until, log
            time.sleep(0.02)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running_server(settings: Mapping[str, str] = {}) -> Iterator[PostgresServer]:
    programs = find_postgresql()
    assert programs, 'mark the test with pytest.mark.needs("postgresql")'
    folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=_parent()))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
        server = PostgresServer(programs, folder, settings)
        try:
            server.start()
            server.execute(f"CREATE ROLE {USER} LOGIN")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _parent() -> str | None:
    """Return a folder that the user of the server may enter: not a private one of root's."""
    return "/tmp" if os.geteuid() == 0 else None


def _as_user() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": UNPRIVILEGED, "group": pwd.getpwnam(UNPRIVILEGED).pw_gid, "extra_groups": []}
