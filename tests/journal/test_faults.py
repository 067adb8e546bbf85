"""A system that fails: at the k-th call, for every k, until a run comes through untouched.

Nobody who records sees an exception; what is missing was counted, and the log says so; and when the disk is
well again, recording is too.

strace makes calls fail. It can also claim that a write was short, but then nothing was written, which
no system does: for real short writes there is a limit on the size of files, and a disk that is full.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent_logger import platform
from agent_logger.clock import Clock
from agent_logger.errors import StoreError
from agent_logger.files.append import Appender
from agent_logger.files.parts import live_files_of, parts_of
from agent_logger.home.layout import install_key, prepare_log_folder, safe_name
from agent_logger.journal.journal import Journal
from agent_logger.journal.ownership import ids_of
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import Gap, Part, Request, Resume
from tests.journal.logs import TS, damage, exchange, live, look, reopen, resume, start
from tests.journal.strace import traced, was_hit
from tests.journal.writer import Ack, Job, Writer, Writers, in_own_process

MOST_CALLS = 300
SEED = "w"
CALLS = {
    "write": "write",
    "sync": "fdatasync,fsync",
    "open": "openat",
    "rename": "?rename,?renameat,?renameat2",
    "unlink": "?unlink,?unlinkat",
    "mkdir": "?mkdir,?mkdirat",
    "lock": "flock",
    "truncate": "ftruncate",
    "read": "read,pread64",
}


def _files(folder: Path) -> list[Path]:
    """What a scenario writes to: its pipe and its warnings may not fail."""
    parts = [folder / f"log{part}.jsonl" for part in ("", ".p2", ".p3", ".p4")]
    lives = [part.with_name(f"{part.name}.live") for part in parts]
    retired = [path.with_name(f"{path.name}.{SEED}-log-{number}") for path in lives for number in range(10)]
    return [folder / ".gitignore", *parts, *lives, *retired]


def _left_by_a_crash(folder: Path) -> list[Ack]:
    """A log whose owner died in the middle of a line, with an exchange in flight."""
    journal = Journal(folder, "log", "exchange")
    assert journal.append(resume("before"))
    assert journal.begin(start("old"))
    assert journal.add(live("old", "one"))
    journal.close()
    UPKEEP.finish()
    for path in (folder / "log.jsonl", folder / "log.jsonl.live"):
        path.write_bytes(path.read_bytes() + b'{"type":"resume","v":1,"ses')
    return [Ack(op="begin", id="old")]


class Sweep:
    """A scenario, again and again, with the fault at the first call, at the second, and so on."""

    def __init__(self, writers: Writers, tmp_path: Path, call: str, fault: str, *, after_a_crash: bool) -> None:
        self._writers, self._tmp_path = writers, tmp_path
        self._call, self._fault = call, fault
        self._after_a_crash = after_a_crash
        self.runs = 0

    def each(self, *, times: int = 1) -> Iterator[tuple[int, Path, Writer, list[Ack]]]:
        for k in range(1, MOST_CALLS):
            folder = self._tmp_path / str(k) / "logs"
            expected = _left_by_a_crash(folder) if self._after_a_crash else []
            writer = self._run(folder, f"when={k}..{k + times - 1}")
            if not was_hit(folder.with_name("trace")):
                return
            self.runs += 1
            yield k, folder, writer, expected + writer.acks
            shutil.rmtree(folder.parent, ignore_errors=True)  # the upkeep may be at work there
        raise AssertionError("the fault is hit however late it comes")

    def _run(self, folder: Path, when: str) -> Writer:
        folder.parent.mkdir(parents=True, exist_ok=True)
        job = Job(folder=str(folder), seed=SEED, work="scenario", largest=2_000, part_bytes=8_000, stopped=True)
        writer = self._writers.start(job)
        calls = CALLS[self._call]
        options = ["-e", f"trace={calls}", "-e", f"inject={calls}:{self._fault}:{when}"]
        with traced(
            writer,
            folder.with_name("trace"),
            *options,
            paths=_files(folder) if self._call in FILES_ONLY else (),
        ):
            pass
        return writer


FILES_ONLY = {"write", "read"}
STATES = [pytest.param(False, id="new log"), pytest.param(True, id="after a crash")]


@pytest.mark.needs("strace")
@pytest.mark.parametrize("after_a_crash", STATES)
@pytest.mark.parametrize("call", sorted(set(CALLS) - {"read", "truncate"}))
def test_kill_at_any_system_call_loses_no_acknowledged_record(
    writers: Writers, tmp_path: Path, call: str, after_a_crash: bool
) -> None:
    sweep = Sweep(writers, tmp_path, call, "signal=KILL", after_a_crash=after_a_crash)
    faults = []
    for k, folder, writer, acks in sweep.each():
        assert writer.status == 9
        reopen(folder)
        found = look(folder)
        faults += [f"{call} {k}: {fault}" for fault in found.missing(acks) + damage(folder)]
        faults += [f"{call} {k}: {key} {times} times" for key, times in found.logged.items() if times > 1]
        if after_a_crash and not (found.logged["old"] == found.times_appended["before"] == 1):
            faults.append(f"{call} {k}: what was there before is gone")
    print(f"{sweep.runs} kills")
    assert faults == []


ERRORS = [  # the error, and how often in a row
    ("write", "ENOSPC", 1),
    ("write", "EINTR", 1),
    ("sync", "EIO", 1),
    ("open", "EMFILE", 4),
    ("open", "EINTR", 1),
    ("rename", "EIO", 4),
    ("unlink", "EIO", 1),
    ("mkdir", "ENOSPC", 4),
    ("lock", "EIO", 4),
    ("lock", "ENOLCK", 1),
    ("read", "EIO", 1),
]
MORE_ERRORS = [  # that take other ways through the same code
    ("write", "EIO", 3),
    ("sync", "ENOSPC", 4),
    ("sync", "EINTR", 1),
    ("open", "EMFILE", 1),
    ("open", "ENOSPC", 1),
    ("open", "EIO", 1),
    ("open", "EIO", 4),
    ("rename", "ENOSPC", 1),
    ("lock", "EINTR", 1),
    ("lock", "ENOLCK", 4),
    ("read", "EIO", 4),
]


@pytest.mark.needs("strace")
@pytest.mark.parametrize("after_a_crash", STATES)
@pytest.mark.parametrize(
    ("call", "error", "times"), [*ERRORS, *(pytest.param(*it, marks=pytest.mark.long) for it in MORE_ERRORS)]
)
def test_a_failing_system_call_is_counted_marked_by_a_gap_and_recovered_from(
    writers: Writers, tmp_path: Path, call: str, error: str, times: int, after_a_crash: bool
) -> None:
    sweep = Sweep(writers, tmp_path, call, f"error={error}", after_a_crash=after_a_crash)
    faults = []
    for k, folder, writer, acks in sweep.each(times=times):
        faults += [f"{call} {k}: {fault}" for fault in _not_right(folder, writer, acks)]
    print(f"{sweep.runs} faults")
    assert faults == []


def _not_right(folder: Path, writer: Writer, acks: Sequence[Ack], name: str = "log") -> list[str]:
    """What is wrong with a log and what its writer says about it."""
    if writer.status != 0:
        return ["the writer failed; its traceback is in the captured stderr"]
    done = writer.wait_for("done")
    refused = [ack.id for ack in acks if ack.op == "refused" and ack.what in ("append", "end")]
    first = look(folder, name)
    reopen(folder, name)
    found = look(folder, name)
    wrong = found.missing(acks) + damage(folder, name)
    wrong += [f"{key} is in the log {times} times" for key, times in found.logged.items() if times > 1]
    wrong += [f"{key} is there, but counted as lost" for key in refused if key in first.appended]
    if done.lost != len(refused):
        wrong.append(f"lost says {done.lost}, {len(refused)} were refused")
    if found.gap_lost != done.lost:
        wrong.append(f"gaps say {found.gap_lost}, lost says {done.lost}")
    if len({ids_of(part).log for part in parts_of(folder, name)}) != 1:
        wrong.append("its parts do not have one log id")
    if not (folder / ".gitignore").exists():
        wrong.append("the folder has no .gitignore")
    return wrong


def test_short_writes_are_truncated_and_counted(writers: Writers, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path / "logs"), seed=SEED, work="short_writes", count=30, smallest=900, largest=1_500)
    writer = writers.start(job)
    writer.join()
    assert writer.wait_for("done").lost > 10
    assert look(tmp_path / "logs").unreadable == []
    assert _not_right(tmp_path / "logs", writer, writer.acks) == []


@pytest.mark.needs("strace")
@pytest.mark.parametrize("error", ["EIO", "EPERM"])
def test_a_partial_line_that_cannot_be_truncated_is_terminated_and_counted(
    writers: Writers, tmp_path: Path, error: str
) -> None:
    folder = tmp_path / "logs"
    job = Job(
        folder=str(folder),
        seed=SEED,
        work="short_writes",
        count=30,
        smallest=900,
        largest=1_500,
        stopped=True,
    )
    writer = writers.start(job)
    options = ["-e", "trace=ftruncate", "-e", f"inject=ftruncate:error={error}"]
    with traced(writer, tmp_path / "trace", *options):
        pass
    assert was_hit(tmp_path / "trace")
    assert _not_right(folder, writer, writer.acks) == []


@pytest.mark.needs("strace")
def test_kill_while_truncating_a_partial_line_loses_no_acknowledged_record(writers: Writers, tmp_path: Path) -> None:
    for k in (1, 2, 3):
        folder = tmp_path / str(k)
        job = Job(
            folder=str(folder),
            seed=SEED,
            work="short_writes",
            count=30,
            smallest=900,
            largest=1_500,
            stopped=True,
        )
        writer = writers.start(job)
        options = ["-e", "trace=ftruncate", "-e", f"inject=ftruncate:signal=KILL:when={k}"]
        with traced(writer, tmp_path / "trace", *options):
            pass
        assert writer.status == 9
        reopen(folder)
        assert look(folder).missing(writer.acks) == []
        assert damage(folder) == []


# ---------------------------------------------------------------- disks


@pytest.fixture
def small_disk(small_disk: Path) -> Iterator[Path]:
    yield small_disk
    UPKEEP.finish()  # before the disk goes


def test_a_full_disk_loses_exactly_the_records_the_gap_counts(writers: Writers, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(1 << 20))
    job = Job(
        folder=str(small_disk / "logs"),
        seed=SEED,
        work="fill_disk",
        largest=60_000,
        pause_seconds=0.001,
        ballast=str(small_disk / "ballast"),
    )
    writer = writers.start(job)
    writer.join()
    assert writer.wait_for("done").lost >= 5
    assert _not_right(small_disk / "logs", writer, writer.acks) == []


def test_an_almost_full_disk_logs_a_warning(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    (small_disk / "ballast").write_bytes(bytes(int(3.9 * (1 << 20))))
    journal = Journal(small_disk, "log", "exchange")
    assert journal.append(resume("1"))
    UPKEEP.finish()
    assert "almost full" in caplog.text
    assert journal.lost == 0


@pytest.fixture
def read_only(small_disk: Path) -> Iterator[Path]:
    """A folder that cannot be written to, until `_writable` is called."""
    folder = small_disk / "logs"
    folder.mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    yield folder


def test_preparing_a_read_only_folder_raises_a_one_line_error(read_only: Path) -> None:
    with pytest.raises(StoreError) as raised:
        prepare_log_folder(read_only)
    assert "\n" not in str(raised.value)
    assert str(read_only) in str(raised.value)
    with pytest.raises(StoreError):
        prepare_log_folder(read_only / "deeper" / "down")


def test_recording_recovers_when_a_read_only_folder_becomes_writable(read_only: Path) -> None:
    journal = Journal(read_only, "log", "exchange")
    assert not journal.append(resume("1"))
    assert not journal.begin(start("a"))
    assert not journal.end(exchange("a"))
    assert (journal.lost, bool(journal.failing)) == (2, True)
    subprocess.run(["mount", "-o", "remount,rw", str(read_only.parent)], check=True)
    _wait_until_well(journal)
    assert journal.append(resume("2"))
    journal.close()
    found = look(read_only)
    assert (found.gap_lost, found.order) == (2, ["2"])


def _wait_until_well(journal: Journal) -> None:
    give_up = time.monotonic() + 60
    while journal.failing and time.monotonic() < give_up:
        time.sleep(0.01)
        UPKEEP.finish()
    assert journal.failing is None


@pytest.mark.needs("strace")
def test_a_failed_sync_starts_a_new_part_and_leaves_the_old_part_unchanged(writers: Writers, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    writer = writers.start(Job(folder=str(folder), seed=SEED, work="sync_twice", count=3, largest=500, stopped=True))
    options = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1"]
    with traced(writer, tmp_path / "trace", *options):
        pass
    assert writer.status == 0
    by_part: dict[int, list[object]] = {}
    for item in read_log(folder, "log"):
        by_part.setdefault(item.part.number, []).append(item.value)
    assert [type(it) for it in by_part[1]] == [Resume] * 3
    assert [type(it) for it in by_part[2]] == [Part, Gap, Resume, Resume, Resume]
    begun, gap, *_ = by_part[2]
    assert isinstance(begun, Part)
    assert (begun.reason, begun.after) == ("sync_failed", ids_of(parts_of(folder, "log")[0]).part)
    assert isinstance(gap, Gap)
    assert (gap.lost, gap.unsynced) == (0, 3)
    assert look(folder).missing(writer.acks) == []


@pytest.mark.needs("strace")
def test_records_appended_during_a_failing_sync_count_as_unsynced(writers: Writers, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    writer = writers.start(Job(folder=str(folder), seed=SEED, work="append_during_sync", largest=500, stopped=True))
    slow = "inject=fdatasync:error=EIO:delay_enter=300000:when=1"
    with traced(writer, tmp_path / "trace", "-e", "trace=fdatasync", "-e", slow):
        pass
    assert writer.status == 0
    items = list(read_log(folder, "log"))
    old = [it for it in items if it.part.number == 1]
    assert len(old) > 3
    assert sum(it.value.unsynced for it in items if isinstance(it.value, Gap)) == len(old)


@pytest.mark.needs("strace")
def test_an_exchange_in_flight_survives_a_failed_sync(writers: Writers, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    writer = writers.start(Job(folder=str(folder), seed=SEED, work="scenario", largest=500, stopped=True))
    options = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1..3"]
    with traced(writer, tmp_path / "trace", *options):
        pass
    assert _not_right(folder, writer, writer.acks) == []
    ended = {ack.id for ack in writer.acks if ack.op == "end"}
    assert {key for key, it in look(folder).exchanges.items() if it.complete} == ended


@pytest.mark.needs("strace")
def test_appends_do_not_wait_for_a_slow_sync(tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), seed=SEED, work="timed", count=1_500, largest=2_000, pause_seconds=0.001)
    slow = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=500000"]
    with in_own_process(job, "strace", "-f", "--seccomp-bpf", "-o", str(tmp_path / "trace"), *slow) as writer:
        slowest = writer.wait_for("done").number
        writer.join()
    assert was_hit(tmp_path / "trace")
    assert slowest < 5_000  # microseconds


# ---------------------------------------------------------------- descriptors, threads, interrupts


def _check_many(folder: Path, writer: Writer, logs: int) -> None:
    refused = [f"{ack.log}: {ack.what} {ack.id}" for ack in writer.acks if ack.op == "refused"]
    assert refused == []
    acks_of: dict[str, list[Ack]] = {}
    for ack in writer.acks:
        acks_of.setdefault(ack.log, []).append(ack)
    assert len(acks_of) == logs
    for name, acks in acks_of.items():
        found = look(folder, name)
        assert found.missing(acks) == []
        assert set(found.logged.values()) == {1}
        assert found.gaps == []


def test_a_process_with_more_logs_than_descriptors_loses_no_record(tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), seed=SEED, work="many_logs", logs=200, count=3, largest=500)
    with in_own_process(job, "sh", "-c", 'ulimit -n 64; exec "$@"', "sh") as writer:
        writer.join()
    _check_many(tmp_path, writer, 200)


def test_lowering_the_descriptor_limit_loses_no_record(writers: Writers, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), seed=SEED, work="many_logs", logs=200, count=3, largest=500, descriptors=64)
    writer = writers.start(job)
    writer.join()
    _check_many(tmp_path, writer, 200)


@pytest.mark.needs("strace")
def test_a_process_that_cannot_start_threads_still_records(writers: Writers, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    writer = writers.start(Job(folder=str(folder), seed=SEED, work="scenario", largest=500, stopped=True))
    options = ["-e", "trace=?clone,?clone3", "-e", "inject=?clone,?clone3:error=EAGAIN:when=1"]
    with traced(writer, tmp_path / "trace", *options):
        pass
    assert was_hit(tmp_path / "trace")
    assert _not_right(folder, writer, writer.acks) == []


def test_a_signal_handler_can_append_while_interrupting_an_append(writers: Writers, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), seed=SEED, work="append_in_handler", count=5_000, largest=500)
    writer = writers.start(job)
    writer.join()
    found = look(tmp_path)
    assert found.missing(writer.acks) == []
    assert sum(key.startswith("wh") for key in found.order) > 20


def test_ctrl_c_at_any_moment_loses_no_acknowledged_record(writers: Writers, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), seed=SEED, work="interrupted", count=1_500, largest=1_000)
    writer = writers.start(job)
    writer.join()
    reopen(tmp_path)
    assert [ack for ack in writer.acks if ack.op == "refused" and ack.what != "append"] == []
    assert look(tmp_path).missing(writer.acks) == []
    assert damage(tmp_path) == []


class _Interrupted(platform.Held):
    """A file whose user is interrupted as soon as a line, or a piece of one, has been written."""

    bytes_written: int | None = None

    def write(self, data: bytes) -> None:
        super().write(data[: self.bytes_written])
        self.write = super().write  # type: ignore[method-assign]
        raise KeyboardInterrupt


@pytest.mark.parametrize("bytes_written", [None, 5])
def test_an_interrupted_line_does_not_damage_later_lines(tmp_path: Path, bytes_written: int | None) -> None:
    path = tmp_path / "log.jsonl"
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    held = _Interrupted(fd, path)
    held.bytes_written = bytes_written
    appender = Appender(held)
    with pytest.raises(KeyboardInterrupt):
        appender.append(b'{"interrupted":1}')
    appender.append(b'{"a":1}')
    assert appender.size == held.size()
    appender.append(b'{"b":1}')
    appender.close()
    assert path.read_bytes().splitlines()[-2:] == [b'{"a":1}', b'{"b":1}']


def test_a_record_that_cannot_be_encoded_is_counted_as_lost_without_raising(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    assert journal.append(resume("1"))
    written = journal.append(resume("2", "half a surrogate pair: \ud83d"))
    assert journal.append(resume("3"))
    journal.close()
    found = look(tmp_path)
    assert found.order == (["1", "2", "3"] if written else ["1", "3"])
    assert (journal.lost, found.gap_lost) == ((0, 0) if written else (1, 1))


# ---------------------------------------------------------------- ends


def test_a_process_that_exits_without_close_still_writes_its_gap(tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), seed=SEED, work="exit_without_close", smallest=1_000, largest=2_000)
    with in_own_process(job) as writer:
        writer.join()
    assert (writer.wait_for("done").lost, look(tmp_path).gap_lost) == (1, 1)


def test_a_closed_journal_releases_its_part_after_writing_a_pending_gap(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert journal.append(resume("1"))
    obstacle = tmp_path / "log.p2.jsonl"
    obstacle.mkdir()
    assert not journal.append(resume("2", "x" * 4_000))
    journal.close()
    obstacle.rmdir()
    _wait_until_well(journal)
    other = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert other.append(resume("3"))
    other.close()
    journal.close()
    assert [part.number for part in parts_of(tmp_path, "log")] == [1]
    assert look(tmp_path).gap_lost == 1


# ---------------------------------------------------------------- clocks


DAY = 86_400.0


@pytest.mark.parametrize("skew", [pytest.param(-DAY, id="a day back"), pytest.param(365 * DAY, id="a year on")])
def test_clock_changes_do_not_affect_record_order(tmp_path: Path, skew: float) -> None:
    ahead = 0.0
    clock = Clock(wall=lambda: time.time() + ahead)
    journal = Journal(tmp_path, "log", "exchange", clock=clock, part_bytes=3_000)
    for number in range(20):
        if number == 5:
            ahead = skew
        if number == 10:
            ahead = 0.0
        record = Resume(session_id=f"{number}", ts=clock.now(), resumed_from="x" * 500)
        assert journal.append(record)
    journal.close()
    assert len(parts_of(tmp_path, "log")) > 3
    assert look(tmp_path).order == [str(number) for number in range(20)]


def test_a_writer_keeps_its_order_when_another_writer_starts_a_part(tmp_path: Path) -> None:
    behind = 0.0
    clock = Clock(wall=lambda: time.time() - behind)
    ours, other = (Journal(tmp_path, "log", "exchange", clock=clock, part_bytes=3_000) for _ in range(2))
    for number in range(12):
        if number == 3:
            assert other.append(Resume(session_id="other", ts=clock.now()))
            behind = DAY
        assert ours.append(Resume(session_id=f"{number}", ts=clock.now(), resumed_from="x" * 500))
    ours.close()
    other.close()
    assert [key for key in look(tmp_path).order if key != "other"] == [str(number) for number in range(12)]


@pytest.mark.parametrize("skew", [-DAY, 365 * DAY])
def test_a_gap_never_has_a_negative_duration(tmp_path: Path, skew: float) -> None:
    ahead = 0.0
    clock = Clock(wall=lambda: time.time() + ahead)
    folder = tmp_path / "logs"
    folder.write_text("a file where the folder should be")
    journal = Journal(folder, "log", "exchange", clock=clock)
    assert not journal.append(resume("1"))
    ahead = skew
    folder.unlink()
    _wait_until_well(journal)
    journal.close()
    [gap] = look(folder).gaps
    assert gap.lost == 1
    assert 0 <= gap.seconds < 10


def test_ids_are_unique_when_the_clock_stands_still() -> None:
    clock = Clock(wall=lambda: 0.0)
    assert len({clock.uuid7() for _ in range(200_000)}) == 200_000


# ---------------------------------------------------------------- modes


@pytest.mark.parametrize("umask", [0o000, 0o777, 0o022])
def test_files_and_folders_are_private_under_any_umask(tmp_path: Path, umask: int, home: Path) -> None:
    folder = tmp_path / "new" / "logs"
    previous = os.umask(umask)
    try:
        prepare_log_folder(folder)
        install_key(home / "key")
        journal = Journal(folder, "log", "exchange", part_bytes=12 << 20)
        unasked = Journal(tmp_path / "unasked", "log", "exchange")
        for it in (journal, unasked):
            assert it.append(resume("1", "x" * (9 << 20)))
            assert it.append(exchange("a", "x" * (5 << 20), "y" * (5 << 20)))  # its messages go to a file
            assert it.append(resume("2", "x" * (9 << 20)))
            assert it.begin(start("b"))
        assert seal(parts_of(folder, "log")[0])
        found = [*tmp_path.rglob("*")]
        modes = {str(it.relative_to(tmp_path)): it.lstat().st_mode & 0o7777 for it in found if it != home}
        kinds = {path.suffix or path.name for path in found}
        wrong = [f"{name} {mode:o}" for name, mode in modes.items() if mode != _expected_mode(tmp_path / name)]
    finally:
        os.umask(previous)
        journal.close()
        unasked.close()
    assert {".live", ".bodies", ".zst", ".gitignore", ".jsonl", "key"} <= kinds
    assert wrong == []


def _expected_mode(path: Path) -> int:
    return 0o700 if path.is_dir() else 0o600


# ---------------------------------------------------------------- what others do to the files


def test_recording_continues_when_the_log_folder_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    journal = Journal(folder, "log", "exchange")
    assert journal.append(resume("1"))
    assert journal.begin(start("a"))
    assert journal.add(live("a", "one"))
    shutil.rmtree(folder)
    assert journal.append(resume("2"))  # written to nowhere, before anybody noticed
    UPKEEP.finish()
    assert journal.append(resume("3"))
    assert journal.add(live("a", "two"))
    assert journal.end(exchange("a", "one", "two"))
    journal.close()
    found = look(folder)
    assert found.order == ["3"]
    assert [message.text for message in found.exchanges["a"].messages] == ["one", "two"]
    assert (folder / ".gitignore").exists()


def test_recording_continues_when_a_live_file_is_removed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert journal.append(resume("1"))
    assert journal.begin(start("a"))
    (tmp_path / "log.jsonl.live").unlink()
    assert journal.append(resume("2", "x" * 4_000))  # begins a part
    assert journal.add(live("a", "two"))
    assert [it.id for it in read_exchanges(tmp_path, "log")] == ["a"]
    assert journal.end(exchange("a", "one", "two"))
    journal.close()
    assert look(tmp_path).logged == {"a": 1}
    assert journal.lost == 0


def test_a_wire_log_that_begins_with_a_gap_is_read_as_a_wire_log(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.write_text("a file where the folder should be")
    journal = Journal(folder, "log", "wire")
    request = Request(ts=TS, seq=1, method="POST", path="/v1/messages", headers={}, body=None, fingerprint=None)
    assert not journal.append(request)
    folder.unlink()
    _wait_until_well(journal)
    assert journal.append(request)
    journal.close()
    assert [type(it.value) for it in read_log(folder, "log")][-1] is Request


@pytest.mark.parametrize("session", ["run.live.1", "a.jsonl", "a.jsonl.live", "a.jsonl.live.b", "a.p2", "a.jsonl.zst"])
def test_safe_names_keep_logs_of_different_sessions_apart(tmp_path: Path, session: str) -> None:
    name = safe_name(session)
    for writer in range(3):  # at the same time, so each has a part of its own
        journals = [Journal(tmp_path, log, "exchange") for log in (name, "a") for _ in range(3)]
        for number, journal in enumerate(journals):
            assert journal.append(resume(f"{journal.name} {writer} {number}"))
        for journal in journals:
            journal.close()
        UPKEEP.finish()
    for log in (name, "a"):
        assert len(look(tmp_path, log).order) == 9


def test_leftover_write_test_files_do_not_block_folder_preparation(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    prepare_log_folder(folder)
    for name in (f".write-test-{os.getpid()}", ".write-test-1"):
        (folder / name).touch()
    prepare_log_folder(folder)


def test_a_live_file_is_removed_after_its_exchange_is_synced(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    for number in range(5):
        assert journal.begin(start(f"e{number}", number))
        assert journal.add(live(f"e{number}", "x"))
        assert journal.end(exchange(f"e{number}", "x", number=number))
    UPKEEP.finish()
    journal.close()
    assert live_files_of(tmp_path, "log") == {}
    assert (journal.pending, look(tmp_path).logged.total()) == (0, 5)
