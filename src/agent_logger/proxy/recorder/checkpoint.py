"""The checkpoint: the position up to which the spool is in the logs, synced. After a crash only the rest is read again.

A checkpoint is taken in steps, and a crash after any of them loses nothing:

1. the logs are synced;
2. frames of open calls are carried to a file of their own, for the reasons in `_plan_relay`; a call that is too
   large for that lets its data go;
3. the position is written beside the old one, synced, and put in its place;
4. segments and carried files that no position names are removed;
5. `touched.jsonl` forgets what was touched before.

All but the last is done in a thread, on a copy of the recorder's state at one moment; recording continues.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger import platform
from agent_logger.journal.sync import UPKEEP
from agent_logger.proxy.spool.folder import lock_path, segment_path
from agent_logger.proxy.spool.segment_writer import DISK_BYTES, DISK_SHARE
from agent_logger.proxy.spool.segments import SegmentStart, SpoolFollower, carry, oldest_entries, segments_of

CARRY_ABOVE = 64 << 20  # bytes of segments that may stay because of open calls
CARRY_SHARE = 4  # and this many times the bytes that the open calls need
STALE_SECONDS = 3.0  # how long frames of ended calls may stay because of open calls
# Carrying many bytes takes time, so the frames may stay longer: a second for this many bytes of open calls.
CARRIED_PER_SECOND = 4 << 20
CLOCK_SECONDS = 60.0  # by how much the clocks of a file system and of a process may differ
ROOM_SHARE = 4  # open calls may need a quarter of the spool, and hold on to half of it

log = logging.getLogger("agent_logger.proxy")
Steps = Callable[[str], None]  # called after each step, for tests


class OpenCallPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that has not ended, and which of its records are in the logs."""

    relay: str
    call: int
    records: int = 0
    seq: int | None = None
    last_seq: int | None = None  # the number of the last message, on a WebSocket
    log: tuple[str, str] | None = None
    last_log: tuple[str, str] | None = None


class RelayPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    segment: int  # the first segment that is needed
    number: int  # the number of the next entry
    carried: str | None = None
    finished: bool = False  # the relay is gone, and nothing of it is needed


class CheckpointPosition(msgspec.Struct, frozen=True, kw_only=True):
    v: int = 1
    boot: str = ""
    wall: float = 0.0
    relays: dict[str, RelayPosition] = msgspec.field(default_factory=dict)
    open: list[OpenCallPosition] = msgspec.field(default_factory=list)
    numbers: list[tuple[str, str, int]] = msgspec.field(default_factory=list)  # folder, name, last call

    def starts(self, folder: Path) -> dict[str, SegmentStart]:
        return {
            relay: SegmentStart(
                segment=at.segment,
                number=at.number,
                calls=frozenset(call.call for call in self.open if call.relay == relay),
                carried=folder / at.carried if at.carried else None,
            )
            for relay, at in self.relays.items()
            if not at.finished
        }


