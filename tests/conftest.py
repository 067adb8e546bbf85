"""What all tests share: homes of their own, and the components some of them need."""

import gc
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.clients import Sandbox
from tests.components import look_for
from tests.postgres import PostgresServer, running_server
from tests.seaweedfs import SeaweedServer, running_store

if TYPE_CHECKING:
    from tests.journal.writer import Writers

# How long an example takes says more about the other tests beside it than about the product.
settings.register_profile("side by side", settings(), deadline=None)
settings.load_profile("side by side")

# Whoever starts the tests in the background may have told them to ignore these. Every child would do so, too.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored is signal.SIGINT else signal.SIG_DFL)


# What would lead a test to its caller's own sessions, keys, settings or proxies.
FOREIGN = (
    *(
        "AGENT_LOGGER_",
        "ANTHROPIC_",
        "AWS_",
        "AZURE_",
        "CLAUDE",
        "CODEX_",
        "CONTINUE_",
        "FACTORY_",
        "GEMINI_",
        "GOOGLE_",
        "GOOSE_",
        "GROK_",
        "HERMES_",
        "KILO_",
        "KIMI_",
        "OPENAI_",
    ),
    *("LLM_", "OPENCODE_", "OPENHANDS_", "PG", "VIBE_", "XAI_", "XDG_"),
)
FOREIGN_ENDS = ("_PROXY", "_proxy")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: tests wait half of their time, for a client, a browser or a clock."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, or at the end all others wait for it."""
    items.sort(key=lambda item: _SLOW.isdisjoint(item.path.parts))


_SLOW = {"real_clients", "test_mutate.py", "test_package.py", "test_views.py"}


def pytest_collection_finish() -> None:
    """Ten thousand tests and their modules stay: the collector need not walk them again and again."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose component is missing. In CI, fail it if the component could have been installed."""
    for marker in item.iter_markers("needs"):
        for component in marker.args:
            if missing := look_for(component):
                reason = f"needs {component}: {missing.reason}"
                if missing.obtainable and os.environ.get("CI") == "true":
                    pytest.fail(reason, pytrace=False)
                pytest.skip(reason)


_numbers = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which also moves a link to the newest: for ten thousand tests that takes a while."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(_numbers)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, ours and everybody's, so that no test reads or writes the user's."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name.endswith(FOREIGN_ENDS):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AGENT_LOGGER_HOME", str(home / ".agent-logger"))
    if install := sys.modules.get("agent_logger.home.install"):
        for remembered in (install.key, install.redactor, install.know):  # of the home of another test
            remembered.cache_clear()
    return home


@pytest.fixture(scope="session")
def writers() -> Iterator["Writers"]:
    """Processes that write logs: see `tests.journal.writer`."""
    from tests.journal.writer import Writers

    with Writers() as writers:
        yield writers


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A database server of this process: see `tests.postgres`."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres_server.new_database() as name:
        yield postgres_server.url(name)


@pytest.fixture(scope="session")
def shared_bucket_server() -> Iterator[SeaweedServer]:
    with running_store() as server:
        yield server


@pytest.fixture
def bucket_server(shared_bucket_server: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> SeaweedServer:
    """A store of this process with the protocol of S3, and its endpoint and keys in the environment."""
    for name, value in shared_bucket_server.variables().items():
        monkeypatch.setenv(name, value)
    return shared_bucket_server


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs to mount a file system: {getattr(error, 'stderr', error)}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Where a real client runs: see `tests.clients`."""
    return Sandbox(tmp_path)
