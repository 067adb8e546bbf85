"""The spool: nobody waits for the disk, and what it did not take is counted to the byte."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.proxy.spool import queue as queue_module
from agent_logger.proxy.spool import spool as module
from agent_logger.proxy.spool.folder import segment_path, spool_folder
from agent_logger.proxy.spool.frames import (
    HEAD,
    AnyFrame,
    CallEnd,
    Dropped,
    Mask,
    RequestData,
    RequestEnd,
    ResponseData,
    SpoolSegment,
    TunnelData,
    pack,
    unpack,
)
from agent_logger.proxy.spool.owner import own
from agent_logger.proxy.spool.segments import (
    SegmentStart,
    SpoolFollower,
    SpoolRead,
    Spools,
    carry,
    is_gone,
    segments_of,
)
from agent_logger.proxy.spool.spool import Spool
from tests.pulse import Pulse

FRAMES: list[AnyFrame] = [
    RequestData(1, 2, b""),
    RequestData(1, 2, b"\0" * 70_000),
    ResponseData(1 << 40, 1 << 62, bytes(range(256)), ends_chunk=False),
    CallEnd(3, 4, "upstream_reset", b"a: b\r\n"),
    Dropped(0, 1, 2, 3),
]


def everything(folder: Path) -> list[SpoolRead]:
    """What a recorder that comes late reads."""
    found: list[SpoolRead] = []
    spools = Spools(folder, {})
    while batch := list(spools.batch(time.monotonic_ns() + 1_000_000_000)):
        found += batch
    return found


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


# ---------------------------------------------------------------- frames


@pytest.mark.parametrize("cut", [0, 1, 4, 7, 8, 9, 20, 100, 70_100])
def test_frames_round_trip_and_a_torn_last_frame_is_skipped(cut: int) -> None:
    data = b"".join(part for frame in FRAMES for part in pack(frame))
    last = len(data)
    whole = [frame for (frame,), _ in unpack(data)]
    assert whole == FRAMES
    torn = list(unpack(data[: last - cut]))
    assert [frame for (frame,), _ in torn] == FRAMES[: len(torn)]
    assert (len(torn) == len(FRAMES)) == (cut == 0)
    assert not torn or torn[-1][1] <= last - cut


def _data_frames(data: bytes, call: int, ns: int, masks: tuple[Mask, ...]) -> st.SearchStrategy[AnyFrame]:
    return st.sampled_from(
        [
            RequestData(call, ns, data, masks),
            ResponseData(call, ns, data, masked=masks),
            ResponseData(call, ns, data, ends_chunk=False),
            TunnelData(call, ns, data, from_client=True, masked=masks),
            RequestEnd(call, ns),
            CallEnd(call, ns, "upstream_closed", b"a: b\r\n"),
        ]
    )


_ANY_FRAME = st.builds(
    _data_frames,
    st.sampled_from([0, 1, 255, 256, 65_535, 65_536, 300_000]).map(bytes),
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 62),
    st.lists(st.builds(Mask, st.integers(0, 1 << 20), st.integers(1, 99), st.integers(0, 9)), max_size=2).map(tuple),
).flatmap(lambda frames: frames)


@settings(max_examples=100, deadline=None)
@given(st.lists(_ANY_FRAME, min_size=1, max_size=18))
def test_an_entry_is_the_same_whether_its_data_is_copied_or_not(entry: list[AnyFrame]) -> None:
    body = msgspec.msgpack.encode(tuple(entry))
    assert b"".join(pack(*entry)) == HEAD.pack(len(body), zlib.crc32(body)) + body


def test_large_data_is_not_copied() -> None:
    data = bytes(300_000)
    assert any(buffer is data for buffer in pack(RequestData(1, 2, data), RequestEnd(1, 2)))


@pytest.mark.parametrize("at", [0, 5, 8, 12])
def test_reading_stops_at_a_corrupted_frame(at: int) -> None:
    first, second = (b"".join(pack(frame)) for frame in FRAMES[3:])
    damaged = bytearray(first + second)
    damaged[len(first) + at] ^= 0xFF
    assert [frame for (frame,), _ in unpack(bytes(damaged))] == FRAMES[3:4]


def test_zero_bytes_left_by_a_power_cut_are_not_a_frame() -> None:
    data = b"".join(pack(FRAMES[0])) + bytes(4096)
    assert [frame for (frame,), _ in unpack(data)] == FRAMES[:1]


# ---------------------------------------------------------------- writing and reading


@pytest.mark.alone
def test_frames_are_on_disk_within_50_ms_and_in_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    late: list[float] = []
    with Pulse() as pulse:
        for number in range(20):
            put = pulse.now()
            spool.put(RequestData(number, time.monotonic_ns(), b"x" * 100))
            wait_until(lambda number=number: spool.status().entries == number + 1)  # type: ignore[misc]
            late.append(pulse.now() - put)
    assert sorted(late)[len(late) // 2] < 0.05
    assert spool.close()
    assert [read.frames[0].call for read in everything(tmp_path)] == list(range(20))
    assert [read.number for read in everything(tmp_path)] == list(range(1, 21))


def test_an_idle_spool_sleeps_and_a_frame_wakes_it(tmp_path: Path) -> None:
    before = threading.enumerate()
    spool = Spool(tmp_path)
    (thread,) = [it for it in threading.enumerate() if it not in before]
    wait_until(lambda: _wakes(thread, 0.2) == 0)
    spool.put(RequestData(1, time.monotonic_ns(), b"x"))
    wait_until(lambda: spool.status().entries == 1, 3)  # a segment ends by itself after ten
    assert spool.close()


def _wakes(thread: threading.Thread, seconds: float) -> int:
    """How often a thread of this process went back to sleep in this time."""

    def count() -> int:
        status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    first = count()
    time.sleep(seconds)
    return count() - first


def test_segments_are_bounded_private_and_numbered_in_sequence(tmp_path: Path) -> None:
    spool = Spool(tmp_path, segment_bytes=1 << 16)
    for number in range(300):
        spool.put(RequestData(number, time.monotonic_ns(), b"x" * 2000))
        if number % 20 == 0:
            time.sleep(0.02)
    assert spool.close()
    paths = [segment_path(tmp_path, spool.relay, n) for n in segments_of(tmp_path)[spool.relay]]
    assert len(paths) >= 300 * 2000 // (1 << 16)
    assert {oct(path.stat().st_mode & 0o777) for path in paths} == {"0o600"}
    firsts = [next(unpack(path.read_bytes()))[0][0] for path in paths]
    assert all(isinstance(first, SpoolSegment) and first.relay == spool.relay for first in firsts)
    reads = everything(tmp_path)
    assert [read.number for read in reads] == list(range(1, 301))
    assert [read.frames[0].call for read in reads] == list(range(300))


def test_a_segment_ends_after_a_time_limit(tmp_path: Path) -> None:
    spool = Spool(tmp_path, segment_seconds=0.1)
    spool.put(FRAMES[0])
    wait_until(lambda: len(segments_of(tmp_path)[spool.relay]) == 2)
    time.sleep(0.3)
    assert segments_of(tmp_path)[spool.relay] == [1, 2], "an empty one is left alone"
    spool.close()


def test_a_released_lock_marks_a_relay_as_gone(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert not is_gone(tmp_path, spool.relay)
    spool.close()
    assert is_gone(tmp_path, spool.relay)
    assert is_gone(tmp_path, "abcd")


@pytest.mark.parametrize("cut", [1, 5, 50])
def test_reading_a_dead_relays_segment_stops_at_the_torn_frame(tmp_path: Path, cut: int) -> None:
    spool = Spool(tmp_path)
    for frame in FRAMES:
        spool.put(frame)
    spool.close()
    path = segment_path(tmp_path, spool.relay, 1)
    os.truncate(path, path.stat().st_size - cut)
    reads = everything(tmp_path)
    assert [read.frames[0] for read in reads] == FRAMES[: len(reads)]
    assert 0 < len(reads) < len(FRAMES)


def test_a_torn_last_frame_is_read_once_the_relay_completes_the_frame(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    follower = SpoolFollower(tmp_path, spool.relay, SegmentStart())
    path = segment_path(tmp_path, spool.relay, 1)
    data = b"".join(pack(FRAMES[1]))
    with path.open("ab") as file:
        file.write(data[:100])
    follower.fill()
    assert not follower.is_waiting
    with path.open("ab") as file:
        file.write(data[100:])
    follower.fill()
    assert [read.frames[0] for read in follower.take(1 << 64)] == FRAMES[1:2]
    follower.close()
    spool.close()


def test_frames_that_were_read_but_not_taken_count_as_backlog(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in range(10):
        spool.put(RequestData(number, 1000 + number, b"x" * 5000))
    assert spool.close()
    size = segment_path(tmp_path, spool.relay, 1).stat().st_size
    follower = SpoolFollower(tmp_path, spool.relay, SegmentStart())
    assert follower.backlog_bytes() == size
    follower.fill()
    assert 50_000 < follower.backlog_bytes() <= size
    assert len(list(follower.take(1004))) == 5
    assert 25_000 < follower.backlog_bytes() <= size // 2
    last = list(follower.take(1 << 64))[-1]
    assert follower.backlog_bytes() == 0
    assert follower.number == last.number + 1
    follower.close()


@pytest.mark.parametrize("seed", range(5))
def test_frames_of_several_relays_are_merged_in_time_order(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    relays = [Spool(tmp_path, segment_bytes=1 << 16) for _ in range(4)]
    spools = Spools(tmp_path, {})
    got: list[SpoolRead] = []
    put = 0
    for _ in range(60):
        for _ in range(rng.randint(0, 12)):
            put += 1
            rng.choice(relays).put(RequestData(put, time.monotonic_ns(), bytes(rng.randint(0, 5000))))
        got += spools.batch(time.monotonic_ns() - 5_000_000_000)  # as if a thread might be that late here
        time.sleep(rng.choice((0, 0.001, 0.015)))
    for relay in relays:
        relay.close()
    give_up = time.monotonic() + 60
    while len(got) < put and time.monotonic() < give_up:
        got += spools.batch(time.monotonic_ns())
        for follower in spools.followers.values():
            follower.look()
    assert [read.frames[0].call for read in got] == list(range(1, put + 1))


def test_a_frame_waits_only_briefly_for_other_relays(tmp_path: Path) -> None:
    quick, silent = Spool(tmp_path), Spool(tmp_path)
    spools = Spools(tmp_path, {})
    quick.put(RequestData(1, time.monotonic_ns(), b""))
    wait_until(lambda: quick.status().entries == 1)
    now = time.monotonic_ns()
    assert not list(spools.batch(now)), "the silent one may have had something before"
    assert list(spools.batch(now + 150_000_000))
    quick.close()
    silent.close()


def test_only_carried_frames_of_open_calls_are_read_before_the_position(tmp_path: Path) -> None:
    spool = Spool(tmp_path, segment_bytes=1 << 16)
    for number in range(100):
        spool.put(RequestData(number % 4, time.monotonic_ns(), b"x" * 3000))
        time.sleep(0.001)
    spool.close()
    numbers = segments_of(tmp_path)[spool.relay]
    assert len(numbers) > 3
    carried = tmp_path / "x.carried"
    carry(carried, [segment_path(tmp_path, spool.relay, n) for n in numbers[:2]], frozenset({2}))
    reads = everything(tmp_path)
    passed = [read for read in reads if read.segment <= 2]
    start = SegmentStart(segment=3, number=81, calls=frozenset({2}), carried=carried)
    follower = SpoolFollower(tmp_path, spool.relay, start)
    follower.gone = True
    follower.fill()
    again = list(follower.take(1 << 64))
    expected = [read for read in reads if read.number >= 81 or read.frames[0].call == 2]
    assert [(read.number, read.frames) for read in again] == [(read.number, read.frames) for read in expected]
    assert passed and {read.segment for read in again} >= {0, 3}


def test_a_lock_check_during_folder_recreation_does_not_mark_the_relay_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks holds the lock for a moment, and that may be the moment in which the relay wants it."""
    spool = Spool(tmp_path / "spool")
    looking: list[platform.Held] = []
    open_file = platform.open_file

    def looked_for(path: Path, *, create: bool = False, top: Path | None = None) -> platform.Held:
        held = open_file(path, create=create, top=top)
        if path.suffix == ".lock" and not looking:
            looking.append(open_file(path))
            assert platform.lock(looking[0])
            threading.Timer(0.05, looking[0].close).start()
        return held

    monkeypatch.setattr(platform, "open_file", looked_for)
    (tmp_path / "spool").rename(tmp_path / "away")
    spool.put(FRAMES[0])
    wait_until(lambda: spool.status().entries == 1)
    assert looking and not is_gone(tmp_path / "spool", spool.relay)
    assert spool.close()
    assert is_gone(tmp_path / "spool", spool.relay)


