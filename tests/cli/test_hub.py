"""The commands of a machine that shares with a hub, and of the hub."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.commands import run_command

SESSION = ID.format(3)


class Person:
    """A user account with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / ".agent-logger"
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "AGENT_LOGGER_HOME": str(self.home)}

    def run(self, *arguments: str, said: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_command(list(arguments), self.environment, folder=self.folder, said=said)
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    ann = Person(tmp_path / "ann")
    lines = [user(1, "how is the weather", SESSION), assistant(2, "fine", SESSION)]
    claude_file(ann.folder, SESSION, lines)
    return ann


@pytest.fixture
def server(tmp_path: Path) -> Person:
    return Person(tmp_path / "server")


@pytest.fixture
def url(server: Person) -> Iterator[str]:
    """A hub that was started by its command."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_logger", "hub", "serve", "--port", "0"],
        env=server.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    line = process.stderr.readline()
    assert line.startswith("The hub is at http://127.0.0.1:"), line
    yield line.removeprefix("The hub is at ").partition(". ")[0]
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in rest


def join(person: Person, server: Person, url: str) -> None:
    invite = server.run("hub", "invite", "ann", "--url", url).stdout
    assert len(invite.split()) == 1
    person.run("join", url, "-", said=invite)


def sessions_of_hub(server: Person, count: int) -> list[dict[str, object]]:
    """The sessions in the hub's homes, once there are so many."""
    for _ in range(200):
        homes = [path for path in (server.home / "hub" / "homes").glob("*") if (path / "machine.json").exists()]
        if homes:
            options = [text for home in homes for text in ("--home", str(home))]
            sessions: list[dict[str, object]] = json.loads(server.run("ls", "--json", *options).stdout)
            if len(sessions) == count:
                return sessions
        time.sleep(0.1)
    pytest.fail(f"the hub did not get to {count} sessions")


def test_a_machine_joins_shares_pushes_withdraws_and_leaves(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    token = ann.home / "device-token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert "has joined" in ann.run("join", url, "-", said="x", code=2).stderr

    (document,) = map(json.loads, ann.run("share", "--show").stdout.splitlines())
    assert document["head"]["level"] == "numbers"
    assert "weather" not in json.dumps(document)
    assert "1 new object" in ann.run("push", "--once").stderr
    assert "0 new objects" in ann.run("push", "--once").stderr
    (session,) = sessions_of_hub(server, 1)
    assert (session["id"], session["title"], session["output_tokens"]) == (SESSION, None, 102)
    assert "1 session shared" in ann.run("status", code=1).stdout

    ann.run("share", "/p/*", "--level", "contents")
    assert "contents  /p/*" in ann.run("share").stdout
    ann.run("push", "--once")
    for _ in range(100):
        (session,) = sessions_of_hub(server, 1)
        if session["title"]:
            break
        time.sleep(0.1)
    assert session["title"] == "how is the weather"

    assert "2 objects" in ann.run("withdraw", SESSION[:8], "--yes").stderr.replace("1 object ", "2 objects ")
    sessions_of_hub(server, 0)
    ann.run("push", "--once")
    sessions_of_hub(server, 0)
    ann.run("leave", "--yes")
    assert not token.exists()
    assert "has not joined" in ann.run("push", "--once", code=1).stderr
    assert "has not joined" in ann.run("leave", "--yes", code=1).stderr


def test_pushes_in_the_background_are_paused_and_resumed(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    ann.run("push", "--pause")
    assert "(paused)" in ann.run("status", code=1).stdout
    ann.run("push", "--resume")
    assert "(paused)" not in ann.run("status", code=1).stdout


def test_start_pushes(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_logger", "start", "--port", "0", "--no-page"],
        env=ann.environment,
        cwd=ann.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        (session,) = sessions_of_hub(server, 1)
        assert session["id"] == SESSION
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def test_a_hub_that_is_away_harms_nothing(ann: Person, server: Person) -> None:
    ann.home.mkdir(exist_ok=True)
    member = {"url": "http://127.0.0.1:1", "token": "x", "device": "d", "person": "ann", "machine": "m"}
    (ann.home / "device-token").write_text(json.dumps(member))
    assert "no answer" in ann.run("push", "--once", code=1).stderr
    assert "no answer" in ann.run("status", code=1).stdout
    assert json.loads(ann.run("ls", "--json").stdout)


@pytest.mark.parametrize(
    "address", ["http://hub.example.com", "ftp://x", "https://", "https://a@b", "https://h/path", "nonsense"]
)
def test_an_address_that_is_not_one_of_a_hub_is_refused(ann: Person, address: str) -> None:
    assert "hub" in ann.run("join", address, "-", said="x", code=1).stderr


def test_a_hub_beyond_this_machine_needs_tls(server: Person) -> None:
    assert "--tls-cert" in server.run("hub", "serve", "--host", "0.0.0.0", "--port", "0", code=2).stderr


def test_a_hub_is_verified_and_rebuilt(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    ann.run("push", "--once")
    sessions_of_hub(server, 1)
    assert "Everything can be read" in server.run("hub", "verify").stderr
    (damaged,) = (server.home / "hub" / "store" / "devices").glob("*/objects/*/*/0000000000000000")
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:-3])
    assert damaged.name in server.run("hub", "verify", code=1).stdout


def test_objects_missing_from_the_store_are_named(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    ann.run("push", "--once")
    (missing,) = (server.home / "hub" / "store" / "devices").glob("*/objects/*/*/0000000000000000")
    missing.unlink()
    done = server.run("hub", "verify", code=1)
    assert missing.name in done.stdout
    assert "1 object missing" in done.stderr


def test_a_later_claim_to_a_session_is_named(ann: Person, server: Person, url: str, tmp_path: Path) -> None:
    join(ann, server, url)
    ann.run("push", "--once")
    assert SESSION not in server.run("hub", "verify").stderr
    ben = Person(tmp_path / "ben")
    claude_file(ben.folder, SESSION, [user(1, "mine", SESSION), assistant(2, "mine", SESSION)])
    ben.run("join", url, "-", said=server.run("hub", "invite", "ben", "--url", url).stdout)
    ben.run("push", "--once")
    assert f"session {SESSION} is ann's; ben has pushed it later" in server.run("hub", "verify").stderr
    ben.run("withdraw", SESSION, "--yes")
    assert SESSION not in server.run("hub", "verify").stderr


def test_an_admin_deletes_a_session_for_good(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    ann.run("push", "--once")
    sessions_of_hub(server, 1)
    server.run("hub", "delete", code=2)
    assert "not a terminal" in server.run("hub", "delete", SESSION, code=2).stderr
    server.run("hub", "delete", "nothing", "--yes", code=1)
    assert "nobody" in server.run("hub", "delete", "--person", "ben", "--yes", code=1).stderr
    assert "1 object of 1 session" in server.run("hub", "delete", SESSION, "--yes").stderr
    sessions_of_hub(server, 0)
    assert not list((server.home / "hub" / "store" / "devices").glob("*/objects/*/*/*"))
    claude_file(ann.folder, SESSION, [user(3, "and now", SESSION), assistant(4, "fine", SESSION)])
    ann.run("push", "--once")
    sessions_of_hub(server, 0)


def test_an_admin_deletes_everything_of_a_person(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    claude_file(ann.folder, ID.format(4), [user(1, "another", ID.format(4)), assistant(7, "ok", ID.format(4))])
    ann.run("push", "--once")
    sessions_of_hub(server, 2)
    assert "of 2 sessions" in server.run("hub", "delete", "--person", "ann", "--yes").stderr
    sessions_of_hub(server, 0)


def test_old_sessions_are_deleted(ann: Person, server: Person, url: str) -> None:
    join(ann, server, url)
    recent = ID.format(4)
    claude_file(ann.folder, recent, [user(1, "another", recent), assistant(7, "ok", recent)])
    for path in (ann.folder / ".claude").rglob("*.jsonl"):
        age = 0 if recent in path.name else 40 * 86_400
        os.utime(path, (time.time() - age, time.time() - age))
    ann.run("share", "--level", "contents")
    ann.run("push", "--once")
    sessions_of_hub(server, 2)
    assert "deleted 0 sessions" in server.run("hub", "retain", "60", "--yes").stderr
    assert "deleted 1 session" in server.run("hub", "retain", "30", "--yes").stderr
    (session,) = sessions_of_hub(server, 1)
    assert session["id"] == recent
    assert "Everything can be read" in server.run("hub", "verify").stderr
    ann.run("push", "--once")
    sessions_of_hub(server, 1)
    claude_file(ann.folder, SESSION, [user(30, "and now", SESSION), assistant(31, "fine", SESSION)])
    ann.run("push", "--once")
    sessions_of_hub(server, 2)


def test_levels_stay_in_the_settings_with_all_else(ann: Person) -> None:
    ann.home.mkdir(exist_ok=True)
    path = ann.home / "config.toml"
    path.write_text('port = 9000  # mine\n\n[share.levels]\n"/a" = "none"\n\n[mask]\nwords = ["x"]\n')
    ann.run("share", "--level", "titles")
    ann.run("share", "/a", "--level", "contents")
    text = path.read_text()
    assert text.startswith("port = 9000  # mine\n")
    assert text.endswith('[mask]\nwords = ["x"]\n')
    assert ann.run("share").stdout.splitlines() == ["titles    *", "contents  /a"]
    path.write_text('[share.levels]\n"/a" = "everything"\n')
    assert "none, numbers, titles, contents" in ann.run("share", code=2).stderr