def boot_id() -> str:
    """An id that changes with each start of the machine; empty where the system does not provide one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def load(folder: Path) -> CheckpointPosition:
    """Load the position; an empty one if there is none. Raises `ValueError` if it is damaged."""
    try:
        return msgspec.json.decode((folder / "position.json").read_bytes(), type=CheckpointPosition)
    except FileNotFoundError:
        return CheckpointPosition()


def is_lost(folder: Path, position: CheckpointPosition) -> bool:
    """Whether a position is missing: the spool has been read before, or may have been."""
    return not position.wall and bool(oldest_entries(folder))


class UncertainRecords(NamedTuple):
    """Which records may be in the logs though no position says so."""

    # By relay: records of this entry of the spool and of later ones. A relay that is not here has no such records.
    entries: dict[str, int]
    # The records are in files that were written to since then; 0: in any file.
    since: float


def uncertain_records(folder: Path, position: CheckpointPosition | None) -> UncertainRecords | None:
    """The records that a recorder may have written after the last checkpoint; `None` if it had nothing to write.

    `position`: `None` if it is lost.
    """
    oldest = oldest_entries(folder)
    if not oldest:
        return None
    entries = {relay: entry.number for relay, entry in oldest.items()}
    since = min(entry.wall for entry in oldest.values())
    if position and position.wall:
        entries |= {relay: at.number for relay, at in position.relays.items()}
        since = position.wall
    return UncertainRecords(entries, since - CLOCK_SECONDS)


def position_of_spool(folder: Path) -> CheckpointPosition:
    """A position in place of a damaged one: the whole spool is to be read."""
    # The oldest one: what a newer one holds beyond that is in the segments, which are removed after it is named.
    carried = {path.name.partition(".")[0]: path.name for path in sorted(folder.glob("*.carried"), reverse=True)}
    return CheckpointPosition(
        relays={
            relay: RelayPosition(numbers[0], 1, carried.get(relay)) for relay, numbers in segments_of(folder).items()
        }
    )


def clean(folder: Path, position: CheckpointPosition) -> None:
    """Remove files that no position names: a crash came between the steps."""
    named = {at.carried for at in position.relays.values()}
    for path in folder.iterdir():
        if (path.suffix == ".carried" and path.name not in named) or path.suffix in (".body", ".raw", ".new"):
            path.unlink()
    for relay, at in position.relays.items():
        _remove_segments(folder, relay, at)


def _remove_segments(folder: Path, relay: str, at: RelayPosition) -> None:
    for number in segments_of(folder).get(relay, []):
        if number < at.segment or at.finished:
            segment_path(folder, relay, number).unlink(missing_ok=True)
    if at.finished:
        lock_path(folder, relay).unlink(missing_ok=True)


@dataclass(slots=True)
class Retained:
    """The part of the spool that an open call needs."""

    first_segment: int  # 0: it begins in the carried file
    bytes: int = 0


@dataclass(slots=True)
class _Remains:
    """Frames of calls that have ended: the first segment they may stand in (0: the carried file), and since when."""

    first: int
    since: float  # monotonic


class EndedCalls:
    """The places where frames of calls that have ended still stand: they hold prompts, and must be removed soon.

    By relay, and by the segment of a call's last frame.
    """

    def __init__(self) -> None:
        self._remains: dict[str, dict[int, _Remains]] = {}
        # The same for calls that ended since a checkpoint began.
        self._later: dict[str, dict[int, _Remains]] | None = None

    def add(self, relay: str, first: int, last: int) -> None:
        into = self._remains if self._later is None else self._later
        _merge(into.setdefault(relay, {}), last, _Remains(first, time.monotonic()))

    def stale_since(self, relay: str, segment: int) -> float | None:
        """The end of the first call that has frames before this segment."""
        return min(
            (remains.since for remains in self._remains.get(relay, {}).values() if remains.first < segment),
            default=None,
        )

    def checkpoint_begins(self) -> None:
        self._later = {}

    def checkpoint_failed(self) -> None:
        self._settle(lambda _relay, _last, remains: remains, lambda _relay, remains: remains)

    def checkpoint_ended(self, position: CheckpointPosition, before: CheckpointPosition) -> None:
        """Forget the frames that the checkpoint removed."""

        def left(relay: str, last: int, remains: _Remains) -> _Remains | None:
            at, old = position.relays.get(relay), before.relays.get(relay)
            if at is None or at.finished:
                return None
            if remains.first == 0 and at.carried and old and old.carried == at.carried:
                return remains
            return _Remains(max(remains.first, at.segment), remains.since) if last >= at.segment else None

        def carried(relay: str, remains: _Remains) -> _Remains:
            """Where the frames of a call are that was open when the checkpoint began: perhaps in the carried file."""
            at = position.relays.get(relay)
            return _Remains(0, remains.since) if at and at.carried and remains.first < at.segment else remains

        self._settle(left, carried)

    def forget(self, relay: str) -> None:
        self._remains.pop(relay, None)

    def _settle(
        self,
        left: Callable[[str, int, _Remains], _Remains | None],
        later: Callable[[str, _Remains], _Remains],
    ) -> None:
        settled: dict[str, dict[int, _Remains]] = {}
        for relay, by_segment in self._remains.items():
            for last, remains in by_segment.items():
                if rest := left(relay, last, remains):
                    settled.setdefault(relay, {})[last] = rest
        for relay, by_segment in (self._later or {}).items():
            for last, remains in by_segment.items():
                _merge(settled.setdefault(relay, {}), last, later(relay, remains))
        self._remains, self._later = settled, None


def _merge(by_segment: dict[int, _Remains], last: int, remains: _Remains) -> None:
    if rest := by_segment.get(last):
        rest.first, rest.since = min(rest.first, remains.first), min(rest.since, remains.since)
    else:
        by_segment[last] = remains


class _Carry(NamedTuple):
    """Frames to be carried: see `carry`."""

    to: Path
    files: list[Path]
    calls: frozenset[int]
    let_go: frozenset[int]


@dataclass(slots=True)
class _Plan:
    """The work of a checkpoint. `let_go`: how many bytes of which calls are not kept."""

    carries: list[_Carry] = field(default_factory=list)
    let_go: list[tuple[Retained, int]] = field(default_factory=list)
    position: CheckpointPosition = field(default_factory=CheckpointPosition)
    remove: list[Path] = field(default_factory=list)


class Checkpoints:
    """The checkpoints, one at a time. The recorder begins them, asks whether they are `done`, and then continues."""

    def __init__(self, folder: Path, position: CheckpointPosition, steps: Steps, ended: EndedCalls) -> None:
        self.folder, self.position = folder, position
        self._ended, self._steps, self._before = ended, steps, position
        self.failed: str | None = None
        self._thread: threading.Thread | None = None
        self._let_go: list[tuple[Retained, int]] = []
        self._counter = time.time_ns() // 1_000_000  # carried files have names of their own

    @property
    def running(self) -> bool:
        return self._thread is not None

    def begin(
        self,
        state: CheckpointPosition,
        followers: Mapping[str, SpoolFollower],
        needs: Sequence[tuple[str, int, Retained]],
    ) -> None:
        """Begin a checkpoint. `state`: a position without the places of the relays. `needs`: for each open call, its
        relay, its number, and the part of the spool that it needs."""
        plan = self._plan(state, followers, needs)
        self._let_go, self._before = plan.let_go, self.position
        self._ended.checkpoint_begins()
        self._thread = threading.Thread(target=self._run, args=(plan,), name="agent-logger-checkpoint", daemon=True)
        self._thread.start()

    def done(self, *, wait: bool = False) -> bool:
        """Whether the checkpoint has succeeded; if it failed, `failed` has the reason."""
        if not self._thread or (self._thread.is_alive() and not wait):
            return False
        self._thread.join()
        self._thread = None
        if self.failed is not None:
            self._ended.checkpoint_failed()
            return False
        for retained, size in self._let_go:
            retained.bytes -= size
        self._ended.checkpoint_ended(self.position, self._before)
        return True

    def is_stale(self, followers: Mapping[str, SpoolFollower], needs: Sequence[tuple[str, int, Retained]]) -> bool:
        """Whether frames of calls that have ended are to be removed now, though nothing else has happened."""
        live: dict[str, int] = {}
        for relay, _, retained in needs:
            live[relay] = live.get(relay, 0) + retained.bytes
        return any(self._is_stale(follower, live.get(relay, 0)) for relay, follower in followers.items())

    def _is_stale(self, follower: SpoolFollower, live_bytes: int) -> bool:
        since = self._ended.stale_since(follower.relay, follower.segment)
        patience = max(STALE_SECONDS, live_bytes / CARRIED_PER_SECOND)
        return since is not None and time.monotonic() >= since + patience

    def _plan(
        self,
        state: CheckpointPosition,
        followers: Mapping[str, SpoolFollower],
        needs: Sequence[tuple[str, int, Retained]],
    ) -> _Plan:
        plan, room = _Plan(), _room(self.folder)
        relays: dict[str, RelayPosition] = {}
        for relay, follower in followers.items():
            calls = {call: retained for name, call, retained in needs if name == relay}
            relays[relay] = self._plan_relay(follower, calls, room, plan)
        for relay, at in self.position.relays.items():  # relays that are finished stay until their files are removed
            if relay not in relays and at.finished and relay in segments_of(self.folder):
                relays[relay] = at
        old_carried = {at.carried for at in self.position.relays.values() if at.carried}
        plan.remove = [self.folder / name for name in old_carried - {at.carried for at in relays.values()}]
        plan.position = msgspec.structs.replace(state, relays=relays)
        return plan

    def _plan_relay(
        self, follower: SpoolFollower, calls: Mapping[int, Retained], room: int, plan: _Plan
    ) -> RelayPosition:
        """Plan for the spool of one relay, which has these open calls. Returns its next position."""
        relay, position = follower.relay, self.position.relays.get(follower.relay)
        # A call that was carried (0) continues in the segments behind, from where that checkpoint ended.
        behind = position.segment if position else follower.segment
        first = min([follower.segment, *(retained.first_segment or behind for retained in calls.values())])
        is_carried = not all(retained.first_segment for retained in calls.values())
        carried = position.carried if position and is_carried else None
        segments = [segment_path(self.folder, relay, number) for number in range(first, follower.segment)]
        files = [*([self.folder / carried] if carried else []), *segments]
        let_go = _too_large(calls, room)
        live = sum(retained.bytes for call, retained in calls.items() if call not in let_go)
        held = sum(map(platform.size_of, files))
        reasons = {
            "carrying frees much more than it takes": held > CARRY_SHARE * live + CARRY_ABOVE,
            "the spool would have no room for the next frames": held > 2 * room,
            "frames of ended calls would stay too long": bool(calls) and self._is_stale(follower, live),
        }
        if any(reasons.values()):
            self._counter += 1
            carried, first = f"{relay}.{self._counter}.carried", follower.segment
            existing = [path for path in files if path.exists()]
            plan.carries.append(_Carry(self.folder / carried, existing, frozenset(calls), let_go))
            plan.let_go += [(calls[call], calls[call].bytes) for call in let_go]
        return RelayPosition(first, follower.number, carried, finished=follower.exhausted and not calls)

    def _run(self, plan: _Plan) -> None:
        self.failed = None
        try:
            self._take(plan)
        except OSError as error:
            self.failed = str(error)
        except Exception as error:  # the top of this thread
            log.exception("a checkpoint failed")
            self.failed = repr(error)

    def _take(self, plan: _Plan) -> None:
        UPKEEP.finish()
        self._steps("synced")
        for carried in plan.carries:
            carry(*carried)
            self._steps("carried")
        new = self.folder / "position.new"
        new.unlink(missing_ok=True)
        with platform.open_file(new, create=True, top=self.folder.parent) as held:
            held.write(msgspec.json.encode(plan.position))
            self._steps("written")
            platform.sync(held.fd)
        self._steps("position synced")
        os.replace(new, self.folder / "position.json")
        self._steps("renamed")
        platform.sync_folder(self.folder)
        self._steps("folder synced")
        self.position = plan.position
        for path in plan.remove:
            path.unlink(missing_ok=True)
            self._steps("carried removed")
        for relay, at in plan.position.relays.items():
            _remove_segments(self.folder, relay, at)
            self._steps("segments removed")


def _room(folder: Path) -> int:
    """How many bytes open calls may need. The limit of what relays may spool is computed the same way."""
    space = os.statvfs(folder)
    return min(DISK_BYTES, space.f_bavail * space.f_frsize // DISK_SHARE) // ROOM_SHARE


def _too_large(calls: Mapping[int, Retained], room: int) -> frozenset[int]:
    """The largest calls, among those that do not fit together."""
    by_size = sorted(calls, key=lambda call: calls[call].bytes)
    totals = accumulate(calls[call].bytes for call in by_size)
    return frozenset(call for call, total in zip(by_size, totals, strict=True) if total > room)
