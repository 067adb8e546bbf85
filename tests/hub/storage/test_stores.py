"""The stores of the hub: in memory, in a folder, in a bucket of S3, in one of Google's. One suite for all."""

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent_logger import platform
from agent_logger.hub.storage.store import MOST_NAME_LENGTH, MOST_PART_LENGTH, FolderStore, MemoryStore, ObjectStore
from agent_logger.hub.storage.stores import open_store
from tests.hub.storage import fake_google
from tests.seaweedfs import SeaweedServer

KINDS = ["memory", "folder", pytest.param("s3", marks=pytest.mark.needs("seaweedfs")), "google"]
PART_CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with fake_google.google_cloud_storage() as port:
        for name, value in fake_google.variables(port).items():
            monkeypatch.setenv(name, value)
        yield


@pytest.fixture
def locations(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Return a function that gives the location of a new store of a kind."""
    numbers = itertools.count()

    def new_location(kind: str) -> str:
        number = next(numbers)
        if kind == "folder":
            return str(tmp_path / f"store-{number}")
        if kind == "google":
            request.getfixturevalue("google")
            return f"gs://{fake_google.BUCKET}/{number}"
        server: SeaweedServer = request.getfixturevalue("bucket_server")
        return server.new_location()

    return new_location


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, locations: Callable[[str], str]) -> ObjectStore:
    return MemoryStore() if request.param == "memory" else open_store(locations(request.param))


@pytest.fixture(params=KINDS[1:])
def location(request: pytest.FixtureRequest, locations: Callable[[str], str]) -> str:
    """Where several processes find the same store."""
    return locations(request.param)


def test_an_object_is_what_was_stored(store: ObjectStore) -> None:
    assert store.create("a/b", b"content")
    assert store.read("a/b") == b"content"
    assert list(store.names("")) == ["a/b"]


@pytest.mark.parametrize("data", [b"", b"\0", os.urandom(5_000_000)], ids=["nothing", "zero", "5 MB"])
def test_any_content_comes_back(store: ObjectStore, data: bytes) -> None:
    assert store.create("a/b", data)
    assert store.read("a/b") == data
    assert not store.create("a/b", data)


@pytest.mark.parametrize("again", [b"content", b"other"])
def test_an_object_is_never_changed(store: ObjectStore, again: bytes) -> None:
    content = b"content"
    assert store.create("a/b", content)
    assert not store.create("a/b", content if again == content else again)
    assert store.read("a/b") == content


def test_absent_objects_cannot_be_read(store: ObjectStore) -> None:
    store.create("a/b", b"")
    for name in ("a/c", "b", "a/b2", "c/d/e"):
        with pytest.raises(FileNotFoundError):
            store.read(name)


def test_of_20_threads_exactly_one_creates_an_object(store: ObjectStore) -> None:
    for number in range(5):
        name = f"a/{number}"

        def attempt(thread: int, name: str = name) -> bool:
            return store.create(name, str(thread).encode() * 1000)

        with ThreadPoolExecutor(20) as threads:
            created = list(threads.map(attempt, range(20)))
        assert created.count(True) == 1
        assert store.read(name) == str(created.index(True)).encode() * 1000


CREATOR = """
import sys
from agent_logger.hub.storage.stores import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(*[n for n in range(100) if store.create(f"race/{n}", sys.argv[2].encode())])
"""


def test_of_3_processes_exactly_one_creates_an_object(location: str) -> None:
    command = [sys.executable, "-c", CREATOR, location]
    processes = [
        subprocess.Popen([*command, f"process {number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    created = {number: set(process.communicate()[0].split()) for number, process in enumerate(processes)}
    assert all(process.returncode == 0 for process in processes)
    assert sorted(name for names in created.values() for name in names) == sorted(str(name) for name in range(100))
    store = open_store(location)
    for number, names in created.items():
        assert {store.read(f"race/{name}") for name in names} <= {f"process {number}".encode()}


LONG = "/".join(["n" * MOST_PART_LENGTH] * 4)[:MOST_NAME_LENGTH]
NAMES = [
    *PART_CHARACTERS,
    *(
        f"{character}{rest}"
        for character in "aA0_-"
        for rest in (".", "..", ".json", PART_CHARACTERS, "/" + PART_CHARACTERS)
    ),
    LONG,
]


def test_names_may_have_all_letters_and_any_length_up_to_the_limit(store: ObjectStore) -> None:
    assert len(LONG) == MOST_NAME_LENGTH
    names = [f"{number}/{name}"[:MOST_NAME_LENGTH] for number, name in enumerate(NAMES)]
    for name in names:
        assert store.create(name, name.encode())
    assert sorted(store.names("")) == sorted(names)
    assert [store.read(name).decode() for name in names] == names


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "a/.b",
        ".a/b",
        "a b",
        "a\n",
        "é",
        "a\0",
        "a\\b",
        "a%41",
        "a:b",
        "n" * 129,
        "/".join(["n" * 100] * 6),
    ],
)
def test_other_names_are_refused(store: ObjectStore, name: str) -> None:
    actions: list[Callable[[], Any]] = [
        lambda: store.create(name, b""),
        lambda: store.read(name),
        lambda: store.delete(name),
        *([lambda: list(store.names(name))] if name else []),
    ]
    for action in actions:
        with pytest.raises(ValueError, match="name of an object"):
            action()
    assert list(store.names("")) == []


def test_thousands_of_objects_are_listed_and_deleted(store: ObjectStore) -> None:
    names = [f"many/{number % 7}/{number:06}" for number in range(2500)]
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda name: store.create(name, b"x"), names))
    assert sorted(store.names("")) == sorted(names)
    assert sorted(store.names("many/3")) == sorted(name for name in names if name.startswith("many/3/"))
    store.delete("many/3")
    assert sorted(store.names("many")) == sorted(name for name in names if not name.startswith("many/3/"))
    store.delete("many")
    assert list(store.names("")) == []


def test_a_prefix_ends_with_a_part_of_the_name(store: ObjectStore) -> None:
    names = ["a/b/c", "a/b2", "a/bc/d", "a/b-", "ab/c"]
    for name in names:
        store.create(name, b"")
    assert list(store.names("a/b")) == ["a/b/c"]
    store.delete("a/b")
    assert sorted(store.names("")) == sorted(names[1:])
    store.delete("a")
    assert list(store.names("")) == ["ab/c"]


def test_an_object_is_deleted_by_its_name(store: ObjectStore) -> None:
    for name in ("a/b", "a/c"):
        store.create(name, b"")
    store.delete("a/b")
    assert list(store.names("")) == ["a/c"]
    with pytest.raises(FileNotFoundError):
        store.read("a/b")
    assert store.create("a/b", b"again")
    assert store.read("a/b") == b"again"


def test_absent_objects_can_be_deleted(store: ObjectStore) -> None:
    store.create("a/b", b"")
    for name in ("a/c", "b", "b/c", "a/b2"):
        store.delete(name)
    assert list(store.names("")) == ["a/b"]
    assert list(store.names("b")) == []


def test_several_may_delete_the_same_at_once(store: ObjectStore) -> None:
    for attempt in range(5):
        for number in range(40):
            store.create(f"a/{attempt}/{number % 4}/{number}", b"x")
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(store.delete, [f"a/{attempt}"] * 4))
        assert list(store.names("")) == []


def test_heads_are_deleted_first(store: ObjectStore) -> None:
    """What a crash in the middle leaves counts only if it has a head."""
    for number in range(1200):
        store.create(f"a/{number % 3}/{number:04}", b"x")
    for number in range(3):
        store.create(f"a/{number}/head.json", b"{}")
    deletion = threading.Thread(target=store.delete, args=("a",))
    deletion.start()
    while deletion.is_alive():
        if len(set(store.names("a"))) < 1200:
            for number in range(3):
                with pytest.raises(FileNotFoundError):
                    store.read(f"a/{number}/head.json")
    deletion.join()
    assert list(store.names("")) == []


def test_a_name_is_free_once_all_below_it_are_deleted(store: ObjectStore) -> None:
    store.create("a/b/c", b"")
    store.delete("a/b")
    assert store.create("a/b", b"now an object")
    assert store.read("a/b") == b"now an object"


def test_an_object_in_a_folder_that_somebody_else_makes_is_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made the folder may not have synced it yet."""
    store = FolderStore(tmp_path / "store")
    sync, first, may_go_on = platform.sync_folder, threading.Event(), threading.Event()
    synced: dict[int, list[Path]] = {}

    def slow_sync(folder: Path) -> None:
        if not first.is_set():
            first.set()
            assert may_go_on.wait(10)
        sync(folder)
        synced.setdefault(threading.get_ident(), []).append(folder)

    monkeypatch.setattr(platform, "sync_folder", slow_sync)
    maker = threading.Thread(target=store.create, args=("a/b/c", b"first"))
    maker.start()
    assert first.wait(10)
    assert store.create("a/b/d", b"second")
    folder = store.folder
    assert set(synced[threading.get_ident()]) == {folder / "a/b", folder / "a", folder}
    may_go_on.set()
    maker.join()
    synced.clear()
    assert store.create("a/b/e", b"third")
    assert synced == {threading.get_ident(): [folder / "a/b"]}, "the others are on the device"
    store.delete("a")
    synced.clear()
    assert store.create("a/b/e", b"again")
    assert set(synced[threading.get_ident()]) == {folder / "a/b", folder / "a", folder}


# ---------------------------------------------------------------- any sequence of operations

SOME_NAMES = [f"{top}/{name}" for top in ("a", "a-", "b") for name in ("x/1", "x/head.json", "x2", "y/z/1", "y/z-/1")]
SOME_PREFIXES = sorted({name.rsplit("/", depth)[0] for name in SOME_NAMES for depth in (1, 2)})


def machine(new_store: Callable[[], ObjectStore]) -> type[RuleBasedStateMachine]:
    class Operations(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.store = new_store()
            self.model: dict[str, bytes] = {}

        @rule(name=st.sampled_from(SOME_NAMES), data=st.binary(max_size=20))
        def create(self, name: str, data: bytes) -> None:
            assert self.store.create(name, data) == (name not in self.model)
            self.model.setdefault(name, data)

        @rule(name=st.sampled_from(SOME_NAMES))
        def create_again_what_is_there(self, name: str) -> None:
            if name in self.model:
                assert not self.store.create(name, self.model[name])

        @rule(name=st.sampled_from(SOME_NAMES))
        def read(self, name: str) -> None:
            content = None
            with suppress(FileNotFoundError):
                content = self.store.read(name)
            assert content == self.model.get(name)

        @rule(prefix=st.sampled_from([*SOME_NAMES, *SOME_PREFIXES]))
        def delete(self, prefix: str) -> None:
            self.store.delete(prefix)
            for name in [name for name in self.model if name == prefix or name.startswith(f"{prefix}/")]:
                del self.model[name]

        @rule(prefix=st.sampled_from([*SOME_NAMES, *SOME_PREFIXES]))
        def names(self, prefix: str) -> None:
            assert sorted(self.store.names(prefix)) == sorted(n for n in self.model if n.startswith(f"{prefix}/"))

        @invariant()
        def all_names(self) -> None:
            assert sorted(self.store.names("")) == sorted(self.model)

    return Operations


@pytest.mark.parametrize("kind", KINDS)
def test_any_sequence_of_operations_is_as_in_a_dict(kind: str, locations: Callable[[str], str]) -> None:
    def new_store() -> ObjectStore:
        return MemoryStore() if kind == "memory" else open_store(locations(kind))

    Machine = machine(new_store)  # noqa: N806
    Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
    Machine.TestCase("runTest").runTest()
