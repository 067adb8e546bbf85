"""`kill -9` at any moment: what was acknowledged is there, and the next owner puts the rest right.

Moments are random. The seed is printed; `-p randomly` with the seed in the header of the run gives it again,
the moments themselves as far as the machine repeats them.
"""

import errno
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from agent_logger import platform
from agent_logger.files.parts import live_files_of, parts_of
from agent_logger.journal.journal import Journal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, Resume
from tests.journal.logs import damage, exchange, live, look, reopen, resume, start, torn
from tests.journal.strace import traced
from tests.journal.writer import Ack, Job, Writer, Writers


class Kills:
    """One log, and one writer after the other that is killed at it."""

    def __init__(self, writers: Writers, folder: Path, rng: random.Random, smallest: int, largest: int) -> None:
        self._writers, self._folder, self._random = writers, folder, rng
        self._smallest, self._largest = smallest, largest
        self.acks: list[Ack] = []
        self.kills = self.torn = self._recovered = 0

    def kill_one(self) -> None:
        """Half of the next owners are killed too, a quarter while they put things right."""
        job = Job(folder=str(self._folder), seed=f"k{self.kills}", smallest=self._smallest, largest=self._largest)
        writer = self._writers.start(job)
        writer.wait_for("opening") if self.kills % 4 == 3 else _wait_for_work(writer)
        time.sleep(self._random.uniform(0.001, 0.05))
        writer.kill()
        self.acks += writer.acks
        self.kills += 1
        if self.kills % 2 == 0:
            self.check()

    def check(self) -> None:
        left_torn = torn(self._folder)
        assert len(left_torn) <= 2  # at most one per writer, and two were killed since the last look
        self.torn += len(left_torn)
        reopen(self._folder)
        found = look(self._folder)
        assert found.missing(self.acks) == []
        assert damage(self._folder) == []
        assert not [path for path in torn(self._folder) if path.endswith(".jsonl")]
        assert found.recovered - self._recovered >= sum(path.endswith(".jsonl") for path in left_torn)
        assert {key: times for key, times in found.logged.items() if times != 1} == {}
        begun = {ack.id for ack in self.acks if ack.op == "begin"}
        assert begun - set(found.logged) == set()  # in the log itself, no longer in a live file only
        self._recovered = found.recovered


def _wait_for_work(writer: Writer) -> None:
    give_up = time.monotonic() + 30
    while len(writer.acks) < 2 and time.monotonic() < give_up:
        time.sleep(0.0005)


