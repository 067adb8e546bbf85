"""Both sides of the hub's protocol in memory: senders that are killed, a hub that is killed, requests that are lost,
repeated and delayed, levels that change, sessions that are withdrawn, devices that are revoked or lose their state."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_logger.hub.storage.index import Generation, MemoryIndex
from agent_logger.hub.storage.index import SendingDevice as Device
from agent_logger.hub.storage.intake import Intake, range_name, unpacked_range
from agent_logger.hub.storage.store import MemoryStore
from agent_logger.push.protocol import (
    LEVELS,
    DeviceReport,
    Form,
    HubRefusal,
    HubRefusalError,
    Level,
    ObjectHead,
    Offset,
    Statement,
    Withdrawn,
    object_id,
)
from agent_logger.push.sender import RedactedPiece, RewrittenError, Sender, SharedSession, begin_numbers
from agent_logger.push.state import MemoryState, ObjectState, StatedSession

T = TypeVar("T")
DEVICES = [Device("a1", "ann", "laptop"), Device("a2", "ann", "desktop"), Device("b1", "bob", "laptop")]
SESSIONS = ["s1", "s2"]


class KilledError(BaseException):
    """A process was killed."""


@dataclass
class Bomb:
    """Kills a process when it has done so many steps."""

    steps: int | None = None

    def step(self) -> None:
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                self.steps = None
                raise KilledError


class MortalStore(MemoryStore):
    """A store whose process may be killed before and after each change."""

    def __init__(self, bomb: Bomb) -> None:
        super().__init__()
        self._bomb = bomb

    def create(self, name: str, data: bytes) -> bool:
        self._bomb.step()
        created = super().create(name, data)
        self._bomb.step()
        return created

    def delete(self, prefix: str) -> None:
        self._bomb.step()
        names = sorted(name for name in self.objects if name == prefix or name.startswith(f"{prefix}/"))
        for name in names[:1]:
            del self.objects[name]
        self._bomb.step()
        super().delete(prefix)
        self._bomb.step()


class MortalState(MemoryState):
    """The memory of a sender that may be killed before and after it writes something down."""

    def __init__(self, bomb: Bomb) -> None:
        super().__init__()
        self._bomb = bomb

    def put_session(self, name: str, state: StatedSession) -> None:
        self._bomb.step()
        super().put_session(name, state)
        self._bomb.step()

    def put_object(self, name: str, state: ObjectState) -> None:
        self._bomb.step()
        super().put_object(name, state)
        self._bomb.step()


@dataclass
class Bytes:
    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + min(length, 7)]  # in several ranges

    def close(self) -> None:
        pass


@dataclass
class Object:
    """An object of a machine."""

    machine: "Machine"
    name: str
    session: str
    form: Form
    level: Level

    @property
    def id(self) -> str:
        return object_id(self.machine.key, (self.name, self.session))

    @property
    def rules(self) -> str:
        return f"rules {self.machine.rules}"

    @property
    def place(self) -> tuple[str, ...]:
        return () if self.form == "document" else ("logs", "anthropic", f"{self.session}-{self.name}")

    origin = ""

    @property
    def modified(self) -> float:
        return self.machine.clock

    @property
    def version(self) -> str:
        return "" if self.form == "lines" else hashlib.sha256(self.machine.shown(self)).hexdigest()

    def piece(self, start: int, tail: str, end: int | None) -> RedactedPiece | None:
        plain = self.machine.lines[self.session]
        if len(plain) < start or (start and self._tail(start) != tail):
            raise RewrittenError
        if end is not None and end > len(plain):
            raise RewrittenError
        stop = min(len(plain), start + 3) if end is None else end
        if stop == start:
            return None
        return RedactedPiece(b"".join(map(self.machine.redacted, plain[start:stop])), stop, self._tail(stop))

    def _tail(self, at: int) -> str:
        return hashlib.sha256(b"".join(self.machine.lines[self.session][:at])).hexdigest()

    def content(self) -> Bytes:
        return Bytes(self.machine.shown(self))


@dataclass
class Machine:
    """What one machine has recorded, and how it is shared."""

    device: Device
    key: bytes
    rules: int = 1
    clock: float = 0.0
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)
    written: int = 0

    def write(self, session: str) -> None:
        self.written += 1
        self.clock = -self.clock * 3 + 1e6  # clocks are wrong
        marker = f"contents-{session}-{self.device.person}"
        self.lines.setdefault(session, []).append(f"{marker} {self.device.device} {self.written}\n".encode())

    def redacted(self, line: bytes) -> bytes:
        return line[:-1] + f" rules {self.rules}\n".encode()

    def shown(self, outgoing: Object) -> bytes:
        """What an object consists of."""
        own = f"{outgoing.session}-{self.device.person} {len(self.lines[outgoing.session])} rules {self.rules}"
        if outgoing.form == "document":
            titles = f" titles-{own}" if outgoing.level == "titles" else ""
            return f"numbers-{own}{titles}".encode()
        if outgoing.form == "whole":
            return f"contents-{own} beside".encode()
        return b"".join(map(self.redacted, self.lines[outgoing.session]))

    def objects(self, session: str) -> list[Object]:
        level = self.levels[session]
        if level == "none":
            return []
        if level != "contents":
            return [Object(self, "document", session, "document", level)]
        return [Object(self, "part", session, "lines", level), Object(self, "beside", session, "whole", level)]

    def shared(self) -> Iterator[SharedSession]:
        for session, level in self.levels.items():
            if self.lines.get(session):
                yield SharedSession(session, level, "shop", lambda session=session: self.objects(session))  # type: ignore[misc]


class Link:
    """The way of a device's requests to the hub."""

    def __init__(self, world: "Protocol", device: Device) -> None:
        self.world, self.device = world, device
        self.lost: int | None = None  # requests until an answer is lost

    def report(self) -> DeviceReport:
        return self._ask(lambda: self.world.intake.report(self.device))

    def state_level(self, session: str, statement: Statement) -> Statement:
        answer = self._ask(lambda: self.world.intake.state_level(self.device, session, statement))
        self.world.acknowledged[self.device.device, session] = statement.level
        return answer

    def begin(self, name: str, generation: int, head: ObjectHead) -> Offset:
        return self._ask(lambda: self.world.intake.begin(self.device, name, generation, head))

    def append(self, name: str, generation: int, offset: int, data: bytes, modified: float) -> Offset:
        digest = hashlib.sha256(data).hexdigest()
        return self._ask(
            lambda: self.world.intake.append(self.device, name, generation, offset, data, digest, modified)
        )

    def withdraw(self, session: str) -> Withdrawn:
        answer = self._ask(lambda: self.world.intake.withdraw(self.device, session))
        self.world.withdrawn.add((self.device.person, session))
        return answer

    def _ask(self, request: Callable[[], T]) -> T:
        def delivered() -> T:
            if self.device.device in self.world.revoked:
                raise HubRefusalError(HubRefusal(error="unauthorized"))
            if self.world.newer == self.device.device:
                raise HubRefusalError(HubRefusal(error="version", versions=(1,)))
            return request()

        self.world.requests.append(delivered)
        try:
            answer = delivered()
        except KilledError:
            self.world.restart_hub()
            raise OSError("no answer") from None
        if self.lost is not None:
            self.lost -= 1
            if self.lost < 0:
                self.lost = None
                raise OSError("the answer is lost")
        return answer


