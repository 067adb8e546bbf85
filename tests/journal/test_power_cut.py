"""What a power cut may leave, state by state.

The system calls of a run are recorded, and played again on a model of a disk that knows what is on the
device for sure: what a file held when its sync began, and the names a folder had when its sync began. A cut
after any call, with the rest there, gone, or there in part, gives a state. Whatever it is: the log opens
and takes records, everything synced is there, and what cannot be read was not synced.

(The method is that of SQLite's crash tests and of ALICE. The model is harsher than ext4, where the sync of a
new file brings its name along.)
"""

import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from agent_logger.files.parts import part_of, parts_of
from agent_logger.journal.journal import Journal
from agent_logger.logs.verify import verify_file
from tests.journal.logs import look, resume
from tests.journal.strace import traced
from tests.journal.writer import Ack, Job, Writers

PAGE = 512  # smaller than a real one, so that a small file has several

# ---------------------------------------------------------------- what was called


@dataclass(frozen=True)
class Call:
    name: str
    paths: list[str]  # of descriptors and in arguments, in order
    flags: str
    data: bytes
    result: int
    began: int  # how many calls had ended by then


_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_UNFINISHED = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*) <unfinished \.\.\.>")
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<arguments>.*)\) += (?P<result>-?\d+)")
_STRING = re.compile(r'"(?P<text>(?:\\x[0-9a-f]{2})*)"|<(?P<path>(?:\\x[0-9a-f]{2})*)>')
TRACED = "openat,write,?rename,?renameat,?renameat2,?unlink,?unlinkat,ftruncate,?mkdir,?mkdirat,fdatasync,fsync"


def calls_of(trace: str) -> Iterator[Call]:
    """The calls that succeeded, as they ended."""
    begun: dict[str, tuple[str, str, int]] = {}
    ended = 0
    for line in trace.splitlines():
        if found := _UNFINISHED.match(line):
            begun[found["pid"]] = (found["name"], found["arguments"], ended)
            continue
        if found := _RESUMED.match(line):
            name, arguments, began = begun.pop(found["pid"])
            arguments += found["arguments"]
        elif found := _LINE.match(line):
            name, arguments, began = found["name"], found["arguments"], ended
        else:
            continue
        if int(found["result"]) >= 0:
            yield _call(name, arguments, int(found["result"]), began)
            ended += 1


def _call(name: str, arguments: str, result: int, began: int) -> Call:
    texts = [_bytes(it["text"]) for it in _STRING.finditer(arguments) if it["text"] is not None]
    held = [_bytes(it["path"]).decode() for it in _STRING.finditer(arguments) if it["path"] is not None]
    if name == "write":
        return Call(name, held, "", texts[0][:result], result, began)
    if name in ("ftruncate", "fdatasync", "fsync"):
        size = int(arguments.rsplit(", ", 1)[1]) if name == "ftruncate" else result
        return Call(name, held, "", b"", size, began)
    return Call(name, list(_named(arguments)), arguments, b"", result, began)


def _named(arguments: str) -> Iterator[str]:
    """The paths in arguments; a name may be that of a file in the folder of the descriptor before it."""
    folder = ""
    for found in _STRING.finditer(arguments):
        if found["path"] is not None:
            folder = _bytes(found["path"]).decode()
        else:
            text = _bytes(found["text"]).decode()
            yield text if text.startswith("/") else f"{folder}/{text}"


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


# ---------------------------------------------------------------- a disk


@dataclass
class Inode:
    data: bytes = b""
    history: list[tuple[int, bytes]] = field(default_factory=list)  # when it got what
    safe: bytes = b""  # on the device

    def at(self, time: int) -> bytes:
        return next((data for when, data in reversed(self.history) if when <= time), b"")


Names = dict[str, Inode | None]  # a folder is `None`


