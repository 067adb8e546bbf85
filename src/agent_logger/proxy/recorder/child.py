"""The recorder's process: it reads the spool until it is asked to finish, and reports its status.

Its input is a pipe from the proxy, over which credentials come. When the pipe ends, because the proxy closed it or
died, the recorder takes what is on the spool, makes a last checkpoint and ends.
"""

import gc
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from agent_logger import platform
from agent_logger.clock import CLOCK
from agent_logger.errors import SourceError
from agent_logger.home import layout
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal_due
from agent_logger.proxy.call_lines import Show
from agent_logger.proxy.recorder import checkpoint
from agent_logger.proxy.recorder.checkpoint import CheckpointPosition, Checkpoints, Steps, Unsure
from agent_logger.proxy.recorder.filing import Filing
from agent_logger.proxy.recorder.logs import Logs, inner_folders
from agent_logger.proxy.recorder.pipe import POLL_SECONDS, Pipe
from agent_logger.proxy.recorder.recorded_call import RecorderContext
from agent_logger.proxy.recorder.recording import CallRecording
from agent_logger.proxy.spool.segments import Spools, segments_of
from agent_logger.proxy.spool.spool import spool_folder

SCAN_SECONDS = 0.25
CHECKPOINT_SECONDS = 1.0
STATUS_SECONDS = 1.0
SEAL_FIRST_SECONDS, SEAL_SECONDS = 60.0, 3600.0
GIVE_UP_SECONDS = 10.0  # with a disk that fails, once asked to finish
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.01, 0.5

log = logging.getLogger("agent_logger.proxy")


class RecorderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `recorder.json`, rewritten every second."""

    pid: int
    ts: str
    calls: int  # ended, since this process began
    open: int
    written: int  # records
    lost: int  # frames that relays had to drop, and calls that could not be made records of
    lag_ms: float  # the age of the oldest frame that was not taken, at its highest within the last second
    backlog_bytes: int
    degraded_since: str | None = None
    problem: str | None = None
    checkpoints: int = 0
    sessions: int = 0  # that had a call, since this process began
    agents: dict[str, int] = msgspec.field(default_factory=dict)  # how many of them are whose


_Work = Literal["write", "checkpoint"]


class _Trouble(NamedTuple):
    problem: str
    since: str


class _GaveUpError(BaseException):
    """The disk still fails when the recorder is asked to finish. What is on the spool stays there.

    This is no fault of a call, so code that gives up a call for an `Exception` must not catch it.
    """


class _MovedError(BaseException):
    """The folder that we began in does not exist any more."""


class RecorderChild:
    def __init__(
        self,
        log_dir: Path,
        home: Path,
        *,
        pipe: int = 0,
        patterns: bool = True,
        seal_after_seconds: float | None = 86_400.0,
        steps: Steps | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        show: Show | None = None,
    ) -> None:
        self.log_dir, self.home = log_dir, home
        self.folder = spool_folder(log_dir)
        self.pipe = Pipe(pipe)
        self._patterns, self._seal_after, self._steps = patterns, seal_after_seconds, steps or _no_step
        self._checkpoint_seconds, self._show = checkpoint_seconds, show
        self._checkpoints_taken = 0
        self._troubles: dict[_Work, _Trouble] = {}  # each stays until the same work is done
        self._lag_ns = 0
        now = time.monotonic()
        self._status_at, self._scan_at = now, now
        self._checkpoint_at, self._seal_at = now + checkpoint_seconds, now + SEAL_FIRST_SECONDS
        self._sealing: threading.Thread | None = None
        self._give_up_at: float | None = None
        self._state: object = None  # at the last checkpoint
        self._told_to_finish = False

    def run(self) -> int:
        platform.make_folder(self.folder, self.log_dir)
        held = self._lock()
        if held is None:
            return 0
        self._held = held
        try:
            self._begin()
            self._work()
            self._finish()
        except _GaveUpError:
            return 1
        except (_MovedError, OSError):
            if self._is_at_home():
                raise
            log.warning("%s was removed or moved away; it is begun anew", self.log_dir)
            return 1
        finally:
            held.close()
        return 0

    def _lock(self) -> platform.Held | None:
        """Wait for the lock, because the recorder of an earlier proxy may still be at work. `None` if we are not needed
        any more."""
        path = self.folder / "recorder.lock"
        try:
            held = platform.open_file(path, create=True, top=self.log_dir)
        except FileExistsError:
            held = platform.open_file(path, top=self.log_dir)
        while not platform.lock(held):
            self.pipe.drain()
            if self.pipe.ended:
                held.close()
                return None
            self.pipe.wait(POLL_SECONDS)
        return held

    def _begin(self) -> None:
        position, unsure, is_cut = self._position()
        checkpoint.clean(self.folder, position)
        self._steps("cleaned")
        self.logs = Logs(self.log_dir, self.folder, self._insist)
        key = layout.install_key(self.home)
        # After a power cut the table may know of calls that are in no log.
        self.filing = Filing(self.logs, key, anew=is_cut and bool(segments_of(self.folder)))
        recovered = self.logs.recover(self.filing.learn, unsure)
        self._steps("recovered")
        bench = RecorderContext(key, self.folder, self)
        self.recording = CallRecording(
            self.logs,
            self.filing,
            bench,
            self.pipe.values,
            self.pipe.take_lasting,
            patterns=self._patterns,
            show=self._show,
        )
        self.recording.resume(position, recovered)
        self._checkpoints = Checkpoints(self.folder, position, self._steps, self.recording.ended)
        self.spools = Spools(self.folder, position.starts(self.folder))
        gc.freeze()  # what is there now stays; calls are freed without the collector
        gc.set_threshold(50_000, 20, 50)
        register_log_folder(self.home, self.log_dir)

    def _position(self) -> tuple[CheckpointPosition, Unsure | None, bool]:
        """The position, the records that the logs may hold beyond it, and whether there may have been a power cut."""
        self._boot = checkpoint.boot_id()
        try:
            position = checkpoint.load(self.folder)
        except msgspec.MsgspecError as error:
            log.warning("position.json is damaged (%s): the logs tell what is in them", error)
            return checkpoint.without(self.folder), checkpoint.unsure(self.folder, None), True
        if checkpoint.is_lost(self.folder, position):
            return checkpoint.without(self.folder), checkpoint.unsure(self.folder, None), True
        is_cut = bool(position.wall) and position.boot != self._boot
        return position, checkpoint.unsure(self.folder, position), is_cut

    def _work(self) -> None:
        while True:
            self.pipe.drain()
            took = self._batch()
            self._chores()
            if not took:
                if self.pipe.ended and self._is_done():
                    return
                self.pipe.wait(POLL_SECONDS)

    def _batch(self) -> bool:
        took = False
        take = self.recording.take
        reads = self.spools.batch(time.monotonic_ns())
        self._stay()  # behind the reading: what comes from a new folder is for the recorder that begins in it
        for read in reads:
            if not took:
                self._lag_ns = max(self._lag_ns, time.monotonic_ns() - read.ns)
                took = True
            try:
                take(read)
            except Exception:  # of one call: the others are to be recorded all the same
                log.exception("call %s of relay %s is lost", read.frames[0].call, read.relay.relay)
                self.recording.give_up(read.relay, read.frames[0].call, read.number)
            if time.monotonic() >= self._status_at:  # a batch may take long: what is compressed can be much
                self._say()
        for follower in self.spools.followers.values():
            if follower.exhausted:
                self.recording.relay_died(follower)
        self.logs.flush()
        self.filing.commit(time.monotonic())
        return took

    def _is_done(self) -> bool:
        """Whether nothing more will come; asked when nothing was taken. Relays that still run may continue without
        us."""
        self._scan()  # a relay that had more to say at the last look may be gone since
        if not self._told_to_finish:
            self._told_to_finish = True
            return False
        return not any(
            follower.is_waiting or (follower.gone and not follower.exhausted)
            for follower in self.spools.followers.values()
        )

    # ------------------------------------------------------------ what is due now and then

    def _chores(self) -> None:
        now = time.monotonic()
        if now >= self._scan_at:
            self._scan()
        if self._checkpoints.running:
            self._end_checkpoint()
        elif now >= self._checkpoint_at:
            self._begin_checkpoint()
        if now >= self._status_at:
            self._each_second()
        if now >= self._seal_at and not (self._sealing and self._sealing.is_alive()):
            self._seal_at = now + SEAL_SECONDS
            self._sealing = threading.Thread(target=self._seal, name="agent-logger-seal", daemon=True)
            self._sealing.start()

    def _each_second(self) -> None:
        self._stay()
        self._say()

    def _stay(self) -> None:
        if not self._is_at_home():
            raise _MovedError

    def _is_at_home(self) -> bool:
        """Whether our folder is still in its place: nobody reads what is appended in a folder that was removed or moved
        away."""
        return platform.is_same_file(self._held)

    def _scan(self) -> None:
        self._scan_at = time.monotonic() + SCAN_SECONDS
        self.spools.scan()
        for follower in self.spools.followers.values():
            if not follower.is_waiting:
                follower.look()

    def _begin_checkpoint(self) -> None:
        self._checkpoint_at = time.monotonic() + self._checkpoint_seconds
        state = (
            self.logs.written,
            [(follower.segment, follower.exhausted) for follower in self.spools.followers.values()],
        )
        followers = self.spools.followers
        needs = [
            (relay, call, open_call.retained) for (relay, call), open_call in self.recording.open.items()
        ]
        if state == self._state and not self._checkpoints.is_stale(followers, needs):
            return
        if self.recording.is_replaying(followers):
            return
        if not self.filing.commit(time.monotonic(), at_once=True):
            return  # the next one will; until then the tails tell what it lacks
        self._state = state
        picture = msgspec.structs.replace(self.recording.picture(), boot=self._boot, wall=time.time())
        self.logs.begin_checkpoint()
        self._checkpoints.begin(picture, followers, needs)

    def _end_checkpoint(self, *, wait: bool = False) -> bool:
        if not self._checkpoints.done(wait=wait):
            if not self._checkpoints.running:
                self._degrade("checkpoint", self._checkpoints.failed or "")
                self._state = None
            return False
        self._checkpoints_taken += 1
        relays = self._checkpoints.position.relays
        for (relay, _), open_call in self.recording.open.items():
            if relay in relays and open_call.retained.first_segment < relays[relay].segment:
                open_call.retained.first_segment = 0
        for relay, at in relays.items():
            if at.finished and relay in self.spools.followers:
                self.spools.forget(relay)
                self.recording.forget(relay)
        try:
            self.logs.end_checkpoint()
        except OSError as error:  # what it knows too much costs time after a crash, and nothing else
            self._degrade("checkpoint", str(error))
            self._state = None
        else:
            self._troubles.pop("checkpoint", None)
        self._steps("touched forgotten")
        return True

    def _finish(self) -> None:
        if self._checkpoints.running:
            self._end_checkpoint(wait=True)
        give_up_at = time.monotonic() + GIVE_UP_SECONDS
        while not self.filing.commit(time.monotonic(), at_once=True) and time.monotonic() < give_up_at:
            time.sleep(
                POLL_SECONDS
            )  # somebody reads sessions.db; without it the spool stays for the next start
        for _ in range(2):  # the second one forgets relays that the first one finished
            self._state = None
            self._begin_checkpoint()
            if self._checkpoints.running and not self._end_checkpoint(wait=True):
                raise _GaveUpError
        self.logs.close()
        self.filing.close()
        self._say()

    def _seal(self) -> None:
        for folder in [self.log_dir, *inner_folders(self.log_dir)]:
            try:
                for _ in seal_due(folder, self._seal_after):
                    pass
            except (OSError, SourceError) as error:
                log.warning("%s: cannot seal: %s", folder, error)

    # ------------------------------------------------------------ a failing disk

    def _insist(self, work: Callable[[], bool]) -> None:
        if work():
            return
        delay = FIRST_RETRY_SECONDS
        self._degrade("write", "")
        while not work():
            self._degrade("write", self.logs.failing() or "")
            self.pipe.drain()
            now = time.monotonic()
            if now >= self._status_at:
                self._each_second()
            if self.pipe.ended:
                self._give_up_at = self._give_up_at or now + GIVE_UP_SECONDS
                if now > self._give_up_at:
                    raise _GaveUpError
            time.sleep(delay)
            delay = min(2 * delay, LAST_RETRY_SECONDS)
        self._troubles.pop("write", None)

    def create(self, path: Path) -> platform.Held:
        """Create a file for a large body."""
        created: list[platform.Held] = []

        def create() -> bool:
            try:
                path.unlink(missing_ok=True)
                created.append(platform.open_file(path, create=True, top=self.log_dir))
            except OSError as error:
                self._degrade("write", str(error))
                return False
            return True

        self._insist(create)
        return created[0]

    def write(self, held: platform.Held, data: bytes) -> None:
        left = memoryview(data)

        def write() -> bool:
            nonlocal left
            try:
                while left:
                    left = left[os.write(held.fd, left) :]
            except OSError as error:
                self._degrade("write", str(error))
                return False
            return True

        self._insist(write)

    def _degrade(self, work: _Work, problem: str) -> None:
        trouble = self._troubles.get(work)
        self._troubles[work] = _Trouble(
            problem or (trouble.problem if trouble else ""), trouble.since if trouble else CLOCK.now()
        )

    def _say(self) -> None:
        self._status_at = time.monotonic() + STATUS_SECONDS
        now = time.monotonic_ns()
        followers = self.spools.followers.values()
        oldest = min(
            (
                follower.oldest_ns
                for follower in followers
                if follower.oldest_ns is not None and not follower.gone
            ),
            default=now,
        )
        counts = self.recording.counts
        status = RecorderStatus(
            pid=os.getpid(),
            ts=CLOCK.now(),
            calls=counts.calls,
            open=len(counts.open),
            written=self.logs.written,
            lost=counts.dropped_frames + counts.failed,
            lag_ms=round(max(self._lag_ns, now - oldest) / 1e6, 1),
            backlog_bytes=sum(follower.backlog_bytes() for follower in followers),
            degraded_since=min((trouble.since for trouble in self._troubles.values()), default=None),
            problem=next(
                (trouble.problem or "the disk takes nothing" for trouble in self._troubles.values()), None
            ),
            checkpoints=self._checkpoints_taken,
            sessions=len(self.filing.agents_by_session),
            agents=self.filing.agents(),
        )
        self._lag_ns = 0
        with suppress(OSError):  # a disk that takes nothing: the age of the old one says so
            path = self.folder / "recorder.json"
            platform.replace_file(path, msgspec.json.encode(status), top=self.log_dir)


def _no_step(step: str) -> None: ...
