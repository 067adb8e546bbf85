"""The commands of a hub whose objects are in a bucket."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_logger.hub.storage.stores import open_store
from tests.catalog.catalogs import assistant, claude_file, user
from tests.cli.test_hub import SESSION, Person, join, sessions_of_hub
from tests.seaweedfs import KEY, SeaweedServer

pytestmark = pytest.mark.needs("seaweedfs")


class HubMachine(Person):
    """The machine of a hub, with the keys of a bucket."""

    def __init__(self, folder: Path, store: SeaweedServer) -> None:
        super().__init__(folder)
        self.store, self.location = store, store.new_location()

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, **self.store.variables()}

    def hub(self, *arguments: str, code: int = 0) -> str:
        done = self.run("hub", *arguments, "--store", self.location, code=code)
        assert KEY not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    @contextmanager
    def serving(self) -> Iterator[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_logger", "hub", "serve", "--port", "0", "--store", self.location],
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr
        line = process.stderr.readline()
        assert line.startswith("The hub is at "), line
        try:
            yield line.removeprefix("The hub is at ").partition(". ")[0]
        finally:
            process.send_signal(signal.SIGINT)
            _, rest = process.communicate(timeout=60)
            assert "Traceback" not in rest
            assert KEY not in rest


@pytest.fixture
def server(tmp_path: Path, bucket_server: SeaweedServer) -> HubMachine:
    return HubMachine(tmp_path / "server", bucket_server)


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    ann = Person(tmp_path / "ann")
    claude_file(ann.folder, SESSION, [user(1, "how is the weather", SESSION), assistant(2, "fine", SESSION)])
    return ann


def test_objects_are_in_the_bucket_alone_and_all_is_made_from_it(
    ann: Person, server: HubMachine, bucket_server: SeaweedServer
) -> None:
    with server.serving() as url:
        join(ann, server, url)
        ann.run("share", "*", "--level", "contents")
        assert "1 new object" in ann.run("push", "--once").stderr
        (session,) = sessions_of_hub(server, 1)
        assert session["title"] == "how is the weather"
    assert list((server.home / "hub/store").glob("*")) == []
    names = sorted(open_store(server.location).names(""))
    assert [name for name in names if name.endswith("/head.json")]
    assert "Everything can be read." in server.hub("verify")
    assert "made from the store" in server.hub("rebuild")
    (session,) = sessions_of_hub(server, 1)
    assert session["title"] == "how is the weather"
    assert sorted(open_store(server.location).names("")) == names


def test_a_hub_does_not_go_on_with_another_store(ann: Person, server: HubMachine) -> None:
    with server.serving() as url:
        join(ann, server, url)
        ann.run("push", "--once")
    refusal = server.run("hub", "serve", "--port", "0", code=1).stderr
    assert f"the objects of this hub are in {server.location}: use --store {server.location}" in refusal
    server.run("hub", "rebuild")
    assert "leave --store away" in server.hub("serve", "--port", "0", code=1)


def test_a_store_that_is_away_is_named(server: HubMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {**server.store.variables(), "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    monkeypatch.setattr(server.store, "variables", lambda: variables)
    assert f"cannot list the objects in {server.location}: no connection" in server.hub("verify", code=1)
