"""A relay and a recorder as processes that can be killed at any moment.

Both are forked off a server that has imported everything: a fresh interpreter for each would be most of the time.
"""

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from agent_logger.proxy.recorder import checkpoint
from agent_logger.proxy.recorder.child import RecorderChild
from agent_logger.proxy.spool import segments
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.spooling import Script, frame_of

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.proxy.killing"])


def run_relay(log_dir: Path, script: Script, told: Connection, pause: float) -> None:
    """Spools the script, and says how many frames are on disk."""
    spool = Spool(spool_folder(log_dir), segment_bytes=1 << 18, segment_seconds=0.2)
    lanes: dict[int, int] = {}  # a call's connection: as many calls at once as there are connections
    busy: set[int] = set()
    for number, step in enumerate(script.steps()):
        if step.kind == "head":
            lanes[step.call] = min(set(range(script.connections)) - busy)
            busy.add(lanes[step.call])
        spool.put(frame_of(script, step, lanes[step.call]))
        if step.kind == "end":
            busy.discard(lanes.pop(step.call))
        if number % 16 == 0:
            time.sleep(pause)
            told.send(spool.status().entries)
    spool.close()
    told.send(spool.status().entries)


@dataclass(frozen=True)
class Fault:
    """Die after the `count`th time that a step was done."""

    step: str = ""
    count: int = 1
    checkpoint_seconds: float = 0.03
    held_bytes: int = segments.HELD_BYTES  # of frames that are taken at once


def run_recorder(log_dir: Path, home: Path, pipe: Connection, fault: Fault, carry: bool) -> None:
    if carry:
        checkpoint.CARRY_ABOVE, checkpoint.CARRY_SHARE, checkpoint.STALE_SECONDS = 0, 1, 0.0
    segments.HELD_BYTES = fault.held_bytes
    left = fault.count

    def step(name: str) -> None:
        nonlocal left
        left -= name == fault.step
        if name == fault.step and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    child = RecorderChild(log_dir, home, pipe=pipe.fileno(), steps=step, checkpoint_seconds=fault.checkpoint_seconds)
    os._exit(child.run())


@dataclass
class Stage:
    """What one test starts and kills."""

    log_dir: Path
    home: Path
    pause: float = 0.002
    frames: dict[str, int] = field(default_factory=dict)  # by script: known to have been on the spool
    _told: dict[str, Connection] = field(default_factory=dict)
    _running: list[BaseProcess] = field(default_factory=list)
    _pipes: dict[int, Connection] = field(default_factory=dict)

    def relay(self, script: Script) -> BaseProcess:
        ours, theirs = SERVER.Pipe(duplex=False)
        process = SERVER.Process(target=run_relay, args=(self.log_dir, script, theirs, self.pause))
        self._start(process)
        theirs.close()
        self._told[script.seed] = ours
        self.frames[script.seed] = 0
        return process

    def recorder(self, fault: Fault | None = None, *, carry: bool = False) -> BaseProcess:
        theirs, ours = SERVER.Pipe(duplex=False)
        args = (self.log_dir, self.home, theirs, fault or Fault(), carry)
        process = SERVER.Process(target=run_recorder, args=args)
        self._start(process)
        theirs.close()
        self._pipes[process.pid or 0] = ours
        return process

    def _start(self, process: BaseProcess) -> None:
        process.start()
        self._running.append(process)

    def kill(self, process: BaseProcess) -> None:
        self.listen()
        process.kill()
        process.join(30)
        self._pipes.pop(process.pid or 0, None)

    def listen(self) -> None:
        """What was on the spool by now."""
        for seed, told in self._told.items():
            with contextlib.suppress(EOFError, OSError):
                while told.poll():
                    self.frames[seed] = max(self.frames[seed], told.recv())

    def finish(self, process: BaseProcess) -> int | None:
        """Tell a recorder to take what there is."""
        self._pipes.pop(process.pid or 0).close()
        process.join(60)
        self.listen()
        return process.exitcode

    def close(self) -> None:
        for process in self._running:
            if process.is_alive():
                process.kill()
            process.join(30)
            process.close()
        for connection in [*self._told.values(), *self._pipes.values()]:
            connection.close()


@contextlib.contextmanager
def stage(folder: Path, *, pause: float = 0.002) -> Iterator[Stage]:
    it = Stage(folder / "logs", folder / "home", pause)
    spool_folder(it.log_dir).mkdir(parents=True)
    try:
        yield it
    finally:
        it.close()
