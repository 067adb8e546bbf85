"""The reading commands and the page over a catalog in PostgreSQL."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.catalog.postgres.answers import indexed
from tests.commands import run_command
from tests.postgres import PostgresServer, running_server
from tests.web.page_process import showing

ONE, TWO = ID.format(1), ID.format(2)


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(list(arguments), environment(home))


@pytest.fixture
def database(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with two sessions, of which the second one has not changed since."""
    monkeypatch.setenv("HOME", str(tmp_path))
    claude_file(tmp_path, ONE, [user(1, "fix the timer", ONE), assistant(2, "the timer is fixed", ONE)])
    claude_file(tmp_path, TWO, [user(100, "why", TWO), *tool(101, TWO, "Bash", {"command": "make"}, "refused")])
    with indexed(tmp_path / ".agent-logger", postgres_url) as catalog:
        catalog.refresh()
        assert catalog.index()
    return postgres_url


@pytest.mark.needs("postgresql")
@pytest.mark.parametrize(
    "arguments",
    [
        ("ls",),
        ("ls", "--json", "--sort", "cost"),
        ("ls", "--project", "SHOP", "--model", "haiku", "--title", "timer"),
        ("usage", "model"),
        ("usage", "session", "--json"),
        ("usage", "tool"),
        ("usage", "--explain", ONE),
        ("search", "fixed", "--json"),
        ("search", "tool:Bash"),
        ("search", "nothing has this"),
        ("tree", "last", "--json"),
        ("show", ONE),
        ("show", TWO, "--json"),
    ],
    ids=" ".join,
)
def test_a_reading_command_prints_the_same(tmp_path: Path, database: str, arguments: tuple[str, ...]) -> None:
    plain, read = run(tmp_path, *arguments), run(tmp_path, *arguments, "--database", database)
    assert (plain.returncode, plain.stdout, plain.stderr) == (read.returncode, read.stdout, read.stderr)
    assert read.returncode == 0


@pytest.mark.needs("postgresql")
def test_a_reading_command_takes_nothing_in(tmp_path: Path, database: str) -> None:
    claude_file(tmp_path, ONE, [user(200, "again", ONE), assistant(201, "b", ONE)])
    rows = json.loads(run(tmp_path, "ls", "--json", "--database", database).stdout)
    assert [row["turns"] for row in rows if row["id"] == ONE] == [1]
    assert not (tmp_path / ".agent-logger" / "catalog.db").exists()


@pytest.mark.needs("postgresql")
def test_the_page_shows_what_the_database_has(tmp_path: Path, database: str) -> None:
    with showing(tmp_path, "--database", database) as page:
        cookie = page.cookie()
        assert "fix the timer" in page.ask("/", cookie=cookie).text
        assert page.ask("/search?q=fixed", cookie=cookie).text.count("the timer is") == 1
        assert "the timer is fixed" in page.ask(f"/sessions/{ONE}", cookie=cookie).text
    assert not (tmp_path / ".agent-logger" / "catalog.db").exists()


@pytest.mark.needs("postgresql")
def test_the_page_outlives_the_end_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    claude_file(tmp_path, ONE, [user(1, "fix the timer", ONE), assistant(2, "the timer is fixed", ONE)])
    with running_server() as server, server.new_database() as name:
        with indexed(tmp_path / ".agent-logger", server.url(name)) as catalog:
            catalog.refresh()
            catalog.index()
        with showing(tmp_path, "--database", server.url(name)) as page:
            cookie = page.cookie()
            assert page.ask("/", cookie=cookie).status == 200
            server.crash()
            assert page.ask(f"/sessions/{ONE}", cookie=cookie).status == 503
            server.start()
            assert "the timer is fixed" in page.ask(f"/sessions/{ONE}", cookie=cookie).text


@pytest.mark.needs("postgresql")
def test_an_empty_database(tmp_path: Path, postgres_url: str) -> None:
    for command in (["ls"], ["view", "--no-open", "--page-port", "0"]):
        done = run(tmp_path, *command, "--database", postgres_url)
        assert (done.returncode, done.stdout) == (1, "")
        assert "has no catalog: nothing was indexed into it yet" in done.stderr


@pytest.mark.needs("postgresql")
def test_a_wrong_password_is_not_printed(tmp_path: Path, postgres_server: PostgresServer) -> None:
    url = postgres_server.url("nothing").replace("postgresql://agent_logger@", "postgresql://agent_logger:s3cret@")
    done = run(tmp_path, "ls", "--database", url)
    assert done.returncode == 1
    assert 'database "nothing" does not exist' in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("url", "code", "error"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/name", 1, "cannot connect to the database 127.0.0.1:1/name"),
        ("mysql://me:s3cret@host/name", 2, "--database takes a URL such as postgresql://"),
        ("postgresql://me:s3cret%zz@host/name", 2, "this URL cannot be read"),
    ],
)
def test_a_wrong_url_is_an_error_of_one_line(tmp_path: Path, url: str, code: int, error: str) -> None:
    done = run(tmp_path, "ls", "--database", url)
    assert (done.returncode, done.stdout) == (code, "")
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "s3cret" not in done.stderr


def test_a_database_is_not_read_beside_homes(tmp_path: Path) -> None:
    (tmp_path / "other" / "logs").mkdir(parents=True)
    done = run(tmp_path, "ls", "--database", "postgresql://host/name", "--home", str(tmp_path / "other"))
    assert done.returncode == 2
    assert "--database and --home cannot be used together" in done.stderr


def test_without_psycopg_the_command_says_how_to_install_it(tmp_path: Path) -> None:
    program = "import sys; sys.modules['psycopg'] = None; from agent_logger.__main__ import main; sys.exit(main())"
    for database, code, error in (
        ((), 0, "No sessions yet"),
        (("--database", "postgresql://host/name"), 2, "pip install 'agent-logger[hub]'"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, "ls", *database],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, "")
        assert error in done.stderr
