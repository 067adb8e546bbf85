"""Sealing, cut and disturbed at every step: nothing is lost, nothing is there twice, and it is finished later."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_logger.files import sealed as sealed_files
from agent_logger.files.parts import PartFile, parts_in, parts_of
from agent_logger.files.sealed import SealedFile
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal, seal_due
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_log
from agent_logger.logs.verify import verify_file
from agent_logger.model.records import Resume
from agent_logger.protocols.jsonl import Damage
from tests.journal.logs import damage, exchange, live, look, reopen, resume, start
from tests.journal.strace import traced, was_hit
from tests.journal.writer import Job, Writer, Writers

MOST_CALLS = 300


@pytest.fixture(autouse=True)
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_files, "FRAME_BYTES", 4_000)


@dataclass(frozen=True)
class Content:
    """What a log says, whether it is sealed or not, and whether its last owner's work was completed."""

    appended: list[str]
    exchanges: dict[str, list[str | None]]


def content(folder: Path, name: str = "log") -> Content:
    found = look(folder, name)
    assert {key: times for key, times in found.logged.items() if times > 1} == {}
    said = {key: [message.text for message in it.messages] for key, it in found.exchanges.items()}
    return Content(found.order, said)


def _write_logs(folder: Path) -> None:
    """A log of several parts whose owner died in the middle of a line and of an exchange; and another log."""
    journal = Journal(folder, "log", "exchange", part_bytes=20_000)
    for number in range(40):
        assert journal.append(resume(f"r{number}", f"{number}" * 600))
    assert journal.append(exchange("a", "one", "two"))
    assert journal.begin(start("b", 2))
    assert journal.add(live("b", "three"))
    journal.close()
    other = Journal(folder, "other", "exchange")
    assert other.append(resume("other"))
    other.close()
    UPKEEP.finish()
    newest = parts_of(folder, "log")[-1].path
    newest.write_bytes(newest.read_bytes() + b'{"type":"resume","v":1,"ses')


CALLS = {
    "write": "write",
    "sync": "fdatasync,fsync",
    "rename": "?rename,?renameat,?renameat2",
    "unlink": "?unlink,?unlinkat",
    "open": "openat",
    "lock": "flock",
    "read": "read,pread64",
}


def _sweep(writers: Writers, tmp_path: Path, call: str, fault: str) -> Iterator[tuple[str, Path, Content, Writer]]:
    before = tmp_path / "before"
    _write_logs(before)
    expected = content(before)
    for k in range(1, MOST_CALLS):
        folder, trace = tmp_path / str(k), tmp_path / f"{k}.trace"
        shutil.copytree(before, folder)
        writer = writers.start(Job(folder=str(folder), seed="w", work="seal", stopped=True))
        options = ["-e", f"trace={CALLS[call]}", "-e", f"inject={CALLS[call]}:{fault}:when={k}"]
        on_files = call in ("read", "write")  # the pipe and the warnings may not fail
        with traced(writer, trace, *options, paths=list(_paths(folder)) if on_files else ()):
            pass
        if not was_hit(trace):
            return
        yield f"{call} {k}", folder, expected, writer
        shutil.rmtree(folder, ignore_errors=True)
    raise AssertionError("the fault is hit however late it comes")


def _paths(folder: Path) -> Iterator[Path]:
    for part in parts_in(folder):
        yield part.path
        yield part.sealed_path
        yield part.sealed_path.with_name(part.sealed_path.name + ".tmp")


def _faults_after(folder: Path, expected: Content) -> list[str]:
    """What is wrong with the logs as they were left, and with those that a second sealing leaves."""
    wrong = []
    if content(folder) != expected:
        wrong.append("not all is there")
    wrong += damage(folder) + damage(folder, "other")
    for _ in seal_due(folder, 0):
        pass
    UPKEEP.finish()
    if content(folder) != expected or content(folder, "other").appended != ["other"]:
        wrong.append("not all is there after the second sealing")
    wrong += damage(folder) + damage(folder, "other")
    left = [path for path in folder.iterdir() if path.suffix in (".jsonl", ".tmp")]
    return wrong + [f"{path.name} is left" for path in left if path.stat().st_size]


@pytest.mark.needs("strace")
@pytest.mark.parametrize("call", sorted(set(CALLS) - {"read"}))
def test_killing_the_sealer_at_any_system_call_loses_no_record(writers: Writers, tmp_path: Path, call: str) -> None:
    wrong = []
    kills = 0
    for what, folder, expected, writer in _sweep(writers, tmp_path, call, "signal=KILL"):
        kills += 1
        assert writer.status == 9
        wrong += [f"{what}: {fault}" for fault in _faults_after(folder, expected)]
    print(f"{kills} kills")
    assert kills > 0
    assert wrong == []


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("write", "ENOSPC"),
        ("sync", "EIO"),
        ("rename", "EIO"),
        ("unlink", "EIO"),
        ("open", "EMFILE"),
        ("lock", "ENOLCK"),
        ("read", "EIO"),
    ],
)
def test_a_failed_sealing_leaves_the_part_unchanged(writers: Writers, tmp_path: Path, call: str, error: str) -> None:
    wrong = []
    for what, folder, expected, writer in _sweep(writers, tmp_path, call, f"error={error}"):
        if writer.status != 0:
            wrong.append(f"{what}: the sealer failed; its traceback is in the captured stderr")
        wrong += [f"{what}: {fault}" for fault in _faults_after(folder, expected)]
    assert wrong == []


