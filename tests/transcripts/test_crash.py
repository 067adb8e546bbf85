"""Sessions of an agent over kills, full disks, several processes, calls that fail: what was acknowledged is there."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_logger.files.parts import PartFile, parts_of
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_log
from agent_logger.logs.verify import verify_file
from agent_logger.model.records import Gap
from agent_logger.transcripts.store import Transcripts
from tests.journal.strace import traced, was_hit
from tests.journal.test_faults import CALLS, FILES_ONLY, MOST_CALLS
from tests.journal.writer import Ack, Job, Writer, Writers, digest

SEED = "w"


def wrong(root: Path, acks: Sequence[Ack]) -> list[str]:
    """What is missing of what was acknowledged, there twice or in another form; and what cannot be read."""
    storage = Transcripts(root, root)
    messages = storage.load("s") or []
    found = {it["uuid"]: digest(text_of(it)) for it in messages}
    times = Counter(it["uuid"] for it in messages)
    taken = [ack for ack in acks if ack.op == "append"]
    faults = [f"{ack.id} is not there" for ack in taken if found.get(ack.id) != ack.digest]
    faults += [f"{key} is there {number} times" for key, number in times.items() if number > 1]
    faults += [f"{part.path.name}: {bad}" for part in parts(storage) for bad in verify_file(part.path).damage]
    if [it.message_count for it in storage.list()] != ([len(messages)] if messages else []):
        faults.append("the list does not say how many there are")
    return faults


def text_of(message: dict[str, Any]) -> str:
    if message["type"] == "mended":
        return ""
    content = message["message"]["content"]
    return str(content if isinstance(content, str) else content[0]["content"])


def parts(storage: Transcripts) -> list[PartFile]:
    return parts_of(storage.folder, "s")


def next_owner(root: Path) -> None:
    """Mends what the last one left."""
    storage = Transcripts(root, root)
    assert storage.append("s", {"type": "mended"})
    storage.close()
    UPKEEP.finish()


def without_mended(root: Path) -> list[str]:
    return [it["uuid"] for it in Transcripts(root, root).load("s") or [] if it["type"] != "mended"]


# ---------------------------------------------------------------- kill -9


@pytest.mark.parametrize(
    ("largest", "kills"),
    [
        pytest.param(2_000, 20, id="up to 2 KB"),
        pytest.param(100_000, 20, id="up to 100 KB, so that some are in side files"),
        pytest.param(2_000, 300, id="many", marks=pytest.mark.long),
        pytest.param(4 << 20, 40, id="up to 4 MB", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("together", [1, 2], ids=["one process", "two at once"])
def test_kill_9_loses_no_message_and_rewrites_no_file(
    writers: Writers, tmp_path: Path, largest: int, kills: int, together: int
) -> None:
    rng = random.Random(random.getrandbits(32))
    acks: list[Ack] = []
    before: dict[Path, bytes] = {}
    for number in range(kills // together):
        started = [
            writers.start(Job(folder=str(tmp_path), seed=f"k{number}-{who}", work="keep", largest=largest))
            for who in range(together)
        ]
        for writer in started:
            writer.wait_for("append" if number % 4 else "opening")
        time.sleep(rng.uniform(0.001, 0.03))
        for writer in started:
            writer.kill()
            acks += writer.acks
        now = {part.path: part.path.read_bytes() for part in parts(Transcripts(tmp_path, tmp_path))}
        assert [path.name for path, was in before.items() if not now[path].startswith(was)] == []
        before = now
    storage = Transcripts(tmp_path, tmp_path)
    assert storage.append("s", {"type": "mended"})
    storage.close()
    kept = [ack for ack in acks if ack.op == "append"]
    print(f"{kills} kills, {len(kept)} messages")
    messages = [it for it in storage.load("s") or [] if it["type"] != "mended"]
    found = {it["uuid"]: digest(text_of(it)) for it in messages}
    assert [ack.id for ack in kept if found.get(ack.id) != ack.digest] == []
    assert len(found) == len(messages)
    assert [bad for part in parts(storage) for bad in verify_file(part.path).damage] == []
    order = {key: at for at, key in enumerate(found)}
    for (_, first), (_, second) in _neighbours(kept):
        assert order[first] < order[second]


def _neighbours(acks: Sequence[Ack]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Messages that one writer appended one after the other."""
    named = [(ack.id.rpartition("-none-")[0], ack.id) for ack in acks]
    for pair in pairwise(named):
        if pair[0][0] == pair[1][0]:
            yield pair


# ---------------------------------------------------------------- several processes


def test_concurrent_processes_lose_no_message_and_the_list_is_correct(writers: Writers, tmp_path: Path) -> None:
    started = [
        writers.start(Job(folder=str(tmp_path), seed=f"p{who}", work="keep", largest=3_000, count=40, close_each=True))
        for who in range(4)
    ]
    for writer in started:
        writer.join()
    acks = [ack for writer in started for ack in writer.acks]
    assert wrong(tmp_path, acks) == []
    assert len(without_mended(tmp_path)) == 160


# ---------------------------------------------------------------- disks


@pytest.fixture
def small_disk(small_disk: Path) -> Iterator[Path]:
    yield small_disk
    UPKEEP.finish()  # before the disk goes


