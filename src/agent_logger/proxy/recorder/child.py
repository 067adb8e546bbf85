"""The recorder's process: it reads the spool until it is asked to finish, and reports its status.

Its input is a pipe from the proxy, over which credentials come. When the pipe ends, because the proxy closed it or
died, the recorder takes what is on the spool, makes a last checkpoint and ends.
"""

import gc
import logging
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.clock import CLOCK
from agent_logger.home import layout
from agent_logger.home.facts import register_log_folder
from agent_logger.home.machine import note_machine
from agent_logger.proxy.call_lines import CallLines
from agent_logger.proxy.recorder import checkpoint
from agent_logger.proxy.recorder.calls.recorded_body import RecorderContext
from agent_logger.proxy.recorder.checkpoint import CheckpointPosition, Steps, UncertainRecords
from agent_logger.proxy.recorder.checkpoint_schedule import CHECKPOINT_SECONDS, CheckpointSchedule
from agent_logger.proxy.recorder.disk import GIVE_UP_SECONDS, GaveUpError, PatientDisk, Troubles
from agent_logger.proxy.recorder.filing import Filing
from agent_logger.proxy.recorder.logs import Logs
from agent_logger.proxy.recorder.pipe import POLL_SECONDS, Pipe
from agent_logger.proxy.recorder.recording import CallRecording
from agent_logger.proxy.recorder.sealing import Sealing
from agent_logger.proxy.recorder.status import FILE_NAME, RecorderStatus
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.segments import Spools, segments_of

SCAN_SECONDS = 0.25
STATUS_SECONDS = 1.0
FREED_BYTES = 16 << 20  # freed memory that is kept for later

