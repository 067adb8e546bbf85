"""A process that writes to logs and says on a pipe what was acknowledged, until somebody kills it.

`Writers` starts one such script, which then forks a process per job: a fresh interpreter for each of
hundreds of kills would be most of the time a test takes. Each job is a process of its own with nothing open
but its pipe, and every acknowledgement goes to the pipe after the call that gave it has returned.
"""

import ctypes
import faulthandler
import fcntl
import hashlib
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, Self

import msgspec

import agent_logger
from agent_logger.clock import CLOCK
from agent_logger.errors import SourceError
from agent_logger.files import sealed
from agent_logger.journal import bodies
from agent_logger.journal.journal import PART_BYTES, Journal
from agent_logger.journal.seal import seal_due
from agent_logger.journal.sync import UPKEEP
from agent_logger.model.records import ExchangeRecord, LiveMessage, LiveStart, Message, Resume
from agent_logger.transcripts.store import Transcripts

SOURCE = Path(agent_logger.__file__).parent.parent  # a mutant's copy, where that is what is tested
MAX_JOBS = 100_000
MOST_SECONDS = 100  # that somebody waits for a job to end
_ALLOW_TRACE = 0x59616D61  # PR_SET_PTRACER: strace is not this process's parent

Work = Literal[
    "mixed",
    "scenario",
    "end_only",
    "close",
    "many_logs",
    "fork",
    "fork_while_appending",
    "sync_twice",
    "append_during_sync",
    "short_writes",
    "fill_disk",
    "interrupted",
    "append_in_handler",
    "exit_without_close",
    "timed",
    "synced",
    "seal",
    "keep",
    "keep_scenario",
    "keep_on_full_disk",
]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    seed: str  # ids begin with it
    name: str = "log"
    work: Work = "mixed"
    smallest: int = 200  # bytes of text in a record
    largest: int = 4 << 20
    count: int = 1_000_000  # pieces of work, then it ends by itself
    pause_seconds: float = 0.0  # between pieces of work
    close_each: bool = False  # let the log go after each
    part_bytes: int = PART_BYTES
    logs: int = 1
    stopped: bool = False  # stop before anything is done, so that strace can be attached
    descriptors: int | None = None
    ballast: str | None = None  # a file to remove when the disk is full