@dataclass
class Disk:
    """The files below one folder, which is there from the beginning."""

    root: str
    names: Names = field(default_factory=dict)
    changes: list[tuple[int, Callable[[Names], None]]] = field(default_factory=list)
    safe_names: Names = field(default_factory=dict)
    acks: list[Ack] = field(default_factory=list)
    promised: list[Ack] = field(default_factory=list)
    _syncing: int = 0

    def play(self, call: Call, time: int) -> None:
        inside = [path for path in call.paths if path == self.root or path.startswith(self.root + "/")]
        if call.name == "write" and call.paths[0].startswith("pipe:"):
            self._acknowledge(msgspec.json.decode(call.data, type=Ack))
        elif inside:
            self._play(call, inside, time)

    def _play(self, call: Call, paths: list[str], time: int) -> None:
        path = paths[0]
        match call.name:
            case "write" | "ftruncate":
                if inode := self.names.get(path):
                    old = inode.data
                    inode.data = old + call.data if call.name == "write" else old[: call.result]
                    inode.history.append((time, inode.data))
            case "openat" if "O_CREAT" in call.flags and path not in self.names:
                inode = Inode()
                self._change(time, lambda names: names.update({path: inode}))
            case "mkdir" | "mkdirat":
                self._change(time, lambda names: names.update({path: None}))
            case "unlink" | "unlinkat":
                self._change(time, lambda names: names.pop(path, None))
            case "rename" | "renameat" | "renameat2":
                self._change(time, lambda names: _rename(names, path, paths[1]))
            case "fdatasync" | "fsync":
                self._sync(path, call.began)

    def _change(self, time: int, change: Callable[[Names], object]) -> None:
        def apply(names: Names) -> None:
            change(names)

        apply(self.names)
        self.changes.append((time, apply))

    def _sync(self, path: str, began: int) -> None:
        if path == self.root or self.names.get(path, b"") is None:  # a folder
            for time, change in self.changes:
                if time < began:
                    change(self.safe_names)
            self.changes = [(time, change) for time, change in self.changes if time >= began]
        elif inode := self.names.get(path):
            inode.safe = inode.at(began - 1)

    def _acknowledge(self, ack: Ack) -> None:
        if ack.op == "syncing":
            self._syncing = len(self.acks)
        elif ack.op == "synced":
            self.promised = self.acks[: self._syncing]
        else:
            self.acks.append(ack)


def _rename(names: Names, old: str, new: str) -> None:
    if old in names:
        names[new] = names.pop(old)


# ---------------------------------------------------------------- what is left of it

Rest = Callable[[Inode, random.Random], bytes]


def _kept(inode: Inode, rng: random.Random) -> bytes:
    return inode.data


def _dropped(inode: Inode, rng: random.Random) -> bytes:
    return inode.safe


def _as_nul(inode: Inode, rng: random.Random) -> bytes:
    """The length reached the disk, the data did not."""
    return inode.safe + bytes(max(0, len(inode.data) - len(inode.safe)))


def _cut(inode: Inode, rng: random.Random) -> bytes:
    ends = sorted((len(inode.safe), len(inode.data)))
    longer = inode.data if len(inode.data) >= len(inode.safe) else inode.safe
    return longer[: rng.randint(*ends)]


def _some_pages(inode: Inode, rng: random.Random) -> bytes:
    rest = inode.data[len(inode.safe) :]
    pages = [rest[start : start + PAGE] for start in range(0, len(rest), PAGE)]
    return inode.safe + b"".join(rng.choice([page, bytes(len(page))]) for page in pages)


def _any(inode: Inode, rng: random.Random) -> bytes:
    return rng.choice([_kept, _dropped, _as_nul, _cut, _some_pages])(inode, rng)


RESTS: list[Rest] = [_kept, _dropped, _as_nul, _cut, _some_pages, _any]


def _some_names(disk: Disk, rng: random.Random) -> Names:
    """Changes of names reach the disk in their order; how many of them did is anybody's guess."""
    names = dict(disk.safe_names)
    for _, change in disk.changes[: rng.randint(0, len(disk.changes))]:
        change(names)
    return names


NAMES: list[Callable[[Disk, random.Random], Names]] = [
    lambda disk, rng: disk.names,
    lambda disk, rng: disk.safe_names,
    _some_names,
]


@dataclass(frozen=True)
class State:
    """A cut after `calls` calls; which of the rest is there."""

    calls: int
    rest: Rest
    names: Callable[[Disk, random.Random], Names]


def _write(state: State, disk: Disk, folder: Path, rng: random.Random) -> dict[str, int]:
    """Put a state on a real disk; returns up to where each file is sure to be whole."""
    sure = {}
    for path, inode in sorted(state.names(disk, rng).items()):
        file = folder / path.removeprefix(disk.root + "/")
        if inode is None:
            file.mkdir(parents=True)
            continue
        if not file.parent.exists():
            continue
        data = state.rest(inode, rng)
        file.write_bytes(data)
        sure[file.name] = len(inode.safe) if data.startswith(inode.safe) else 0
    return sure


