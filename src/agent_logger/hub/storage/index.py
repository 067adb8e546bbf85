"""What the hub knows of its store: devices, levels, objects, ranges, tombstones. It is made from the store."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

import msgspec

from agent_logger.push.protocol import Level, ObjectHead


class SendingDevice(NamedTuple):
    """A device, and the person that it belongs to."""

    device: str
    person: str
    machine: str


class SharedLevel(NamedTuple):
    """The latest statement about a session."""

    level: Level
    revision: int


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """A generation of an object, as far as it is stored."""

    object: str
    generation: int
    head: ObjectHead
    offset: int = 0
    modified: float = 0.0  # of the file, as the sender says

    @property
    def is_complete(self) -> bool:
        """Whether it can be shown: what grows always can."""
        return self.head.length is None or self.offset == self.head.length


class StoredRange(NamedTuple):
    offset: int
    length: int
    sha256: str


class HubIndex(Protocol):
    """What is in the store. `change` makes what is done within it happen as a whole or not at all."""

    def change(self) -> AbstractContextManager[None]: ...

    def senders(self) -> Sequence[SendingDevice]: ...
    def add_sender(self, sender: SendingDevice, /) -> None: ...

    def level(self, device: str, session: str, /) -> SharedLevel | None: ...
    def levels(self, device: str, /) -> dict[str, SharedLevel]: ...
    def set_level(self, device: str, session: str, level: SharedLevel, /) -> None: ...

    def generations(self, device: str, name: str, /) -> Sequence[Generation]:
        """Return the generations of an object, the newest last."""

    def objects_of(self, device: str, session: str, /) -> Sequence[Generation]: ...
    def objects(self, device: str, /) -> Sequence[Generation]: ...
    def put(self, device: str, generation: Generation, /) -> None: ...
    def remove(self, device: str, name: str, generation: int, /) -> None:
        """Forget a generation, with its ranges."""

    def ranges(self, device: str, name: str, generation: int, /) -> Sequence[StoredRange]:
        """Return the ranges of a generation, by offset."""

    def add_range(self, device: str, name: str, generation: int, stored: StoredRange, /) -> None: ...

    def claim(self, person: str, session: str, number: int, /) -> None:
        """Note that a person has pushed a session, unless that was noted before. `number`: the order."""

    def claims(self, person: str, /) -> dict[str, int]:
        """Return the sessions that a person has pushed, with the order."""

    def newest_claim(self) -> int:
        """Return the highest number of a claim."""

    def is_withdrawn(self, person: str, session: str, /) -> bool: ...
    def is_object_withdrawn(self, person: str, name: str, /) -> bool: ...
    def withdraw(self, person: str, session: str, objects: Sequence[str], /) -> None: ...

    def unfinished(self) -> Sequence[str]:
        """Return names in the store of which it is not known whether they were stored or deleted."""

    def begin(self, name: str, /) -> None: ...
    def finish(self, name: str, /) -> None: ...
    def clear(self) -> None: ...


class _Tables(msgspec.Struct):
    senders: dict[str, SendingDevice] = {}
    levels: dict[tuple[str, str], SharedLevel] = {}
    generations: dict[tuple[str, str], list[Generation]] = {}
    ranges: dict[tuple[str, str, int], list[StoredRange]] = {}
    claims: dict[tuple[str, str], int] = {}
    withdrawn: set[tuple[str, str]] = set()
    withdrawn_objects: set[tuple[str, str]] = set()
    unfinished: dict[str, None] = {}

    def copy(self) -> "_Tables":
        return _Tables(
            senders=dict(self.senders),
            levels=dict(self.levels),
            generations=dict(self.generations),
            ranges={key: list(ranges) for key, ranges in self.ranges.items()},
            claims=dict(self.claims),
            withdrawn=set(self.withdrawn),
            withdrawn_objects=set(self.withdrawn_objects),
            unfinished=dict(self.unfinished),
        )


class MemoryIndex:
    """An index in memory."""

    def __init__(self) -> None:
        self.tables = _Tables()

    @contextmanager
    def change(self) -> Iterator[None]:
        before = self.tables.copy()
        try:
            yield
        except BaseException:
            self.tables = before
            raise

    def senders(self) -> Sequence[SendingDevice]:
        return list(self.tables.senders.values())

    def add_sender(self, sender: SendingDevice) -> None:
        self.tables.senders[sender.device] = sender

    def level(self, device: str, session: str) -> SharedLevel | None:
        return self.tables.levels.get((device, session))

    def levels(self, device: str) -> dict[str, SharedLevel]:
        return {session: level for (owner, session), level in self.tables.levels.items() if owner == device}

    def set_level(self, device: str, session: str, level: SharedLevel) -> None:
        self.tables.levels[device, session] = level

    def generations(self, device: str, name: str) -> Sequence[Generation]:
        return list(self.tables.generations.get((device, name), ()))

    def objects_of(self, device: str, session: str) -> Sequence[Generation]:
        return [each for each in self.objects(device) if each.head.session == session]

    def objects(self, device: str) -> Sequence[Generation]:
        return [each for (owner, _), all_of in self.tables.generations.items() if owner == device for each in all_of]

    def put(self, device: str, generation: Generation) -> None:
        remaining = [
            each for each in self.generations(device, generation.object) if each.generation != generation.generation
        ]
        ordered = sorted([*remaining, generation], key=lambda each: each.generation)
        self.tables.generations[device, generation.object] = ordered

    def remove(self, device: str, name: str, generation: int) -> None:
        remaining = [each for each in self.generations(device, name) if each.generation != generation]
        self.tables.generations[device, name] = remaining
        if not remaining:
            del self.tables.generations[device, name]
        self.tables.ranges.pop((device, name, generation), None)

    def ranges(self, device: str, name: str, generation: int) -> Sequence[StoredRange]:
        return list(self.tables.ranges.get((device, name, generation), ()))

    def add_range(self, device: str, name: str, generation: int, stored: StoredRange) -> None:
        self.tables.ranges.setdefault((device, name, generation), []).append(stored)

    def claim(self, person: str, session: str, number: int) -> None:
        self.tables.claims.setdefault((person, session), number)

    def claims(self, person: str) -> dict[str, int]:
        return {session: number for (owner, session), number in self.tables.claims.items() if owner == person}

    def newest_claim(self) -> int:
        return max(self.tables.claims.values(), default=0)

    def is_withdrawn(self, person: str, session: str) -> bool:
        return (person, session) in self.tables.withdrawn

    def is_object_withdrawn(self, person: str, name: str) -> bool:
        return (person, name) in self.tables.withdrawn_objects

    def withdraw(self, person: str, session: str, objects: Sequence[str]) -> None:
        self.tables.withdrawn.add((person, session))
        self.tables.withdrawn_objects.update((person, name) for name in objects)

    def unfinished(self) -> Sequence[str]:
        return list(self.tables.unfinished)

    def begin(self, name: str) -> None:
        self.tables.unfinished[name] = None

    def finish(self, name: str) -> None:
        self.tables.unfinished.pop(name, None)

    def clear(self) -> None:
        self.tables = _Tables()