def _kill_often(writers: Writers, folder: Path, kills: int, smallest: int, largest: int, per_log: int) -> None:
    seed = random.getrandbits(32)
    rng = random.Random(seed)
    torn_lines = records = 0
    for number in range(kills // per_log):
        log = Kills(writers, folder / str(number), rng, smallest, largest)
        for _ in range(per_log):
            log.kill_one()
        log.check()
        torn_lines += log.torn
        records += len(log.acks)
    print(f"seed {seed}: {kills} kills, {records} acknowledgements, {torn_lines} torn lines")


@pytest.mark.parametrize(
    ("smallest", "largest", "per_log"),
    [
        pytest.param(200, 2_000, 20, id="up to 2 KB"),
        pytest.param(200, 64 << 10, 10, id="up to 64 KB"),
        pytest.param(200, 4 << 20, 4, id="200 bytes to 4 MiB"),
        pytest.param(1 << 20, 4 << 20, 5, id="1 to 4 MiB", marks=pytest.mark.long),
    ],
)
def test_kill_9_loses_no_acknowledged_record(
    writers: Writers, tmp_path: Path, smallest: int, largest: int, per_log: int
) -> None:
    _kill_often(writers, tmp_path, 20, smallest, largest, per_log)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("largest", [2_000, 64 << 10, 1 << 20, 4 << 20, 16 << 20])
def test_a_thousand_kills_lose_no_acknowledged_record(writers: Writers, tmp_path: Path, largest: int) -> None:
    _kill_often(writers, tmp_path, 200, 200, largest, per_log=20)


# ---------------------------------------------------------------- exchanges in flight


def test_an_interrupted_exchange_is_recovered_once_with_every_acknowledged_message(
    writers: Writers, tmp_path: Path
) -> None:
    writer = writers.start(Job(folder=str(tmp_path), seed="w", work="scenario", largest=2_000))
    writer.wait_for("done")  # an exchange was begun and not ended
    writer.finish()
    reopen(tmp_path)
    reopen(tmp_path)
    found = look(tmp_path)
    assert found.missing(writer.acks) == []
    assert set(found.logged.values()) == {1}
    unfinished = [it for it in found.exchanges.values() if not it.complete]
    assert [it.end_reason for it in unfinished] == ["recovered"]


def test_an_exchange_is_logged_once_when_its_owner_died_before_removing_the_live_file(
    writers: Writers, tmp_path: Path
) -> None:
    writer = writers.start(Job(folder=str(tmp_path), seed="w", work="end_only", count=5, largest=2_000))
    writer.wait_for("done")
    writer.kill()
    assert len([path for paths in live_files_of(tmp_path, "log").values() for path in paths]) == 5
    assert len(read_exchanges(tmp_path, "log")) == 5
    reopen(tmp_path)
    found = look(tmp_path)
    assert found.missing(writer.acks) == []
    assert sorted(found.logged.values()) == [1] * 5
    UPKEEP.finish()
    assert live_files_of(tmp_path, "log") == {}


TAILS = [
    pytest.param(b"", id="whole"),
    pytest.param(b'{"type":"live_message","v":1,"id":"w-2","message":{"text":"', id="torn"),
    pytest.param(b'{"type":"live_message","v":1,"input":[' + b'{"a":{"b":1}},' * 400, id="torn, many objects"),
]


@pytest.mark.parametrize("tail", TAILS)
def test_a_new_exchange_survives_recovery_of_the_previous_owners_exchange(tmp_path: Path, tail: bytes) -> None:
    first = Journal(tmp_path, "log", "exchange")
    assert first.append(resume("before"))
    assert first.begin(start("old"))
    assert first.add(live("old", "one"))
    first.close()
    left = tmp_path / "log.jsonl.live"
    left.write_bytes(left.read_bytes() + tail)
    second = Journal(tmp_path, "log", "exchange")
    assert second.begin(start("new"))
    UPKEEP.finish()  # which removes what was recovered
    assert second.add(live("new", "two"))
    exchanges = {it.id: [message.text for message in it.messages] for it in read_exchanges(tmp_path, "log")}
    second.close()
    assert exchanges == {"old": ["one"], "new": ["two"]}


def test_an_interrupted_exchange_in_a_full_part_is_recovered_once(tmp_path: Path) -> None:
    first = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert first.append(resume("before", "x" * 2_500))
    assert first.begin(start("old"))
    assert first.add(live("old", "y" * 2_000))
    first.close()
    second = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert second.append(resume("after"))
    second.close()
    found = look(tmp_path)
    assert found.order == ["before", "after"]
    assert found.logged == {"old": 1}


def test_starting_a_new_part_leaves_live_files_of_dead_writers_in_place(tmp_path: Path) -> None:
    first, second = (Journal(tmp_path, "log", "exchange", part_bytes=4_000) for _ in range(2))
    assert first.append(resume("1"))
    assert second.append(resume("2"))  # in a part of its own
    for journal, key in [(first, "a"), (second, "b")]:
        assert journal.begin(start(key))
        assert journal.add(live(key, f"said in {key}"))
    second.close()  # as good as dead: nobody owns its part, its live file is there
    assert first.append(resume("3", "x" * 4_000))
    assert first.add(live("a", "more"))
    exchanges = {it.id: [message.text for message in it.messages] for it in read_exchanges(tmp_path, "log")}
    first.close()
    assert exchanges == {"a": ["said in a", "more"], "b": ["said in b"]}


def release(journal: Journal) -> None:
    """Release the journal, once the thread that syncs is not at work on it."""
    give_up = time.monotonic() + 60
    while not journal.release():
        assert time.monotonic() < give_up
        time.sleep(0.001)


def test_an_exchange_in_flight_continues_in_the_next_part_after_release(tmp_path: Path) -> None:
    """As happens to the journals that were not used for longest, when a process has many."""
    journal = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert journal.append(resume("1"))
    assert journal.begin(start("a"))
    assert journal.add(live("a", "one"))
    release(journal)
    assert journal.append(resume("2", "x" * 4_000))  # begins a part
    assert journal.add(live("a", "two"))
    in_flight = [[message.text for message in it.messages] for it in read_exchanges(tmp_path, "log")]
    assert journal.end(exchange("a", "one", "two"))
    journal.close()
    assert in_flight == [["one", "two"]]
    assert look(tmp_path).logged == {"a": 1}


def test_messages_stay_in_the_live_file_while_the_sync_of_their_exchange_is_postponed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process without a free descriptor cannot sync the log: after a power cut only the live file may be left."""

    def fail(*_: object, **__: object) -> platform.Held:
        raise OSError(errno.EMFILE, "too many open files")

    journal = Journal(tmp_path, "log", "exchange")
    with UPKEEP._working, monkeypatch.context() as patched:  # the thread does not sync meanwhile
        assert journal.begin(start("a"))
        assert journal.add(live("a", "one"))
        assert journal.end(exchange("a", "one"))
        assert journal.release()
        patched.setattr(platform, "open_file", fail)
        assert journal.upkeep()
        assert list(tmp_path.glob("log.jsonl.live*"))
    journal.upkeep()
    assert not list(tmp_path.glob("log.jsonl.live*"))
    journal.close()
    assert look(tmp_path).logged == {"a": 1}


def test_an_exchange_recovered_by_another_process_keeps_later_messages(tmp_path: Path) -> None:
    journal, other = (Journal(tmp_path, "log", "exchange") for _ in range(2))
    assert journal.begin(start("a"))
    assert journal.add(live("a", "one"))
    release(journal)  # for want of descriptors
    assert other.append(resume("1"))  # which makes it the owner
    assert journal.add(live("a", "two"))
    release(journal)  # and now it is dead
    other.close()
    UPKEEP.finish()
    reopen(tmp_path)
    exchanges = {it.id: [message.text for message in it.messages] for it in read_exchanges(tmp_path, "log")}
    assert exchanges == {"a": ["one", "two"]}


def test_acknowledged_messages_are_readable_when_the_live_start_could_not_be_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "log", "exchange")
    assert journal.append(resume("1"))
    obstacles = [tmp_path / "log.jsonl.live", tmp_path / "log.jsonl.live.a"]
    for obstacle in obstacles:
        obstacle.mkdir()
    assert not journal.begin(start("a"))
    for obstacle in obstacles:
        obstacle.rmdir()
    acknowledged = journal.add(live("a", "one"))
    in_flight = [[message.text for message in it.messages] for it in read_exchanges(tmp_path, "log")]
    journal.close()
    assert in_flight == ([["one"]] if acknowledged else [])


def test_messages_of_an_exchange_with_a_lost_record_are_recovered_by_the_next_owner(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path, "log", "exchange", part_bytes=4_000)
    assert journal.append(resume("1"))
    assert journal.begin(start("a", 1))
    assert journal.add(live("a", "one"))
    obstacle = tmp_path / "log.p2.jsonl"
    obstacle.mkdir()
    assert not journal.end(exchange("a", "one", "x" * 4_000))  # it needs a new part
    obstacle.rmdir()
    time.sleep(0.15)  # until the journal tries again
    assert journal.begin(start("b", 2))
    assert journal.end(exchange("b", "two", number=2))
    journal.close()
    UPKEEP.finish()
    reopen(tmp_path)
    exchanges = {it.id: it for it in read_exchanges(tmp_path, "log")}
    assert [message.text for message in exchanges["a"].messages][:1] == ["one"]
    assert exchanges["b"].complete


def test_a_reader_always_sees_an_exchange_once_the_exchange_has_begun(tmp_path: Path) -> None:
    journal, other = (Journal(tmp_path, "log", "exchange") for _ in range(2))
    assert journal.append(resume("1"))
    for number in range(20_000):  # in another part, and later than ours: read when ours has been read
        assert other.append(Resume(session_id=f"r{number}", ts="2027-01-01T00:00:00.000Z"))
    begun: list[str] = []
    stop = threading.Event()

    def write() -> None:
        for number in range(10_000):
            if stop.is_set():
                return
            key = f"e{number}"
            journal.begin(start(key, number))
            begun.append(key)
            time.sleep(0.04)
            journal.end(exchange(key, number=number))
            UPKEEP.finish()

    thread = threading.Thread(target=write)
    thread.start()
    unseen = []
    try:
        for _ in range(15):
            known = set(begun)
            unseen += sorted(known - {it.id for it in read_exchanges(tmp_path, "log")})
    finally:
        stop.set()
        thread.join()
        journal.close()
        other.close()
    assert unseen == []


# ---------------------------------------------------------------- torn lines


TORN = [
    pytest.param(1, id="its first byte"),
    pytest.param(60, id="within its head"),
    pytest.param(-1, id="all but the newline"),
]


@pytest.mark.parametrize("kept", TORN)
def test_a_torn_last_line_does_not_damage_later_records(tmp_path: Path, kept: int) -> None:
    _tear(tmp_path, [resume("1"), resume("2", "x" * 300)], kept)
    journal = Journal(tmp_path, "log", "exchange")
    assert journal.append(resume("3"))
    journal.close()
    found = look(tmp_path)
    assert (found.order, found.recovered) == (["1", "2", "3"] if kept == -1 else ["1", "3"], 1)
    assert damage(tmp_path) == []


@pytest.mark.parametrize("kept", TORN)
def test_a_log_with_a_torn_first_line_stays_usable(tmp_path: Path, kept: int) -> None:
    _tear(tmp_path, [resume("1", "x" * 300)], kept)
    journal = Journal(tmp_path, "log", "exchange")
    assert journal.append(resume("2"))
    assert journal.begin(start("a"))
    assert journal.end(exchange("a"))
    journal.close()
    found = look(tmp_path)
    assert found.order[-1:] == ["2"]
    assert found.logged == {"a": 1}
    assert damage(tmp_path) == []


def _tear(folder: Path, written: list[Resume], kept: int) -> None:
    """A log whose owner died when `kept` bytes of its last line were written."""
    journal = Journal(folder, "log", "exchange")
    for record in written:
        assert journal.append(record)
    journal.close()
    path = folder / "log.jsonl"
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:kept])


# ---------------------------------------------------------------- several processes


def test_killing_one_writer_loses_no_records_of_another_writer_on_the_same_log(
    writers: Writers, tmp_path: Path
) -> None:
    rng = random.Random(seed := random.getrandbits(32))
    print(f"seed {seed}")
    acks: list[Ack] = []
    for number in range(5):
        killed, survivor = (
            writers.start(Job(folder=str(tmp_path), seed=f"{who}{number}", largest=100_000)) for who in "ks"
        )
        killed.wait_for_first_ack()
        survivor.wait_for_first_ack()
        time.sleep(rng.uniform(0.001, 0.05))
        killed.kill()
        time.sleep(0.02)
        survivor.kill()
        acks += killed.acks + survivor.acks
    reopen(tmp_path)
    found = look(tmp_path)
    assert found.missing(acks) == []
    assert set(found.logged.values()) <= {1}
    assert damage(tmp_path) == []


def _eight_processes(writers: Writers, folder: Path, seconds: int) -> None:
    def begin(number: int) -> Writer:
        job = Job(folder=str(folder), seed=f"w{number}", largest=1_000, pause_seconds=0.005)
        return writers.start(job)

    rng = random.Random(seed := random.getrandbits(32))
    running = [begin(number) for number in range(8)]
    ended: list[Writer] = []
    for number in range(8, 8 + seconds):
        time.sleep(1)
        victim = running.pop(rng.randrange(len(running)))
        victim.kill()
        ended.append(victim)
        running.append(begin(number))
    for writer in running:
        writer.kill()
    acks = [ack for writer in ended + running for ack in writer.acks]
    reopen(folder)
    found = look(folder)
    print(
        f"seed {seed}: {len(acks)} acknowledgements, {found.recovered} torn lines, {len(parts_of(folder, 'log'))} parts"
    )
    assert found.missing(acks) == []
    assert {key: times for key, times in found.logged.items() if times != 1} == {}
    assert damage(folder) == []


def test_eight_processes_share_a_log_while_one_is_killed_every_second(writers: Writers, tmp_path: Path) -> None:
    _eight_processes(writers, tmp_path, 6)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_eight_processes_share_a_log_for_ten_minutes(writers: Writers, tmp_path: Path) -> None:
    _eight_processes(writers, tmp_path, 600)


def test_a_part_is_released_when_its_owner_dies_while_a_forked_child_lives(writers: Writers, tmp_path: Path) -> None:
    parent = writers.start(Job(folder=str(tmp_path), seed="w", work="fork", largest=2_000))
    _take_over_while_a_child_lives(parent, tmp_path)


@pytest.mark.needs("strace")
def test_a_part_is_released_when_its_owner_forked_during_a_sync_and_died(writers: Writers, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    job = Job(folder=str(folder), seed="w", work="fork", largest=2_000, pause_seconds=0.2, stopped=True)
    parent = writers.start(job)
    slow = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=1000000"]
    with traced(parent, tmp_path / "trace", *slow):
        _take_over_while_a_child_lives(parent, folder)


@pytest.mark.needs("strace")
def test_a_part_is_released_on_close_while_its_sync_is_still_running(writers: Writers, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    job = Job(folder=str(folder), seed="w", work="close", largest=2_000, pause_seconds=0.2, stopped=True)
    first = writers.start(job)
    slow = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=2000000"]
    with traced(first, tmp_path / "trace", *slow):
        first.wait_for("done")
        journal = Journal(folder, "log", "exchange")
        assert journal.append(resume("next"))
        journal.close()
        first.kill()
    assert [part.number for part in parts_of(folder, "log")] == [1]
    assert look(folder).order[-1] == "next"


def _take_over_while_a_child_lives(parent: Writer, folder: Path) -> None:
    child = parent.wait_for("child").number
    while sum(ack.op == "append" for ack in parent.acks) < 2:
        time.sleep(0.001)
    parent.kill_alone()
    try:
        os.kill(child, 0)  # it is alive
        began = time.monotonic()
        journal = Journal(folder, "log", "exchange")
        assert journal.append(resume("next"))
        assert time.monotonic() - began < 10  # the child would hold it for a minute
        journal.close()
    finally:
        os.kill(child, signal.SIGKILL)
    parent.finish()
    found = look(folder)
    assert [part.number for part in parts_of(folder, "log")] == [1]
    assert found.missing(parent.acks) == []
    assert found.order[-1] == "next"


def test_a_child_forked_while_threads_append_can_append_immediately(writers: Writers, tmp_path: Path) -> None:
    writer = writers.start(
        Job(
            folder=str(tmp_path),
            seed="w",
            work="fork_while_appending",
            count=40,
            largest=2_000,
            pause_seconds=0.0005,
        )
    )
    writer.join()
    found = look(tmp_path)
    assert writer.wait_for("done").lost == 0
    assert found.missing(writer.acks) == []
    assert len({ack.id for ack in writer.acks if ack.op == "append" and ack.id.startswith("wc")}) == 40
    assert damage(tmp_path) == []


def test_an_exchange_is_recovered_by_only_one_process(tmp_path: Path) -> None:
    dead = Journal(tmp_path, "log", "exchange")
    assert dead.begin(start("a"))
    assert dead.add(live("a", "one"))
    dead.close()
    both = [Journal(tmp_path, "log", "exchange") for _ in range(2)]
    for journal in both:
        assert journal.open()
    for journal in both:
        journal.close()
    logged = [it.value for it in read_log(tmp_path, "log") if isinstance(it.value, ExchangeRecord)]
    assert [it.id for it in logged] == ["a"]
