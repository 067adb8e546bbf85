"""Ranges that are pushed into a bucket whose service is killed and started again all the time, and loses answers."""

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_logger.hub.database import HubDatabase
from agent_logger.hub.storage.index import Generation, MemoryIndex, SendingDevice
from agent_logger.hub.storage.intake import Intake, generation_name, range_name, unpacked_range
from agent_logger.hub.storage.sqlite_index import TABLES, SqliteIndex
from agent_logger.hub.storage.store import ObjectStore
from agent_logger.hub.storage.stores import open_store
from agent_logger.push.protocol import ObjectHead, Statement, object_id
from tests.hub.storage.faulty_proxy import Faults, faulty_proxy
from tests.seaweedfs import SeaweedServer, running_store

pytestmark = pytest.mark.needs("seaweedfs")

SECONDS = 200.0
FAULTS = ("lose", "done 503", "not 503", "not 409", "cut")


class RandomFaults(Faults):
    """One request of ten has a fault."""

    chance = random.Random(1)

    def take(self, method: str) -> str:
        self.requests.append(method)
        return self.chance.choice(FAULTS) if self.chance.random() < 0.1 else ""


@dataclass
class Pushed:
    """What a hub has acknowledged to a device: the bytes of each object's newest generation."""

    sender: SendingDevice
    generations: dict[str, int] = field(default_factory=dict)
    contents: dict[str, bytearray] = field(default_factory=dict)
    acknowledged: int = 0
    failures: int = 0


class Pusher:
    """A device, and a hub of its own, which is started again now and then."""

    def __init__(self, number: int, store: ObjectStore, folder: Path) -> None:
        self.chance = random.Random(number)
        self.store = store
        self.index = SqliteIndex(HubDatabase(folder / str(number), TABLES))
        self.pushed = Pushed(SendingDevice(f"device{number}", f"person{number}", "laptop"))
        self.stopped = threading.Event()

    def run(self) -> None:
        self._until_done(self._start)
        self._until_done(self._state)
        while not self.stopped.is_set():
            name = object_id(b"key", [str(self.chance.randrange(5))])
            if name not in self.pushed.generations or self.chance.random() < 0.03:
                self._begin(name)
            self._append(name, self.chance.randbytes(self.chance.choice([1, 100, 5000, 200_000])))
            if self.chance.random() < 0.02:
                self._until_done(self._start)

    def _until_done(self, request: Callable[[], object]) -> None:
        """Repeat a request until it is answered, as a device does."""
        while True:
            try:
                request()
            except OSError:
                self.pushed.failures += 1
                time.sleep(0.2)
            else:
                return

    def _start(self) -> None:
        self.intake = Intake(self.index, self.store, "1")

    def _state(self) -> None:
        self.intake.state_level(self.pushed.sender, "s", Statement(level="contents", revision=1))

    def _begin(self, name: str) -> None:
        head = ObjectHead(session="s", level="contents", revision=1, form="lines", place=("logs", f"{name}.jsonl"))
        number = self.pushed.generations.get(name, 0) + 1
        self._until_done(lambda: self.intake.begin(self.pushed.sender, name, number, head))
        self.pushed.generations[name], self.pushed.contents[name] = number, bytearray()

    def _append(self, name: str, data: bytes) -> None:
        number, content = self.pushed.generations[name], self.pushed.contents[name]
        digest = hashlib.sha256(data).hexdigest()

        def append() -> None:
            answer = self.intake.append(self.pushed.sender, name, number, len(content), data, digest, 1.0)
            assert answer.offset == len(content) + len(data)

        self._until_done(append)
        content += data
        self.pushed.acknowledged += 1


@contextmanager
def killed_at_random(server: SeaweedServer, seconds: float) -> Iterator[list[float]]:
    """Kill the service and start it again for so long. Yields the times between the deaths."""
    lives: list[float] = []
    chance = random.Random(2)

    def run() -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            lives.append(chance.uniform(0.2, 4.0))
            time.sleep(lives[-1])
            server.kill()
            time.sleep(chance.choice([0.0, 0.0, 2.0]))
            server.start()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lives
    finally:
        thread.join()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_or_stored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_store() as server, faulty_proxy(server.port, RandomFaults) as (faults, port):
        for variable, value in server.variables(port).items():
            monkeypatch.setenv(variable, value)
        stores = [open_store(server.new_location()) for _ in range(3)]
        pushers = [Pusher(number, store, tmp_path) for number, store in enumerate(stores)]
        threads = [threading.Thread(target=pusher.run) for pusher in pushers]
        for thread in threads:
            thread.start()
        with killed_at_random(server, SECONDS) as lives:
            pass
        for pusher in pushers:
            pusher.stopped.set()
        for thread in threads:
            thread.join()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")  # without faults
        for pusher in pushers:
            place = f"s3://agent-logger/{pusher.pushed.sender.device[-1]}"
            check(pusher, open_store(place))
        acknowledged = sum(pusher.pushed.acknowledged for pusher in pushers)
        failures = sum(pusher.pushed.failures for pusher in pushers)
        print(f"{len(lives)} deaths, {len(faults.requests):,} requests, {acknowledged:,} ranges, {failures:,} failures")
        assert acknowledged > 100
        assert failures > len(lives) / 2


def check(pusher: Pusher, store: ObjectStore) -> None:
    device = pusher.pushed.sender.device
    Intake(pusher.index, store, "1")  # finishes deletions
    lived = pusher.index.objects(device)
    assert {each.object: each.generation for each in lived} == pusher.pushed.generations
    rebuilt = MemoryIndex()
    assert Intake(rebuilt, store, "1").rebuild() == 0, "nothing is damaged"
    assert by_name(rebuilt.objects(device)) == by_name(lived)
    expected = {f"devices/{device}/device.json", *store.names(f"devices/{device}/levels")}
    for name, content in pusher.pushed.contents.items():
        generation = pusher.pushed.generations[name]
        ranges = pusher.index.ranges(device, name, generation)
        assert ranges == rebuilt.ranges(device, name, generation)
        expected.add(f"{generation_name(device, name, generation)}/head.json")
        expected |= {range_name(device, name, generation, each.offset) for each in ranges}
        stored = b"".join(
            unpacked_range(store.read(range_name(device, name, generation, each.offset)))[1] for each in ranges
        )
        assert stored == bytes(content)
    assert sorted(store.names("")) == sorted(expected), "nothing is left of what was not acknowledged"


def by_name(generations: Iterable[Generation]) -> dict[str, Generation]:
    return {each.object: each for each in generations}