def test_a_relay_is_not_gone_when_its_folder_is_removed_before_a_segment_ends(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", segment_seconds=0.5)
    spool.put(FRAMES[0])
    wait_until(lambda: spool.status().entries == 1)
    (tmp_path / "spool").rename(tmp_path / "away")
    wait_until(lambda: spool.status().problem or segment_path(tmp_path / "spool", spool.relay, 2).exists())
    (tmp_path / "spool").mkdir(exist_ok=True)  # as the proxy does
    wait_until(segment_path(tmp_path / "spool", spool.relay, 2).exists)
    assert not is_gone(tmp_path / "spool", spool.relay)
    assert spool.close()


# ---------------------------------------------------------------- a disk that does not take it


def counted(folder: Path) -> tuple[int, int, int]:
    """Frames that are there, and what `Dropped` frames say."""
    frames = [read.frames[0] for read in everything(folder)]
    dropped = [frame for frame in frames if isinstance(frame, Dropped)]
    return len(frames) - len(dropped), sum(it.frames for it in dropped), sum(it.bytes for it in dropped)


@pytest.mark.alone
def test_a_full_disk_delays_no_put_and_dropped_frames_are_counted_exactly(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3 << 20))
    spool = Spool(small_disk / "spool", memory_bytes=1 << 20)
    slowest = 0.0
    put = 0
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(5 << 20))
    with Pulse() as pulse:
        for number in range(3000):
            frame = RequestData(1 + number % 7, time.monotonic_ns(), bytes(1000))
            began = pulse.now()
            spool.put(frame)
            slowest = max(slowest, pulse.now() - began)
            put += 1
    for call in range(1, 8):
        spool.put(CallEnd(call, time.monotonic_ns()))
    wait_until(lambda: spool.status().problem is not None)
    status = spool.status()
    assert status.dropped_frames > 0
    assert status.waiting_bytes <= (1 << 20) + 1000  # the marks
    assert slowest < 0.1
    ballast.unlink()
    wait_until(lambda: spool.status().waiting_bytes == 0)
    spool.put(CallEnd(99, time.monotonic_ns()))
    assert spool.close()
    assert spool.status().problem is None
    kept, dropped, dropped_bytes = counted(small_disk / "spool")
    assert kept + dropped == put + 8, "the end of a call is never dropped"
    assert dropped == spool.status().dropped_frames == status.dropped_frames
    assert dropped_bytes == spool.status().dropped_bytes
    ends = [read.frames[0].call for read in everything(small_disk / "spool") if isinstance(read.frames[0], CallEnd)]
    assert sorted(ends) == [*range(1, 8), 99]