def test_a_full_disk_loses_exactly_the_messages_the_gap_counts(writers: Writers, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(1 << 20))
    root = small_disk / "root"
    root.mkdir()
    job = Job(
        folder=str(root),
        seed=SEED,
        work="keep_on_full_disk",
        largest=60_000,
        ballast=str(small_disk / "ballast"),
    )
    writer = writers.start(job)
    writer.join()
    assert writer.wait_for("done").lost >= 5
    assert _not_right(root, writer) == []


def _not_right(root: Path, writer: Writer) -> list[str]:
    if writer.status != 0:
        return ["the writer failed; its traceback is in the captured stderr"]
    faults = wrong(root, writer.acks)
    done = writer.wait_for("done")
    refused = {ack.id for ack in writer.acks if ack.op == "refused"}
    there = {it["uuid"] for it in Transcripts(root, root).load("s") or []}
    faults += [f"{key} is there, but counted as lost" for key in refused & there]
    folder = Transcripts(root, root).folder
    gaps = sum(item.value.lost for item in read_log(folder, "s") if isinstance(item.value, Gap))
    if not len(refused) <= done.lost <= len(refused) + 2:  # a summary may be lost, too
        faults.append(f"lost says {done.lost}, {len(refused)} were refused")
    if gaps != done.lost:
        faults.append(f"gaps say {gaps}, lost says {done.lost}")
    return faults


# ---------------------------------------------------------------- the k-th call


def _files(root: Path) -> list[Path]:
    """What a scenario writes to: its pipe and its warnings may not fail."""
    folder = Transcripts(root, root).folder
    transcripts = [folder / f"s{part}.jsonl" for part in ("", ".p2", ".p3")]
    sides = [folder / "s" / "tool-results" / f"{SEED}-none-{number}.txt" for number in range(20)]
    return [
        *transcripts,
        *sides,
        root / "history.jsonl",
        folder / "sessions-index.json",
        folder / ".gitignore",
    ]


def sweep(
    writers: Writers, tmp_path: Path, call: str, fault: str, times: int = 1
) -> Iterator[tuple[int, Path, Writer]]:
    """The scenario again and again, with the fault at the first call, at the second, and so on."""
    for k in range(1, MOST_CALLS):
        root = tmp_path / str(k) / "root"
        root.mkdir(parents=True)
        next_owner(root)
        job = Job(folder=str(root), seed=SEED, work="keep_scenario", largest=2_000, part_bytes=30_000, stopped=True)
        writer = writers.start(job)
        calls = CALLS[call]
        options = ["-e", f"trace={calls}", "-e", f"inject={calls}:{fault}:when={k}..{k + times - 1}"]
        trace = root.with_name("trace")
        with traced(writer, trace, *options, paths=_files(root) if call in FILES_ONLY else ()):
            pass
        if not was_hit(trace):
            return
        yield k, root, writer
        shutil.rmtree(root.parent, ignore_errors=True)
    raise AssertionError("the fault is hit however late it comes")


QUICK = {
    ("write", "signal=KILL"),
    ("rename", "signal=KILL"),
    ("write", "error=ENOSPC"),
    ("mkdir", "error=ENOSPC"),
}


def _cases(faults: Sequence[str]) -> Iterator[object]:
    for call in sorted(set(CALLS) - {"truncate", "unlink"}):  # the scenario needs neither
        for fault in faults:
            marks = () if (call, fault) in QUICK else (pytest.mark.long,)
            yield pytest.param(call, fault, marks=marks)


@pytest.mark.needs("strace")
@pytest.mark.parametrize(("call", "fault"), list(_cases(["signal=KILL"])))
def test_kill_at_any_system_call_loses_no_acknowledged_message(
    writers: Writers, tmp_path: Path, call: str, fault: str
) -> None:
    faults, runs = [], 0
    for k, root, writer in sweep(writers, tmp_path, call, fault):
        assert writer.status == 9
        next_owner(root)
        faults += [f"{call} {k}: {it}" for it in wrong(root, writer.acks)]
        runs += 1
    print(f"{runs} kills")
    assert runs
    assert faults == []


@pytest.mark.needs("strace")
@pytest.mark.parametrize(("call", "fault"), list(_cases(["error=ENOSPC", "error=EIO", "error=EMFILE"])))
def test_a_failing_system_call_loses_exactly_the_counted_messages(
    writers: Writers, tmp_path: Path, call: str, fault: str
) -> None:
    faults, runs = [], 0
    for k, root, writer in sweep(writers, tmp_path, call, fault):
        faults += [f"{call} {k}: {it}" for it in _not_right(root, writer)]
        runs += 1
    print(f"{runs} faults")
    assert runs
    assert faults == []


def test_a_message_is_counted_and_marked_when_its_session_cannot_be_looked_up(tmp_path: Path) -> None:
    storage = Transcripts(tmp_path, tmp_path)
    projects = tmp_path / "projects"
    projects.symlink_to(projects)  # a folder that cannot be looked into
    assert not storage.append("s", {"type": "user"})
    assert not storage.append("s", {"type": "user"})
    assert storage.lost == 2
    projects.unlink()
    assert storage.append("s", {"type": "user"})
    gaps = [item.value.lost for item in read_log(storage.folder, "s") if isinstance(item.value, Gap)]
    assert (gaps, len(storage.load("s") or [])) == ([2], 1)