class Ack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`op` returned `True`; or `what` was refused. `lost` at the end of a job: what the journal counted."""

    op: Literal["opening", "append", "begin", "add", "end", "refused", "child", "syncing", "synced", "sealed", "done"]
    what: str = ""
    id: str = ""
    number: int = 0
    digest: str = ""
    log: str = "log"
    lost: int = 0
    written: int = 0


def digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()[:16]


# ---------------------------------------------------------------- in the process that is killed


class Subject:
    """Writes to one log, and acknowledges."""

    def __init__(self, job: Job, pipe: int, name: str | None = None) -> None:
        self.job, self._pipe, self.name = job, pipe, name or job.name
        self.random = random.Random(f"{job.seed} {self.name}")
        self.journal = Journal(Path(job.folder), self.name, "exchange", part_bytes=job.part_bytes)
        self._count = 0
        self._messages: list[Message] = []

    def say(self, ack: Ack) -> None:
        os.write(self._pipe, msgspec.json.encode(ack) + b"\n")

    def acknowledge(self, done: bool, ack: Ack) -> bool:
        refused = Ack(op="refused", what=ack.op, id=ack.id, number=ack.number, log=self.name)
        self.say(msgspec.structs.replace(ack, log=self.name) if done else refused)
        return done

    def text(self) -> str:
        sizes = self.job.largest / self.job.smallest
        size = int(self.job.smallest * sizes ** self.random.random())
        piece = self.random.randbytes(32).hex() + '{"\\":\u2028é\n'  # what a reader may stumble over
        return (piece * (size // len(piece) + 1))[:size]

    def next_id(self) -> str:
        self._count += 1
        return f"{self.job.seed}-{self.name}-{self._count}"

    def append(self) -> bool:
        key, text = self.next_id(), self.text()
        done = self.journal.append(Resume(session_id=key, ts=CLOCK.now(), resumed_from=text))
        return self.acknowledge(done, Ack(op="append", id=key, digest=digest(text)))

    def begin(self) -> str:
        key, text = self.next_id(), self.text()
        self._messages = []
        start = LiveStart(id=key, session_id="s", exchange=self._count, ts_start=CLOCK.now(), user_input=text[:1000])
        self.acknowledge(self.journal.begin(start), Ack(op="begin", id=key, digest=digest(text[:1000])))
        return key

    def add(self, key: str) -> bool:
        text = self.text()
        message = Message(source="assistant", type="text", ts=CLOCK.now(), text=text)
        self._messages.append(message)
        done = self.journal.add(LiveMessage(id=key, message=message))
        return self.acknowledge(done, Ack(op="add", id=key, number=len(self._messages), digest=digest(text)))

    def end(self, key: str) -> bool:
        exchange = ExchangeRecord(
            id=key,
            session_id="s",
            exchange=self._count,
            ts_start=CLOCK.now(),
            ts_end=CLOCK.now(),
            user_input=None,
            messages=self._messages,
            stats=None,
            end_reason="result",
        )
        return self.acknowledge(self.journal.end(exchange), Ack(op="end", id=key, number=len(self._messages)))

    def exchange(self) -> None:
        key = self.begin()
        for _ in range(self.random.randint(1, 4)):
            self.add(key)
        self.end(key)

    def done(self) -> None:
        self.say(Ack(op="done", log=self.name, lost=self.journal.lost, written=self.journal.written))


def mixed(job: Job, pipe: int) -> None:
    subject = Subject(job, pipe)
    subject.say(Ack(op="opening"))
    for _ in range(job.count):
        if subject.random.random() < 0.4:
            subject.append()
        else:
            subject.exchange()
        if job.close_each:
            subject.journal.close()
        if job.pause_seconds:
            time.sleep(job.pause_seconds)
    subject.done()


def scenario(job: Job, pipe: int) -> None:
    """A little of everything, with the upkeep in between; then on, until the disk is well again."""
    subject = Subject(job, pipe)
    subject.append()
    subject.exchange()
    UPKEEP.finish()
    key = subject.begin()
    subject.add(key)
    UPKEEP.finish()
    subject.append()
    subject.add(key)
    subject.end(key)
    UPKEEP.finish()
    _go_on_until_well(subject)
    subject.begin()  # in flight at the end
    subject.journal.close()
    UPKEEP.finish()
    subject.done()


def _go_on_until_well(subject: Subject) -> None:
    give_up = time.monotonic() + 60
    while not subject.append() or subject.journal.failing:
        assert time.monotonic() < give_up, "the journal did not get well again"
        time.sleep(0.02)
        UPKEEP.finish()


def end_only(job: Job, pipe: int) -> None:
    """Exchanges that have ended while nothing was synced, and so no live file removed."""
    UPKEEP._working.acquire()  # the upkeep thread waits for its turn, for ever
    subject = Subject(job, pipe)
    for _ in range(job.count):
        subject.exchange()
    subject.done()
    time.sleep(60)


def close(job: Job, pipe: int) -> None:
    """A log that is closed while its sync is under way, if that takes long."""
    subject = Subject(job, pipe)
    subject.append()
    time.sleep(job.pause_seconds)
    subject.journal.close()
    subject.done()
    time.sleep(60)


def many_logs(job: Job, pipe: int) -> None:
    """More logs than files can be open, each with an exchange in flight all the while."""
    subjects = [Subject(job, pipe, f"log{number}") for number in range(job.logs)]
    ids = [subject.begin() for subject in subjects]
    for _ in range(job.count):
        for subject, key in zip(subjects, ids, strict=True):
            subject.append()
            subject.add(key)
    for subject, key in zip(subjects, ids, strict=True):
        subject.end(key)
    UPKEEP.finish()
    for subject in subjects:
        subject.done()


def fork(job: Job, pipe: int) -> None:
    """A child with the log open that does nothing with it."""
    subject = Subject(job, pipe)
    subject.append()
    time.sleep(job.pause_seconds)
    if os.fork() == 0:
        subject.say(Ack(op="child", number=os.getpid()))
        time.sleep(60)
        os._exit(0)
    subject.append()
    time.sleep(60)


def fork_while_appending(job: Job, pipe: int) -> None:
    """Threads append to one log while the process forks; each child appends once, at once."""
    subjects = [Subject(msgspec.structs.replace(job, seed=f"{job.seed}t{number}"), pipe) for number in range(4)]
    for subject in subjects[1:]:
        subject.journal = subjects[0].journal
    stop = threading.Event()

    def append() -> None:
        subject = subjects.pop()
        while not stop.is_set():
            subject.append()
            time.sleep(job.pause_seconds)

    threads = [threading.Thread(target=append) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(job.count):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a deadlock ends the child, and so the test
            only = Subject(msgspec.structs.replace(job, seed=f"{job.seed}c{number}"), pipe)
            only.journal = subjects[0].journal
            only.exchange()
            os._exit(0 if only.append() else 3)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"child {number} ended with {status}"
    stop.set()
    for thread in threads:
        thread.join()
    subjects[0].done()


def sync_twice(job: Job, pipe: int) -> None:
    """Records, a sync, records, a sync; and no other."""
    UPKEEP._working.acquire()
    subject = Subject(job, pipe)
    for _ in range(2):
        for _ in range(job.count):
            subject.append()
        subject.journal.upkeep()
    subject.journal.close()
    subject.done()


def append_during_sync(job: Job, pipe: int) -> None:
    """Records while the upkeep thread is within a sync, which somebody makes slow and fail."""
    subject = Subject(job, pipe)
    subject.append()
    for _ in range(40):
        subject.append()
        time.sleep(0.02)
    subject.journal.close()
    subject.done()


def short_writes(job: Job, pipe: int) -> None:
    """The system takes less of a line than it was given, then nothing; after a while all again.

    A limit on the size of files does this for real. (strace can only claim that a write was short.)
    """
    subject = Subject(job, pipe)
    subject.append()
    key = subject.begin()
    _limit_file_size(10_000)
    for _ in range(job.count):
        subject.append()
        subject.add(key)
    _limit_file_size(resource.RLIM_INFINITY)
    _go_on_until_well(subject)
    subject.end(key)
    subject.journal.close()
    UPKEEP.finish()
    subject.done()


def _limit_file_size(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill_disk(job: Job, pipe: int) -> None:
    subject = Subject(job, pipe)
    refused = 0
    for _ in range(job.count):
        subject.exchange()
        refused += not subject.append()
        if refused == 5:
            break
    assert refused == 5, "the disk is too large"
    os.unlink(job.ballast or "")
    _go_on_until_well(subject)
    for _ in range(10):
        subject.append()
    subject.journal.close()
    UPKEEP.finish()
    subject.done()


def interrupted(job: Job, pipe: int) -> None:
    """Ctrl-C at any moment, again and again; then a disk that fails once."""
    subject = Subject(job, pipe)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupts = 0
    for _ in range(job.count):
        try:
            signal.setitimer(signal.ITIMER_REAL, subject.random.uniform(0.0001, 0.0006))
            while True:
                subject.append()
        except KeyboardInterrupt:
            interrupts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    size = (Path(job.folder) / f"{subject.name}.jsonl").stat().st_size
    _limit_file_size(size + 50)
    subject.append()
    _limit_file_size(resource.RLIM_INFINITY)
    _go_on_until_well(subject)
    subject.exchange()
    subject.done()


def append_in_handler(job: Job, pipe: int) -> None:
    """Records from a signal handler, which may come while a record is being written."""
    subject, handler = (Subject(msgspec.structs.replace(job, seed=job.seed + who), pipe) for who in "mh")
    handler.journal = subject.journal

    def handle(*_: object) -> None:
        handler.append()
        signal.setitimer(signal.ITIMER_REAL, 0.0005)  # not before, or it would interrupt itself

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    for _ in range(job.count):
        subject.append()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    subject.done()


def exit_without_close(job: Job, pipe: int) -> None:
    """A record is lost, the disk is well again, and the process ends before the journal has tried."""
    subject = Subject(job, pipe)
    subject.append()
    _limit_file_size(100)
    subject.append()
    _limit_file_size(resource.RLIM_INFINITY)
    subject.done()


def timed(job: Job, pipe: int) -> None:
    """How long `append` takes, in microseconds: the hundredth slowest of a hundred."""
    subject = Subject(job, pipe)
    record = Resume(session_id="s", ts=CLOCK.now(), resumed_from=subject.text())
    taken = []
    for _ in range(job.count):
        began = time.perf_counter()
        subject.journal.append(record)
        taken.append(time.perf_counter() - began)
        time.sleep(job.pause_seconds)
    subject.say(Ack(op="done", number=int(sorted(taken)[len(taken) * 99 // 100] * 1e6)))


def synced(job: Job, pipe: int) -> None:
    """A little of everything, and now and then a sync, which says when it begins and when it is done."""
    bodies.SPILL_BYTES = 4_000  # so that some exchanges have a file of their own
    subject = Subject(job, pipe)
    for number in range(job.count):
        subject.append()
        subject.exchange()
        key = subject.begin()
        for _ in range(4):
            subject.add(key)
            if subject.random.random() < 0.5:
                subject.append()
            if subject.random.random() < 0.3:
                _sync(subject, number)
        subject.end(key)
        _sync(subject, number)
    subject.begin()
    _sync(subject, job.count)
    subject.done()


def _sync(subject: Subject, number: int) -> None:
    subject.say(Ack(op="syncing", number=number))
    UPKEEP.finish()
    subject.say(Ack(op="synced", number=number))


def seal_all(job: Job, pipe: int) -> None:
    """Seal what can be sealed; a disk that fails is said, anything else is an error of ours."""
    sealed.FRAME_BYTES = 4_000
    say = partial(os.write, pipe)
    try:
        for done in seal_due(Path(job.folder), 0):
            say(msgspec.json.encode(Ack(op="sealed", id=done.part.path.name)) + b"\n")
    except (OSError, SourceError) as error:
        say(msgspec.json.encode(Ack(op="refused", what="seal", id=str(error))) + b"\n")
    UPKEEP.finish()
    say(msgspec.json.encode(Ack(op="done")) + b"\n")


# ---------------------------------------------------------------- the storage of sessions


class Keeper:
    """Appends messages to a session below the folder, and acknowledges. Long ones are results of tools."""

    def __init__(self, job: Job, pipe: int) -> None:
        folder = Path(job.folder)
        self.storage = Transcripts(folder, folder, part_bytes=job.part_bytes)
        self._subject = Subject(job, pipe, "none")  # for its texts and its pipe; it writes to no log
        self.say = self._subject.say

    def append(self, size: int | None = None) -> bool:
        key, text = self._subject.next_id(), self._subject.text()
        text = (text * (size // len(text) + 1))[:size] if size else text
        block = {"type": "tool_result", "tool_use_id": key, "content": text}
        message = {"type": "user", "uuid": key, "message": {"role": "user", "content": [block]}}
        done = self.storage.append("s", message)
        return self._subject.acknowledge(done, Ack(op="append", id=key, digest=digest(text)))

    def prompt(self) -> bool:
        key, text = self._subject.next_id(), self._subject.text()
        message = {"type": "user", "uuid": key, "message": {"role": "user", "content": text}}
        done = self.storage.append("s", message)
        return self._subject.acknowledge(done, Ack(op="append", id=key, digest=digest(text)))

    def go_on_until_well(self) -> None:
        give_up = time.monotonic() + 60
        while not self.append():
            assert time.monotonic() < give_up, "the storage did not get well again"
            time.sleep(0.02)
            UPKEEP.finish()

    def list(self) -> None:
        with suppress(OSError):  # to read may fail where to append may not
            self.storage.list()

    def done(self) -> None:
        self.storage.close()
        UPKEEP.finish()
        self.say(Ack(op="done", lost=self.storage.lost))


def keep(job: Job, pipe: int) -> None:
    keeper = Keeper(job, pipe)
    keeper.say(Ack(op="opening"))
    for number in range(job.count):
        keeper.prompt() if number % 5 == 0 else keeper.append()
        if job.close_each and number % 7 == 0:
            keeper.storage.close()
    keeper.done()


def keep_scenario(job: Job, pipe: int) -> None:
    """A little of everything; then on, until the disk is well again."""
    keeper = Keeper(job, pipe)
    keeper.prompt()
    keeper.append(size=40_000)
    keeper.list()
    UPKEEP.finish()
    for _ in range(6):
        keeper.append()
    keeper.storage.close()
    keeper.append(size=31_000)
    keeper.list()
    UPKEEP.finish()
    keeper.go_on_until_well()
    keeper.done()


def keep_on_full_disk(job: Job, pipe: int) -> None:
    keeper = Keeper(job, pipe)
    refused = 0
    for _ in range(job.count):
        refused += not keeper.append()
        if refused == 5:
            break
    assert refused == 5, "the disk is too large"
    keeper.list()
    os.unlink(job.ballast or "")
    keeper.go_on_until_well()
    for _ in range(10):
        keeper.append()
    keeper.done()


WORK: Mapping[Work, Callable[[Job, int], None]] = {
    "mixed": mixed,
    "scenario": scenario,
    "end_only": end_only,
    "close": close,
    "many_logs": many_logs,
    "fork": fork,
    "fork_while_appending": fork_while_appending,
    "sync_twice": sync_twice,
    "append_during_sync": append_during_sync,
    "short_writes": short_writes,
    "fill_disk": fill_disk,
    "interrupted": interrupted,
    "append_in_handler": append_in_handler,
    "exit_without_close": exit_without_close,
    "timed": timed,
    "synced": synced,
    "seal": seal_all,
    "keep": keep,
    "keep_scenario": keep_scenario,
    "keep_on_full_disk": keep_on_full_disk,
}


def run(job: Job, pipe: int) -> None:
    if job.stopped:
        ctypes.CDLL(None).prctl(_ALLOW_TRACE, ctypes.c_ulong(-1), 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
    if job.descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (job.descriptors, job.descriptors))
    WORK[job.work](job, pipe)


# ---------------------------------------------------------------- the process that forks


class Wait(msgspec.Struct, frozen=True):
    pid: int


def serve(control: socket.socket) -> None:
    children: set[int] = set()
    for _ in range(MAX_JOBS):
        message, fds, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            break
        if fds:
            pid = _start(control, msgspec.json.decode(message, type=Job), fds[0])
            children.add(pid)
            control.send(b"%d" % pid)
        else:
            wait = msgspec.json.decode(message, type=Wait)
            children.discard(wait.pid)
            control.send(b"%d" % _end_of(wait.pid))
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _end_of(pid: int) -> int:
    """Its status. A job that hangs is killed, so that the next test can have its own."""
    give_up = time.monotonic() + MOST_SECONDS
    while time.monotonic() < give_up:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _start(control: socket.socket, job: Job, pipe: int) -> int:
    pid = os.fork()
    if pid == 0:
        control.close()
        faulthandler.dump_traceback_later(MOST_SECONDS - 10)  # where it hangs, before it is killed
        status = 1
        try:
            run(job, pipe)
            status = 0
        except BaseException as error:  # the top of this process
            sys.excepthook(type(error), error, error.__traceback__)
        os._exit(status)
    os.close(pipe)
    if job.stopped:
        os.waitpid(pid, os.WUNTRACED)
    return pid


# ---------------------------------------------------------------- in the test


class Writer:
    """A running job, and what it has acknowledged so far."""

    def __init__(self, pid: int, pipe: int, wait: Callable[[int], int]) -> None:
        self.pid, self._pipe, self._wait = pid, pipe, wait
        self.acks: list[Ack] = []
        self.status: int | None = None
        self._first = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        rest = b""
        with open(self._pipe, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                self.acks += [msgspec.json.decode(line, type=Ack) for line in lines]
                self._first.set()
        self._first.set()

    def wait_for_first_ack(self) -> None:
        assert self._first.wait(60), "nothing was acknowledged"

    def wait_for(self, op: str) -> Ack:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            if found := next((ack for ack in self.acks if ack.op == op), None):
                return found
            time.sleep(0.001)
        raise AssertionError(f"no {op} was acknowledged")

    def kill(self) -> None:
        """Gone when this returns, and all it acknowledged is in `acks`."""
        os.kill(self.pid, signal.SIGKILL)
        self.finish()

    def kill_alone(self) -> None:
        """Gone when this returns; its children, who may hold its pipe, are not."""
        os.kill(self.pid, signal.SIGKILL)
        self.status = self._wait(self.pid)

    def finish(self) -> int:
        """Wait for its end; returns the status as `os.waitpid` does."""
        if self.status is None:
            self.status = self._wait(self.pid)
        self._reader.join(60)
        return self.status

    def join(self) -> None:
        """Wait for its end, which must be a good one."""
        assert self.finish() == 0, "the writer failed; its traceback is in the captured stderr"


class Writers:
    """Starts jobs; kills what is left of them at its end."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._control = ours
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
            )

    def start(self, job: Job) -> Writer:
        ours, theirs = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 1 << 20)
        with self._lock:
            socket.send_fds(self._control, [msgspec.json.encode(job)], [theirs])
            os.close(theirs)
            pid = int(self._control.recv(64))
        return Writer(pid, ours, self._wait)

    def _wait(self, pid: int) -> int:
        with self._lock:
            self._control.send(msgspec.json.encode(Wait(pid)))
            return int(self._control.recv(64))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.wait(10)


@contextmanager
def in_own_process(job: Job, *before: str) -> Iterator[Writer]:
    """A job in an interpreter of its own, started by the command `before`."""
    ours, theirs = os.pipe()
    argv = [*before, sys.executable, "-P", __file__, msgspec.json.encode(job).decode(), str(theirs)]
    process = subprocess.Popen(argv, pass_fds=[theirs], env={**os.environ, "PYTHONPATH": str(SOURCE)})
    os.close(theirs)
    writer = Writer(process.pid, ours, lambda _: process.wait(60))
    try:
        yield writer
    finally:
        if process.poll() is None:
            process.kill()
            writer.finish()


if __name__ == "__main__":
    match sys.argv[1:]:
        case [control]:
            serve(socket.socket(fileno=int(control)))
        case [job, pipe]:
            run(msgspec.json.decode(job, type=Job), int(pipe))