def test_an_unread_spool_stops_growing_at_its_limit(tmp_path: Path) -> None:
    spool = Spool(tmp_path, memory_bytes=1 << 18, disk_bytes=1 << 20, segment_bytes=1 << 17)
    for number in range(2000):
        spool.put(RequestData(1, number, bytes(2000)))
        if number % 50 == 0:
            time.sleep(0.012)
    wait_until(lambda: "full" in (spool.status().problem or ""))
    assert sum(path.stat().st_size for path in tmp_path.glob("*.spool")) <= 1 << 20
    dropped = spool.status().dropped_frames
    assert dropped > 500
    marks = _marks(tmp_path)  # a disk that is slow before it is full has some dropped already
    for number in segments_of(tmp_path)[spool.relay][:-1]:
        segment_path(tmp_path, spool.relay, number).unlink()  # as the recorder does
    wait_until(lambda: spool.status().waiting_bytes == 0)
    spool.put(CallEnd(1, 1))
    assert spool.close()
    assert spool.status().dropped_frames == dropped
    assert sum((marks | _marks(tmp_path)).values()) == dropped


def _marks(folder: Path) -> dict[int, int]:
    """How many frames each entry says were dropped."""
    entries = ((read.number, read.frames[0]) for read in everything(folder))
    return {number: first.frames for number, first in entries if isinstance(first, Dropped)}