log = logging.getLogger("agent_logger.proxy")


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
        steps: Steps = lambda _: None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        lines: CallLines | None = None,
    ) -> None:
        self.log_dir, self.home = log_dir, home
        self.folder = spool_folder(log_dir)
        self.pipe = Pipe(pipe)
        self._patterns, self._lines = patterns, lines
        self._steps, self._checkpoint_seconds = steps, checkpoint_seconds
        self._troubles = Troubles()
        self._disk = PatientDisk(log_dir, self.pipe, self._troubles, self._while_disk_fails)
        self._sealing = Sealing(log_dir, seal_after_seconds)
        self._lag_ns = 0
        self._status_at = self._scan_at = time.monotonic()
        self._has_scanned_last = False

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
        except GaveUpError:
            return 1
        except (_MovedError, OSError):
            if self._is_at_home():
                raise
            log.warning("%s was removed or moved; a new one is started", self.log_dir)
            return 1
        finally:
            held.close()
        return 0

    def _lock(self) -> platform.Held | None:
        """Wait for the lock, because the recorder of an earlier proxy may still be at work. `None` if we are not needed
        any more."""
        held = platform.open_or_create(self.folder / "recorder.lock", self.log_dir)
        while not platform.lock(held):
            self.pipe.drain()
            if self.pipe.ended:
                held.close()
                return None
            self.pipe.wait(POLL_SECONDS)
        return held

    def _begin(self) -> None:
        boot = checkpoint.boot_id()
        position, unsure, is_cut = self._position(boot)
        checkpoint.clean(self.folder, position)
        self._steps("cleaned")
        self.logs = Logs(self.log_dir, self.folder, self._disk.insist)
        key = layout.install_key(self.home)
        # After a power cut the table may have calls that are in no log.
        self.filing = Filing(self.logs, key, rebuild=is_cut and bool(segments_of(self.folder)))
        recovered = self.logs.recover(self.filing.learn, unsure)
        self._steps("recovered")
        context = RecorderContext(key, self.folder, self._disk)
        self.recording = CallRecording(
            self.logs,
            self.filing,
            context,
            self.pipe.values,
            self.pipe.take_lasting,
            patterns=self._patterns,
            show=self._lines.add if self._lines else None,
        )
        self.recording.resume(position, recovered)
        self.spools = Spools(self.folder, position.starts(self.folder))
        self.checkpoints = CheckpointSchedule(
            position,
            boot,
            self.logs,
            self.filing,
            self.recording,
            self.spools,
            self._troubles,
            seconds=self._checkpoint_seconds,
            steps=self._steps,
        )
        gc.freeze()  # objects that exist now stay; calls are freed without the collector
        gc.set_threshold(50_000, 20, 50)
        platform.keep_freed_memory(FREED_BYTES)  # fresh pages take longer to get than a body to copy
        note_machine(self.home)
        register_log_folder(self.home, self.log_dir)

    def _position(self, boot: str) -> tuple[CheckpointPosition, UncertainRecords | None, bool]:
        """The position, the records that the logs may hold beyond it, and whether there may have been a power cut."""
        try:
            position = checkpoint.load(self.folder)
            is_lost = checkpoint.is_lost(self.folder, position)
        except ValueError as error:
            log.warning("position.json is damaged (%s); the position is read from the logs instead", error)
            is_lost = True
        if is_lost:
            spool = checkpoint.position_of_spool(self.folder)
            return spool, checkpoint.uncertain_records(self.folder, None), True
        is_cut = bool(position.wall) and position.boot != boot
        return position, checkpoint.uncertain_records(self.folder, position), is_cut

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
        # This check comes after the read: entries of a new folder are for the recorder that starts in it.
        self._stay()
        for read in reads:
            if not took:
                self._lag_ns = max(self._lag_ns, time.monotonic_ns() - read.ns)
                took = True
            try:
                take(read)
            except Exception:  # the other calls must be recorded nevertheless
                log.exception("call %s of relay %s could not be recorded", read.frames[0].call, read.relay.relay)
                self.recording.give_up(read.relay, read.frames[0].call, read.number)
            if time.monotonic() >= self._status_at:  # a batch with compressed bodies may take long
                self._write_status()
        for follower in self.spools.followers.values():
            if follower.exhausted:
                self.recording.relay_died(follower)
        self.logs.flush()
        if self._lines:
            self._lines.flush()
        self.filing.commit(time.monotonic())
        return took

    def _is_done(self) -> bool:
        """Whether nothing more will come; asked when nothing was taken. Relays that still run may continue without
        us."""
        self._scan()  # a relay that was alive at the last scan may be gone
        if not self._has_scanned_last:
            self._has_scanned_last = True
            return False
        return not any(
            follower.is_waiting or (follower.gone and not follower.exhausted)
            for follower in self.spools.followers.values()
        )

    # ------------------------------------------------------------ periodic work

    def _chores(self) -> None:
        now = time.monotonic()
        if now >= self._scan_at:
            self._scan()
        self.checkpoints.advance()
        if now >= self._status_at:
            self._each_second()
        self._sealing.start_if_due(self.logs.full_parts)

    def _each_second(self) -> None:
        self._stay()
        self._write_status()

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

    def _while_disk_fails(self) -> None:
        self._troubles.add("write", self.logs.failing() or "")
        if time.monotonic() >= self._status_at:
            self._each_second()

    def _finish(self) -> None:
        self.checkpoints.wait()
        give_up_at = time.monotonic() + GIVE_UP_SECONDS
        while not self.filing.commit(time.monotonic(), at_once=True) and time.monotonic() < give_up_at:
            # Somebody reads sessions.db; without it the spool stays for the next start.
            time.sleep(POLL_SECONDS)
        if not self.checkpoints.finish():
            raise GaveUpError
        self.logs.close()
        self.filing.close()
        self._sealing.finish(self.logs.full_parts)
        self._write_status()

    def _write_status(self) -> None:
        self._status_at = time.monotonic() + STATUS_SECONDS
        now = time.monotonic_ns()
        followers = self.spools.followers.values()
        oldest = min(
            (follower.oldest_ns for follower in followers if follower.oldest_ns is not None and not follower.gone),
            default=now,
        )
        counts = self.recording.counts
        status = RecorderStatus(
            pid=os.getpid(),
            ts=CLOCK.now(),
            calls=counts.calls,
            open=len(self.recording.open),
            written=self.logs.written,
            lost=counts.dropped_frames + counts.failed,
            lag_ms=round(max(self._lag_ns, now - oldest) / 1e6, 1),
            backlog_bytes=sum(follower.backlog_bytes() for follower in followers),
            degraded_since=self._troubles.since,
            problem=self._troubles.problem,
            checkpoints=self.checkpoints.taken,
            sessions=len(self.filing.agents_by_session),
            agents=self.filing.agents(),
            not_understood=self.recording.not_understood,
        )
        self._lag_ns = 0
        with suppress(OSError):  # if the disk fails, the age of the old file shows it
            path = self.folder / FILE_NAME
            platform.replace_file(path, msgspec.json.encode(status), top=self.log_dir)