def test_no_new_part_starts_after_a_sealer_dies_in_its_last_step(tmp_path: Path) -> None:
    before, folder = tmp_path / "before", tmp_path / "logs"
    _write_logs(before)
    shutil.copytree(before, folder)
    for _ in seal_due(folder, 0):
        pass
    newest = parts_of(folder, "log")[-1]
    with SealedFile(newest.sealed_path) as sealed:
        newest.path.write_bytes(sealed.read(0, sealed.length))
    for live_file in before.glob("*.live"):  # nothing was synced yet, so it was kept
        shutil.copy(live_file, folder)
    assert _faults_after(folder, content(before)) == []
    assert parts_of(folder, "log")[-1] == newest


# ---------------------------------------------------------------- races


def test_a_writer_and_a_sealer_on_one_log_lose_no_record(writers: Writers, tmp_path: Path) -> None:
    jobs = [
        Job(folder=str(tmp_path), seed="o", largest=3_000, part_bytes=30_000),
        Job(folder=str(tmp_path), seed="c", largest=3_000, part_bytes=30_000, close_each=True),
    ]
    running = [writers.start(job) for job in jobs]
    sealed = 0
    began = time.monotonic()
    while (took := time.monotonic() - began) < 3 or (sealed <= 5 and took < 60):
        sealed += len(list(seal_due(tmp_path, 0)))
    for writer in running:
        writer.kill()
    reopen(tmp_path)
    found = look(tmp_path)
    print(f"{sealed} parts sealed, {sum(len(writer.acks) for writer in running)} acknowledgements")
    assert sealed > 5
    assert found.missing(ack for writer in running for ack in writer.acks) == []
    assert {key: times for key, times in found.logged.items() if times != 1} == {}
    assert damage(tmp_path) == []


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    ("call", "when"),
    [
        pytest.param("openat", 1, id="openat to create it"),
        pytest.param("openat", 2, id="openat to go on with it"),
        pytest.param("flock", 1, id="flock"),
    ],
)
def test_a_part_sealed_while_a_writer_opens_the_part_stays_sealed(
    writers: Writers, tmp_path: Path, call: str, when: int
) -> None:
    folder = tmp_path / "logs"
    journal = Journal(folder, "log", "exchange")
    assert journal.append(resume("before"))
    journal.close()
    job = Job(folder=str(folder), seed="w", count=3, largest=1_000, stopped=True)
    writer = writers.start(job)
    options = ["-e", f"trace={call}", "-e", f"inject={call}:delay_enter=2000000:when={when}"]
    # A part is opened below a descriptor of its folder, by its bare name; a lock is on the file itself.
    path = Path("log.jsonl") if call == "openat" else folder / "log.jsonl"
    with traced(writer, tmp_path / "trace", *options, paths=[path]):
        writer.wait_for("opening")
        time.sleep(0.3)  # it waits in the call now, and for long enough
        assert seal(PartFile(folder, "log"))
    assert was_hit(tmp_path / "trace")
    assert writer.status == 0
    found = look(folder)
    assert found.missing(writer.acks) == []
    assert found.order[0] == "before"
    assert not (folder / "log.jsonl").exists()


def test_a_reader_sees_the_same_content_before_during_and_after_sealing(tmp_path: Path) -> None:
    _write_logs(tmp_path)
    reopen(tmp_path)
    UPKEEP.finish()
    expected = content(tmp_path)

    def seal_slowly() -> None:
        for _ in seal_due(tmp_path, 0):
            time.sleep(0.002)

    thread = threading.Thread(target=seal_slowly)
    thread.start()
    try:
        seen = []
        while thread.is_alive():
            seen.append(content(tmp_path))
    finally:
        thread.join()
    assert [it for it in [*seen, content(tmp_path)] if it != expected] == []


def test_a_part_with_a_live_owner_is_not_sealed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    assert journal.append(resume("1"))
    assert list(seal_due(tmp_path, 0)) == []
    journal.close()
    assert [it.part.number for it in seal_due(tmp_path, 0)] == [1]


def test_a_full_part_is_sealed_immediately_and_a_partial_part_waits(tmp_path: Path) -> None:
    """Part 1 is full; part 2 was left behind by a process that came second, and is not."""
    first = Journal(tmp_path, "log", "exchange", part_bytes=2_000)
    for number in range(4):
        assert first.append(resume(f"r{number}", "x" * 600))
    assert [it.number for it in parts_in(tmp_path)] == [1, 2]
    second = Journal(tmp_path, "log", "exchange", part_bytes=2_000)
    assert second.append(resume("second"))
    first.close()
    second.close()
    UPKEEP.finish()
    assert [it.number for it in parts_in(tmp_path)] == [1, 2, 3]
    assert [it.part.number for it in seal_due(tmp_path, 3600)] == [1]
    assert list(seal_due(tmp_path, None)) == []
    os.utime(PartFile(tmp_path, "log", 2).path, (time.time() - 3601,) * 2)
    assert [it.part.number for it in seal_due(tmp_path, 3600)] == [2]