def test_drops_of_too_many_calls_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "MOST_DROPPED_CALLS", 3)
    spool = Spool(tmp_path, memory_bytes=10)
    for call in range(1, 11):
        spool.put(RequestData(call, 1, bytes(100)))
    spool._wake.set()
    assert spool.close()
    marks = [read.frames[0] for read in everything(tmp_path) if isinstance(read.frames[0], Dropped)]
    assert {mark.call: mark.frames for mark in marks} == {1: 1, 2: 1, 3: 1, 0: 7}


def test_the_dropped_mark_of_a_call_precedes_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when there was room for the end."""
    monkeypatch.setattr(module, "BATCH_SECONDS", 0.3)
    spool = Spool(tmp_path, memory_bytes=100_000)
    for _ in range(3):
        spool.put(RequestData(1, 1, bytes(60_000)))
    spool.put(RequestData(2, 1, b"whole"))
    for call in (1, 2):
        spool.put(CallEnd(call, 2))
    assert spool.close()
    frames = [read.frames[0] for read in everything(tmp_path)]
    assert [type(it) for it in frames if it.call == 1] == [RequestData, Dropped, CallEnd]
    assert [type(it) for it in frames if it.call == 2] == [RequestData, CallEnd]


SLOW = """
import json, sys, time
from pathlib import Path
from agent_logger.proxy.spool.frames import ResponseData
from agent_logger.proxy.spool.spool import Spool
spool = Spool(Path(sys.argv[1]), memory_bytes=200_000)
print("ready", flush=True)
sys.stdin.readline()
slowest = []
for number in range(2000):
    began = time.perf_counter()
    spool.put(ResponseData(1, time.monotonic_ns(), bytes(1000)))
    slowest.append(time.perf_counter() - began)
    time.sleep(0.0005)