def _not_right(folder: Path, sure: dict[str, int], promised: Sequence[Ack]) -> list[str]:
    journal = Journal(folder, "log", "exchange")
    try:
        if not journal.append(resume("after the cut")):
            return ["the log takes no records"]
    finally:
        journal.close()
    found = look(folder)
    wrong = found.missing(promised)
    wrong += [f"{key} is in the log {times} times" for key, times in found.logged.items() if times > 1]
    if found.times_appended["after the cut"] != 1:
        wrong.append("a record written after the cut is not there")
    for path in sorted(folder.iterdir()):
        if part_of(path) and ".live" not in path.name:
            wrong += [
                f"{path.name}: {bad}"
                for bad in verify_file(path).damage
                if bad.offset + bad.length < sure.get(path.name, 0)
            ]
    return wrong


# ---------------------------------------------------------------- the tests


@pytest.fixture(scope="module")
def recorded(writers: Writers, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Call]]:
    """The log folder of a run, and the calls the run made."""
    tmp_path = tmp_path_factory.mktemp("recorded")
    folder = tmp_path / "logs"
    folder.mkdir()
    job = Job(folder=str(folder), seed="w", work="synced", count=6, largest=3_000, part_bytes=20_000, stopped=True)
    writer = writers.start(job)
    options = ["-y", "-xx", "-s", "1000000", "-e", f"trace={TRACED}"]
    with traced(writer, tmp_path / "trace", *options):
        pass
    assert writer.status == 0
    calls = list(calls_of((tmp_path / "trace").read_text()))
    assert len(parts_of(folder, "log")) > 1
    _check_model(folder, calls)
    return str(folder), calls


def _check_model(folder: Path, calls: list[Call]) -> None:
    """Played to its end, the model holds what the real folder holds."""
    disk = Disk(str(folder))
    for time, call in enumerate(calls):
        disk.play(call, time)
    real = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path: inode.data for path, inode in disk.names.items() if inode} == real


def _try_states(recorded: tuple[str, list[Call]], states: list[State], tmp_path: Path, seed: int) -> None:
    root, calls = recorded
    rng = random.Random(seed)
    disk = Disk(root)
    wrong: list[str] = []
    time = 0
    for number, state in enumerate(sorted(states, key=lambda it: it.calls)):
        while time < state.calls:
            disk.play(calls[time], time)
            time += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        sure = _write(state, disk, folder, rng)
        what = f"{state.calls} of {len(calls)} calls, rest {state.rest.__name__}"
        wrong += [f"{what}: {fault}" for fault in _not_right(folder, sure, disk.promised)]
        shutil.rmtree(folder, ignore_errors=True)
    print(f"seed {seed}: {len(states)} states of {len(calls)} calls; {len(disk.promised)} promises at the end")
    assert len(disk.promised) > 0
    assert wrong == []


def _states(calls: int, how_many: int, rng: random.Random) -> list[State]:
    chosen = [State(rng.randint(1, calls), RESTS[number % len(RESTS)], rng.choice(NAMES)) for number in range(how_many)]
    return [*chosen, State(calls, _dropped, NAMES[0]), State(calls, _dropped, NAMES[1])]


@pytest.mark.needs("strace")
def test_a_power_cut_loses_no_synced_record(recorded: tuple[str, list[Call]], tmp_path: Path) -> None:
    rng = random.Random(seed := random.getrandbits(32))
    _try_states(recorded, _states(len(recorded[1]), 60, rng), tmp_path, seed)


@pytest.mark.needs("strace")
@pytest.mark.parametrize("rest", RESTS)
def test_a_power_cut_that_preserves_file_names_loses_no_synced_record(
    recorded: tuple[str, list[Call]], tmp_path: Path, rest: Rest
) -> None:
    """What every journaling file system gives: names as they were made."""
    rng = random.Random(seed := random.getrandbits(32))
    calls = len(recorded[1])
    states = [State(rng.randint(1, calls), rest, NAMES[0]) for _ in range(10)]
    _try_states(recorded, [*states, State(calls, rest, NAMES[0])], tmp_path, seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.needs("strace")
def test_two_thousand_power_cuts_lose_no_synced_record(recorded: tuple[str, list[Call]], tmp_path: Path) -> None:
    rng = random.Random(seed := random.getrandbits(32))
    _try_states(recorded, _states(len(recorded[1]), 2_000, rng), tmp_path, seed)