@pytest.mark.parametrize("name", ["log.jsonl.zst", "log.jsonl.zst.tmp"])
@pytest.mark.parametrize("is_link", [False, True])
def test_sealing_does_not_overwrite_foreign_files(name: str, is_link: bool, tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    assert journal.append(resume("1"))
    journal.close()
    UPKEEP.finish()
    if is_link:
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    else:
        (tmp_path / name).write_bytes(b"the notes of somebody else")
    before = os.lstat(tmp_path / name)
    assert list(seal_due(tmp_path, 0)) == []
    assert os.lstat(tmp_path / name) == before
    assert (tmp_path / "log.jsonl").exists()


# ---------------------------------------------------------------- damage


@pytest.fixture
def sealed_part(tmp_path: Path) -> PartFile:
    """One sealed part of several frames."""
    journal = Journal(tmp_path, "log", "exchange")
    for number in range(30):
        assert journal.append(resume(f"r{number}", os.urandom(300).hex()))
    journal.close()
    part = PartFile(tmp_path, "log")
    assert seal(part)
    return part


def _records_in(part: PartFile, start: int, end: int) -> list[str]:
    """The ids of the records at these offsets of the plain text."""
    items = list(read_log(part.folder, part.name))
    return [it.value.session_id or "" for it in items if isinstance(it.value, Resume) and start <= it.offset < end]


@pytest.mark.parametrize("frame_number", [0, 2, -1])
@pytest.mark.parametrize("place", [0.0, 0.1, 0.5, 0.99])
def test_flipped_bytes_in_a_sealed_part_are_reported_by_offset_and_damage_one_frame(
    sealed_part: PartFile, frame_number: int, place: float
) -> None:
    path = sealed_part.sealed_path
    everything = _records_in(sealed_part, 0, 1 << 40)
    with SealedFile(path) as sealed:
        assert len(sealed.frames) > 3
        frame = sealed.frames[frame_number]
    harmed = _records_in(sealed_part, frame.offset, frame.offset + frame.length)
    data = bytearray(path.read_bytes())
    data[frame.file_offset + int(place * frame.file_length)] ^= 0x55
    path.write_bytes(data)
    assert [(bad.offset, bad.length) for bad in verify_file(path).damage] == [(frame.offset, frame.length)]
    assert look(sealed_part.folder).order == [key for key in everything if key not in harmed]
    assert len(harmed) > 1


@pytest.mark.parametrize("from_end", [1, 5, 8, 9, 12, 16, 20, 24, 50])
def test_flipped_bytes_in_the_frame_table_damage_at_most_one_frame(sealed_part: PartFile, from_end: int) -> None:
    path = sealed_part.sealed_path
    everything = look(sealed_part.folder).order
    with SealedFile(path) as sealed:
        frames = [_records_in(sealed_part, it.offset, it.offset + it.length) for it in sealed.frames]
    data = bytearray(path.read_bytes())
    data[-from_end] ^= 0x55
    path.write_bytes(data)
    missing = [key for key in everything if key not in look(sealed_part.folder).order]
    assert missing in [[], *frames]
    assert verify_file(path).damage or not missing


@pytest.mark.parametrize("kept", [0.0, 0.0005, 0.3, 0.7, 0.99, 0.9999])
def test_a_truncated_sealed_part_returns_the_frames_before_the_cut(sealed_part: PartFile, kept: float) -> None:
    path = sealed_part.sealed_path
    everything = look(sealed_part.folder).order
    data = path.read_bytes()
    size = int(kept * len(data))
    with SealedFile(path) as sealed:
        whole = [it for it in sealed.frames if it.file_offset + it.file_length <= size]
    expected = _records_in(sealed_part, 0, whole[-1].offset + whole[-1].length) if whole else []
    path.write_bytes(data[:size])
    report = verify_file(path)
    assert len(report.damage) == 1
    if whole:
        assert look(sealed_part.folder).order == expected
    assert expected == everything[: len(expected)]
    journal = Journal(sealed_part.folder, "log", "exchange")
    assert journal.append(resume("after"))  # damage stops nobody
    journal.close()
    assert [it.value for it in read_log(sealed_part.folder, "log") if isinstance(it.value, Damage)] != []
    assert look(sealed_part.folder).order == [*expected, "after"]


def test_a_damaged_sealed_part_does_not_stop_the_recovery_of_an_exchange(tmp_path: Path) -> None:
    first = Journal(tmp_path, "log", "exchange")
    assert first.append(resume("1"))
    assert first.begin(start("a"))
    first.close()
    part = PartFile(tmp_path, "log")
    assert seal(part)
    part.sealed_path.write_bytes(b"not zstd at all, but of some length")
    reopen(tmp_path)
    assert look(tmp_path).logged == {"a": 1}