class Protocol(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.hub_bomb, self.bomb = Bomb(), Bomb()
        self.store, self.index = MortalStore(self.hub_bomb), MemoryIndex()
        self.requests: list[Callable[[], object]] = []
        self.acknowledged: dict[tuple[str, str], Level] = {}
        self.withdrawn: set[tuple[str, str]] = set()
        self.revoked: dict[str, dict[str, bytes]] = {}
        self.newer: str | None = None
        self.intake = Intake(self.index, self.store, "1.0")
        self.machines = {each.device: Machine(each, each.device.encode() * 16) for each in DEVICES}
        self.states = {each.device: MortalState(self.bomb) for each in DEVICES}
        for machine in self.machines.values():
            for session in SESSIONS:
                machine.levels[session] = "contents"
                machine.write(session)

    def restart_hub(self) -> None:
        self.hub_bomb.steps = None
        self.intake = Intake(self.index, self.store, "1.0")

    def push(self, device: str, link: Link | None = None) -> None:
        machine = self.machines[device]
        Sender(self.states[device], link or Link(self, machine.device)).push(machine.shared())

    # ------------------------------------------------------------ what happens

    devices = st.sampled_from([each.device for each in DEVICES])
    sessions = st.sampled_from(SESSIONS)

    @rule(device=devices, session=sessions, count=st.integers(1, 5))
    def record(self, device: str, session: str, count: int) -> None:
        for _ in range(count):
            self.machines[device].write(session)

    @rule(device=devices, session=sessions)
    def rewrite(self, device: str, session: str) -> None:
        self.machines[device].lines[session].clear()
        self.machines[device].write(session)

    @rule(device=devices)
    def change_redaction(self, device: str) -> None:
        self.machines[device].rules += 1

    @rule(device=devices, session=sessions, level=st.sampled_from(LEVELS))
    def share(self, device: str, session: str, level: Level) -> None:
        self.machines[device].levels[session] = level

    @precondition(lambda self: not self.revoked)
    @rule(device=devices, session=sessions, levels=st.lists(st.sampled_from(LEVELS), max_size=4))
    def share_and_push(self, device: str, session: str, levels: list[Level]) -> None:
        for level in levels:
            self.machines[device].write(session)
            self.machines[device].levels[session] = level
            self._check_pushed(device)

    @rule(device=devices)
    def lose_state(self, device: str) -> None:
        if device not in self.revoked:
            self.states[device] = MortalState(self.bomb)
            begin_numbers(self.states[device], Link(self, self.machines[device].device).report())

    @rule(device=devices, steps=st.integers(0, 40))
    def push_and_kill_the_sender(self, device: str, steps: int) -> None:
        self.bomb.steps = steps
        try:
            self.push(device)
        except (KilledError, HubRefusalError):
            pass
        finally:
            self.bomb.steps = None

    @rule(device=devices, steps=st.integers(0, 40))
    def push_and_kill_the_hub(self, device: str, steps: int) -> None:
        self.hub_bomb.steps = steps
        try:
            self.push(device)
        except (OSError, HubRefusalError):
            pass
        finally:
            self.hub_bomb.steps = None

    @rule(device=devices, lost=st.integers(0, 12))
    def push_and_lose_an_answer(self, device: str, lost: int) -> None:
        link = Link(self, self.machines[device].device)
        link.lost = lost
        with suppress(OSError, HubRefusalError):
            self.push(device, link)

    @precondition(lambda self: self.requests)
    @rule(numbers=st.lists(st.integers(0, 1000), min_size=1, max_size=20))
    def deliver_old_requests_again(self, numbers: list[int]) -> None:
        requests = list(self.requests)
        for number in numbers:
            with suppress(HubRefusalError):
                requests[number % len(requests)]()

    @rule(device=devices)
    def push_with_a_newer_version(self, device: str) -> None:
        before = dict(self.store.objects)
        self.newer = device
        with pytest.raises(HubRefusalError):
            self._check_pushed(device)
            Link(self, self.machines[device].device).report()
        self.newer = None
        assert self.store.objects == before

    @rule(device=devices, session=sessions)
    def withdraw(self, device: str, session: str) -> None:
        if device not in self.revoked:
            Sender(self.states[device], Link(self, self.machines[device].device)).withdraw(session)

    @precondition(lambda self: len(self.requests) > 100)
    @rule(device=st.just("b1"))
    def revoke(self, device: str) -> None:
        self.revoked.setdefault(device, self._stored(device))

    @rule(device=devices)
    def push_everything(self, device: str) -> None:
        if device in self.revoked:
            return
        self._check_pushed(device)
        before = dict(self.store.objects)
        self.push(device)
        assert self.store.objects == before, "the same push again sends nothing"

    def _check_pushed(self, device: str) -> None:
        self.push(device)
        machine = self.machines[device]
        for session in SESSIONS:
            expected = {each.id: machine.shown(each) for each in machine.objects(session)}
            if (machine.device.person, session) in self.withdrawn:
                expected = {}
            shown = {
                each.object: self._bytes(device, each)
                for each in self.index.objects_of(device, session)
                if each.is_complete
            }
            assert shown == expected, "nothing acknowledged is lost, and nothing is there twice"

    # ------------------------------------------------------------ what always holds

    @invariant()
    def nothing_above_the_level_is_stored(self) -> None:
        for (device, session), level in self.acknowledged.items():
            person = self.machines[device].device.person
            stored = b"\n".join(self._stored(device).values())
            for forbidden in LEVELS[LEVELS.index(level) + 1 :]:
                assert f"{forbidden}-{session}-{person}".encode() not in stored

    @invariant()
    def nothing_withdrawn_is_stored(self) -> None:
        for person, session in self.withdrawn:
            for each in DEVICES:
                if each.person == person:
                    assert f"-{session}-{person}".encode() not in b"\n".join(self._stored(each.device).values())

    @invariant()
    def a_revoked_device_changes_nothing(self) -> None:
        for device, before in self.revoked.items():
            assert self._stored(device) == before

    @invariant()
    def what_is_acknowledged_is_stored(self) -> None:
        for device, state in self.states.items():
            for name in [each.id for s in SESSIONS for each in self.machines[device].objects(s)]:
                known = state.object(name)
                newest = [*self.index.generations(device, name)][-1:]
                if known and newest and newest[0].generation == known.generation:
                    assert known.offset <= newest[0].offset

    @invariant()
    def the_index_is_that_of_the_store(self) -> None:
        store = MemoryStore()
        store.objects = dict(self.store.objects)
        rebuilt = MemoryIndex()
        assert Intake(rebuilt, store, "1.0").rebuild() == 0
        assert rebuilt.tables == self.index.tables
        assert store.objects == self.store.objects, "there was nothing to delete"

    # ------------------------------------------------------------ looking into the hub

    def _stored(self, device: str) -> dict[str, bytes]:
        """What the store has of a device, unpacked."""
        return {
            name: unpacked_range(data)[1]
            for name, data in self.store.objects.items()
            if name.startswith(f"devices/{device}/objects/") and not name.endswith(".json")
        }

    def _bytes(self, device: str, generation: Generation) -> bytes:
        ranges = self.index.ranges(device, generation.object, generation.generation)
        names = [range_name(device, generation.object, generation.generation, each.offset) for each in ranges]
        return b"".join(unpacked_range(self.store.read(name))[1] for name in names)


TestProtocol = Protocol.TestCase
TestProtocol.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, phases=(Phase.explicit, Phase.generate, Phase.shrink)
)