done = spool.close(20)
status = spool.status()
print(json.dumps([sorted(slowest)[-20], done, status.entries, status.dropped_frames]))
"""


def _is_traced(thread: Path) -> bool:
    return "TracerPid:\t0\n" not in (thread / "status").read_text()


@pytest.mark.needs("strace")
def test_a_slow_disk_does_not_delay_put(tmp_path: Path) -> None:
    """Every write takes half a second; a put takes no more than ever."""
    folder = tmp_path / "spool"
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout
    try:
        assert child.stdout.readline() == b"ready\n"
        options = ["-f", "-qq", "-e", "trace=writev", "-e", "inject=writev:delay_enter=500000"]
        line = ["strace", *options, "-o", str(tmp_path / "trace"), "-p", str(child.pid)]
        strace = subprocess.Popen(line)
        wait_until(lambda: all(map(_is_traced, Path(f"/proc/{child.pid}/task").iterdir())))
        child.stdin.write(b"go\n")
        child.stdin.flush()
        slow, done, frames, dropped = json.loads(child.stdout.readline())
        child.stdin.close()
        assert child.wait(30) == 0
        strace.wait(30)
    finally:
        child.stdout.close()
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
    assert "DELAYED" in (tmp_path / "trace").read_text()
    assert done
    assert slow < 0.1
    kept, marked, _ = counted(folder)
    assert dropped > 0
    assert kept + marked == 2000
    assert marked == dropped
    assert frames >= kept


# ---------------------------------------------------------------- one proxy per log folder


def test_a_second_proxy_on_a_log_folder_gets_an_error_naming_the_owner(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    owner = own(log_dir)
    owner.listening(8123)
    with pytest.raises(StoreError, match=rf"process {os.getpid()} on port 8123"):
        own(log_dir)
    owner.close()
    again = own(log_dir)
    with pytest.raises(StoreError, match="which is not listening yet"):
        own(log_dir)
    again.close()
    assert (log_dir / ".gitignore").read_text() == "*\n"
    assert oct(spool_folder(log_dir).stat().st_mode & 0o777) == "0o700"


def test_an_unwritable_folder_raises_immediately(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        Spool(tmp_path / "file" / "spool")
    with pytest.raises(StoreError):
        own(tmp_path / "file" / "logs")


def test_a_spool_with_a_failed_thread_reports_a_problem_and_counts_drops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(spool_folder(tmp_path))
    monkeypatch.setattr(spool._segments, "make_room", None)
    spool.put(RequestEnd(1, 1))
    give_up = time.monotonic() + 10
    while not (problem := spool.status().problem):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    assert "restart" in problem and "calls are no longer recorded" in caplog.text
    spool.put(RequestEnd(2, 2))
    assert spool.status().dropped_frames == 1
    assert not spool.close()


def test_put_never_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path)
    spool.put(object())  # type: ignore[arg-type]
    spool.put(RequestData(1, 1, bytes(17 << 20)))
    spool.close()
    spool.put(FRAMES[0])
    assert spool.status().dropped_frames == 3
    assert HEAD.size == 8
