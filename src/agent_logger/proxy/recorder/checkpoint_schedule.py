"""When a checkpoint is taken, and what the recorder forgets after it."""

import time

import msgspec

from agent_logger.proxy.recorder.checkpoint import CheckpointPosition, Checkpoints, Steps
from agent_logger.proxy.recorder.disk import Troubles
from agent_logger.proxy.recorder.filing import Filing
from agent_logger.proxy.recorder.logs import Logs
from agent_logger.proxy.recorder.recording import CallRecording
from agent_logger.proxy.spool.segments import Spools

CHECKPOINT_SECONDS = 1.0


class CheckpointSchedule:
    def __init__(
        self,
        position: CheckpointPosition,
        boot: str,
        logs: Logs,
        filing: Filing,
        recording: CallRecording,
        spools: Spools,
        troubles: Troubles,
        *,
        seconds: float,
        steps: Steps,
    ) -> None:
        self._boot, self._seconds, self._steps = boot, seconds, steps
        self._logs, self._filing, self._recording, self._spools = logs, filing, recording, spools
        self._troubles = troubles
        self._checkpoints = Checkpoints(spools.folder, position, steps, recording.ended)
        self._due_at = time.monotonic() + seconds
        # The state at the last checkpoint; without a change, none is taken.
        self._state: object = None
        self.taken = 0

    @property
    def running(self) -> bool:
        return self._checkpoints.running

    def advance(self) -> None:
        """End the checkpoint that runs if it is done; begin the next one if it is due."""
        if self._checkpoints.running:
            self._end()
        elif time.monotonic() >= self._due_at:
            self._begin()

    def finish(self) -> bool:
        """Take the last checkpoints. `False` if one failed."""
        for _ in range(2):  # the second one forgets relays that the first one finished
            self._state = None
            self._begin()
            if self._checkpoints.running and not self._end(wait=True):
                return False
        return True

    def wait(self) -> None:
        """Wait for the checkpoint that runs."""
        if self._checkpoints.running:
            self._end(wait=True)

    def _begin(self) -> None:
        self._due_at = time.monotonic() + self._seconds
        followers = self._spools.followers
        state = self._logs.written, [(one.segment, one.exhausted) for one in followers.values()]
        needs = [(relay, call, open_call.retained) for (relay, call), open_call in self._recording.open.items()]
        if state == self._state and not self._checkpoints.is_stale(followers, needs):
            return
        if self._recording.is_replaying(followers):
            return
        if not self._filing.commit(time.monotonic(), at_once=True):
            return  # the next one will; until then the tails tell what it lacks
        self._state = state
        position = msgspec.structs.replace(self._recording.position(), boot=self._boot, wall=time.time())
        self._logs.begin_checkpoint()
        self._checkpoints.begin(position, followers, needs)

    def _end(self, *, wait: bool = False) -> bool:
        if not self._checkpoints.done(wait=wait):
            if not self._checkpoints.running:
                self._fail(self._checkpoints.failed or "")
            return False
        self.taken += 1
        self._forget(self._checkpoints.position)
        try:
            self._logs.end_checkpoint()
        except OSError as error:  # old lines in `touched.jsonl` only cost time after a crash
            self._fail(str(error))
        else:
            self._troubles.pop("checkpoint", None)
        self._steps("touched forgotten")
        return True

    def _fail(self, problem: str) -> None:
        self._troubles.add("checkpoint", problem)
        self._state = None

    def _forget(self, position: CheckpointPosition) -> None:
        """Forget what the checkpoint has removed from the spool."""
        for (relay, _), open_call in self._recording.open.items():
            at = position.relays.get(relay)
            if at and open_call.retained.first_segment < at.segment:
                open_call.retained.first_segment = 0
        for relay, at in position.relays.items():
            if at.finished and relay in self._spools.followers:
                self._spools.forget(relay)
                self._recording.forget(relay)
