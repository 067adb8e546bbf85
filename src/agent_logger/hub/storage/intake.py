"""Takes what devices push. The rules are those of `docs/hub-protocol.md`; sockets and threads are elsewhere.

An answer means that the store has it. What is about to be stored or deleted is noted in the index first, so that after
a crash `recover` finishes a deletion, and takes back what was stored and not answered.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NoReturn, TypeVar

import msgspec

from agent_logger.files.sealed import zstd
from agent_logger.hub.storage.index import Generation, HubIndex, SendingDevice, SharedLevel, StoredRange
from agent_logger.hub.storage.store import ObjectStore
from agent_logger.push.protocol import (
    LEVELS,
    MOST_OBJECT_BYTES,
    MOST_RANGE_BYTES,
    DeviceReport,
    ErrorCode,
    HubRefusal,
    HubRefusalError,
    ObjectHead,
    Offset,
    Statement,
    Withdrawn,
    check_hash,
    check_head,
    check_number,
    check_object,
    check_session,
    refuse,
)

PACKING_LEVEL = 3

T = TypeVar("T")


class WithdrawalNote(msgspec.Struct, frozen=True, kw_only=True):
    """The note in the store that a person has withdrawn a session."""

    session: str
    objects: tuple[str, ...]


class StoredStatement(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    statement: Statement
    claim: int  # the order in which people pushed sessions


class RangeHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a range in the store."""

    length: int
    sha256: str
    modified: float


# ---------------------------------------------------------------- names in the store


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def device_name(device: str) -> str:
    return f"devices/{safe_device(device)}"


def safe_device(text: str) -> str:
    """Return the name of a device's folder."""
    return text if text.replace("-", "").isalnum() and text.isascii() and len(text) <= 64 else _hashed(text)


def statement_name(device: str, session: str, revision: int) -> str:
    return f"{device_name(device)}/levels/{_hashed(session)}/{revision:016}.json"


def generation_name(device: str, name: str, generation: int) -> str:
    return f"{device_name(device)}/objects/{name}/{generation:016}"


def range_name(device: str, name: str, generation: int, offset: int) -> str:
    return f"{generation_name(device, name, generation)}/{offset:016}"


def tombstone_name(person: str, session: str) -> str:
    return f"people/{_hashed(person)}/withdrawn/{_hashed(session)}.json"


def packed_range(data: bytes, sha256: str, modified: float) -> bytes:
    head = msgspec.json.encode(RangeHead(length=len(data), sha256=sha256, modified=modified))
    return head + b"\n" + zstd.compress(data, PACKING_LEVEL)


def unpacked_range(stored: bytes) -> tuple[RangeHead, bytes]:
    """Return a range of the store. Raises `ValueError` if it is damaged."""
    line, _, packed = stored.partition(b"\n")
    head = msgspec.json.decode(line, type=RangeHead)
    try:
        data = zstd.ZstdDecompressor().decompress(packed, MOST_RANGE_BYTES + 1)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(data) != head.length or hashlib.sha256(data).hexdigest() != head.sha256:
        raise ValueError("its hash is not that of its bytes")
    return head, data


class Intake:
    """Answers the requests of devices. One at a time."""

    def __init__(self, index: HubIndex, store: ObjectStore, version: str) -> None:
        self._index, self._store, self._version = index, store, version
        self.recover()

    # ------------------------------------------------------------ requests

    def devices(self) -> Sequence[SendingDevice]:
        """Return the devices that have pushed something."""
        return self._index.senders()

    def report(self, sender: SendingDevice) -> DeviceReport:
        levels = self._index.levels(sender.device)
        generations = [each.generation for each in self._index.objects(sender.device)]
        return DeviceReport(
            device=sender.device,
            person=sender.person,
            machine=sender.machine,
            version=self._version,
            revision=max((level.revision for level in levels.values()), default=0),
            levels={name: Statement(level=level.level, revision=level.revision) for name, level in levels.items()},
            generation=max(generations, default=0),
        )

    def state_level(self, sender: SendingDevice, session: str, statement: Statement) -> Statement:
        check_session(session)
        check_number(statement.revision)
        self.recover()
        self._check_not_withdrawn(sender, session)
        now = self._index.level(sender.device, session)
        level = SharedLevel(statement.level, statement.revision)
        if now == level:
            return statement
        if now and statement.revision <= now.revision:
            _refuse_revision(now)
        self._know(sender)
        name = statement_name(sender.device, session, statement.revision)
        claim = self._index.claims(sender.person).get(session) or self._index.newest_claim() + 1
        content = msgspec.json.encode(StoredStatement(session=session, statement=statement, claim=claim))
        self._create(name, content)
        above = [
            each
            for each in self._index.objects_of(sender.device, session)
            if LEVELS.index(each.head.level) > LEVELS.index(statement.level)
        ]
        with self._index.change():
            self._index.set_level(sender.device, session, level)
            self._index.claim(sender.person, session, claim)
            self._index.finish(name)
            deletions = self._forget(sender.device, above)
        self._delete(deletions)
        return statement

    def begin(self, sender: SendingDevice, name: str, generation: int, head: ObjectHead) -> Offset:
        check_object(name)
        check_number(generation)
        check_head(head)
        self.recover()
        self._check_open(sender, name, head)
        generations = self._index.generations(sender.device, name)
        newest = generations[-1] if generations else None
        if newest and generation < newest.generation:
            _refuse_object("stale_generation", newest)
        if newest and generation == newest.generation:
            if newest.head != head:
                _refuse_object("conflict", newest)
            return Offset(generation=generation, offset=newest.offset)
        self._know(sender)
        at = f"{generation_name(sender.device, name, generation)}/head.json"
        self._create(at, msgspec.json.encode(head))
        began = Generation(object=name, generation=generation, head=head)
        replaced = [each for each in generations if began.is_complete or not _may_stay(each.head, head)]
        older = [
            each
            for each in self._index.objects_of(sender.device, head.session)
            if each.object != name and each.head.revision < head.revision
        ]
        with self._index.change():
            self._index.put(sender.device, began)
            self._index.finish(at)
            deletions = self._forget(sender.device, [*replaced, *older])
        self._delete(deletions)
        return Offset(generation=generation, offset=0)

    def append(
        self, sender: SendingDevice, name: str, generation: int, offset: int, data: bytes, sha256: str, modified: float
    ) -> Offset:
        check_object(name)
        check_number(generation)
        check_number(offset)
        check_hash(sha256)
        if not 0 < len(data) <= MOST_RANGE_BYTES:
            refuse("too_large" if data else "malformed", f"a range has 1 to {MOST_RANGE_BYTES:,} bytes")
        if hashlib.sha256(data).hexdigest() != sha256:
            refuse("bad_hash", "the bytes are not those of the hash")
        self.recover()
        generations = self._index.generations(sender.device, name)
        newest = generations[-1] if generations else None
        if self._index.is_object_withdrawn(sender.person, name):
            refuse("withdrawn", "the session was withdrawn")
        if newest is None or generation > newest.generation:
            refuse("unknown_object", "the generation has no head")
        if generation < newest.generation:
            _refuse_object("stale_generation", newest)
        self._check_open(sender, name, newest.head)
        if offset < newest.offset:
            if StoredRange(offset, len(data), sha256) in self._index.ranges(sender.device, name, generation):
                return Offset(generation=generation, offset=newest.offset)
            _refuse_object("conflict", newest)
        if offset > newest.offset:
            _refuse_object("gap", newest)
        end = offset + len(data)
        if end > (MOST_OBJECT_BYTES if newest.head.length is None else newest.head.length):
            refuse("too_large", "the object is longer than it may be")
        at = range_name(sender.device, name, generation, offset)
        self._create(at, packed_range(data, sha256, modified))
        grown = msgspec.structs.replace(newest, offset=end, modified=modified)
        if grown.head.length is not None and grown.is_complete:
            self._check_whole(sender.device, grown, at)
        replaced = [each for each in generations[:-1] if grown.is_complete]
        with self._index.change():
            self._index.put(sender.device, grown)
            self._index.add_range(sender.device, name, generation, StoredRange(offset, len(data), sha256))
            self._index.finish(at)
            deletions = self._forget(sender.device, replaced)
        self._delete(deletions)
        return Offset(generation=generation, offset=end)

    def withdraw(self, sender: SendingDevice, session: str) -> Withdrawn:
        check_session(session)
        self.recover()
        return self._withdraw(sender.person, session)

    def _withdraw(self, person: str, session: str) -> Withdrawn:
        senders = self._index.senders()
        own = [each.device for each in senders if each.person == person]
        others = {each.person for each in senders if each.person != person}
        copies = tuple(sorted(other for other in others if self._has(other, session)))
        if self._index.is_withdrawn(person, session):
            return Withdrawn(session=session, others=copies)
        objects = [(device, each) for device in own for each in self._index.objects_of(device, session)]
        names = tuple(sorted({each.object for _, each in objects}))
        at = tombstone_name(person, session)
        self._create(at, msgspec.json.encode((person, WithdrawalNote(session=session, objects=names))))
        deletions: list[str] = []
        with self._index.change():
            self._index.withdraw(person, session, names)
            self._index.finish(at)
            for device in own:
                deletions += self._forget(device, self._index.objects_of(device, session))
        self._delete(deletions)
        return Withdrawn(session=session, objects=len(names), others=copies)

    # ------------------------------------------------------------ of an admin

    def delete(self, session: str | None = None, person: str | None = None) -> list[tuple[str, Withdrawn]]:
        """Withdraw a session, all sessions of a person, or that session of that person. Returns people with what was
        withdrawn of theirs."""
        self.recover()
        owned: dict[str, set[str]] = {}
        for sender in self._index.senders():
            if person in (None, sender.person):
                stated = self._index.levels(sender.device)
                owned.setdefault(sender.person, set()).update(name for name in stated if session in (None, name))
        return [
            (owner, self._withdraw(owner, name))
            for owner, names in sorted(owned.items())
            for name in sorted(names)
            if not self._index.is_withdrawn(owner, name)
        ]

    def delete_older(self, than: float) -> list[str]:
        """Delete the objects of sessions of which no machine has a file that changed since then. Returns the sessions.
        What changes again is pushed again. Files of an unknown time stay."""
        self.recover()
        newest: dict[str, float] = {}
        for sender in self._index.senders():
            for each in self._index.objects(sender.device):
                modified = each.modified or float("inf")
                newest[each.head.session] = max(newest.get(each.head.session, modified), modified)
        old = sorted(session for session, modified in newest.items() if modified < than)
        for session in old:
            deletions: list[str] = []
            with self._index.change():
                for sender in self._index.senders():
                    deletions += self._forget(sender.device, self._index.objects_of(sender.device, session))
            self._delete(deletions)
        return old

    # ------------------------------------------------------------ after a crash

    def recover(self) -> None:
        """Bring store and index in line: what was not answered is taken back, and deletions are finished. Each request
        begins with it, for the one before may have failed: what it repeats is not answered before it is done."""
        for name in self._index.unfinished():
            self._store.delete(name)
            self._index.finish(name)

    def rebuild(self) -> int:
        """Make the index from the store. Returns how many damaged objects were left out."""
        with self._index.change():
            self._index.clear()
            damaged = _Rebuild(self._index, self._store).run()
        self.recover()
        return damaged

    # ------------------------------------------------------------ checks

    def _has(self, person: str, session: str) -> bool:
        devices = (each.device for each in self._index.senders() if each.person == person)
        return any(self._index.objects_of(device, session) for device in devices)

    def _check_not_withdrawn(self, sender: SendingDevice, session: str) -> None:
        if self._index.is_withdrawn(sender.person, session):
            refuse("withdrawn", "the session was withdrawn")

    def _check_open(self, sender: SendingDevice, name: str, head: ObjectHead) -> None:
        """Raise `HubRefusalError` unless the object may be pushed under the session's latest statement."""
        self._check_not_withdrawn(sender, head.session)
        if self._index.is_object_withdrawn(sender.person, name):
            refuse("withdrawn", "the session was withdrawn")
        now = self._index.level(sender.device, head.session) or SharedLevel("none", 0)
        if head.revision != now.revision or head.level != now.level:
            _refuse_revision(now)

    def _check_whole(self, device: str, grown: Generation, last: str) -> None:
        """Raise `HubRefusalError` if the whole object is not what its head says; the last range is taken back then."""
        digest = hashlib.sha256()
        for stored in self._index.ranges(device, grown.object, grown.generation):
            digest.update(self._read(device, grown, stored.offset))
        digest.update(unpacked_range(self._store.read(last))[1])
        if digest.hexdigest() != grown.head.sha256:
            self._store.delete(last)
            self._index.finish(last)
            refuse("bad_hash", "the whole object does not have the hash of its head")

    def _read(self, device: str, generation: Generation, offset: int) -> bytes:
        return unpacked_range(self._store.read(range_name(device, generation.object, generation.generation, offset)))[1]

    # ------------------------------------------------------------ changes

    def _know(self, sender: SendingDevice) -> None:
        if sender not in self._index.senders():
            name = f"{device_name(sender.device)}/device.json"
            self._create(name, msgspec.json.encode(sender))
            with self._index.change():
                self._index.add_sender(sender)
                self._index.finish(name)

    def _create(self, name: str, data: bytes) -> None:
        """Store something. Until `finish` is called of it, it does not count."""
        self._index.begin(name)
        if not self._store.create(name, data) and not self._has_stored(name, data):  # damaged, and sent again
            self._store.delete(name)
            self._store.create(name, data)

    def _has_stored(self, name: str, data: bytes) -> bool:
        try:
            return self._store.read(name) == data
        except FileNotFoundError:
            return False

    def _forget(self, device: str, generations: Iterable[Generation]) -> list[str]:
        """Forget generations. Returns the names of what is to be deleted from the store after that."""
        names = []
        for each in generations:
            self._index.remove(device, each.object, each.generation)
            name = generation_name(device, each.object, each.generation)
            self._index.begin(name)
            names.append(name)
        return names

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._store.delete(name)
            self._index.finish(name)


def _may_stay(before: ObjectHead, head: ObjectHead) -> bool:
    """Whether an older generation is shown until the new one is complete."""
    return head.length is not None and (before.rules, before.revision, before.session) == (
        head.rules,
        head.revision,
        head.session,
    )


def _refuse_revision(now: SharedLevel) -> NoReturn:
    raise HubRefusalError(
        HubRefusal(
            error="stale_revision",
            message="the level of the session was stated again",
            revision=now.revision,
            level=now.level,
        )
    )


def _refuse_object(error: ErrorCode, newest: Generation) -> NoReturn:
    messages: dict[ErrorCode, str] = {
        "stale_generation": "there is a newer generation",
        "conflict": "this is stored with other content",
        "gap": "bytes before this range are missing",
    }
    raise HubRefusalError(
        HubRefusal(error=error, message=messages[error], generation=newest.generation, offset=newest.offset)
    )


class _Rebuild:
    """Makes an index from a store."""

    def __init__(self, index: HubIndex, store: ObjectStore) -> None:
        self._index, self._store, self._damaged = index, store, 0

    def run(self) -> int:
        names = sorted(self._store.names(""))
        generations: dict[tuple[str, str, int], list[str]] = {}
        devices: dict[str, SendingDevice] = {}
        for name in names:
            match name.split("/"):
                case ["devices", folder, "device.json"]:
                    if sender := self._decoded(name, SendingDevice):
                        devices[folder] = sender
                        self._index.add_sender(sender)
        for name in names:
            match name.split("/"):
                case ["people", _, "withdrawn", _]:
                    if stone := self._decoded(name, tuple[str, WithdrawalNote]):
                        self._index.withdraw(stone[0], stone[1].session, stone[1].objects)
                case ["devices", folder, "levels", _, _] if folder in devices:
                    if stored := self._decoded(name, StoredStatement):
                        level = SharedLevel(stored.statement.level, stored.statement.revision)
                        self._index.set_level(devices[folder].device, stored.session, level)
                        self._index.claim(devices[folder].person, stored.session, stored.claim)
                case ["devices", folder, "objects", object_name, number, last] if folder in devices:
                    key = (devices[folder].device, object_name, int(number))
                    generations.setdefault(key, []).append(last)
        by_id = {sender.device: sender for sender in devices.values()}
        for (device, object_name, counter), files in sorted(generations.items()):
            self._generation(by_id[device], object_name, counter, files)
        self._drop_replaced()
        return self._damaged

    def _decoded(self, name: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(self._store.read(name), type=kind)
        except (ValueError, RecursionError):
            self._damaged += 1
            return None

    def _generation(self, sender: SendingDevice, name: str, number: int, files: list[str]) -> None:
        at = generation_name(sender.device, name, number)
        head = self._decoded(f"{at}/head.json", ObjectHead) if "head.json" in files else None
        if head is None or not self._counts(sender, name, head):
            self._index.begin(at)  # deleted when the index is done
            return
        generation = Generation(object=name, generation=number, head=head)
        ranges = []
        for file in sorted(set(files) - {"head.json"}):
            try:
                range_head, data = unpacked_range(self._store.read(f"{at}/{file}"))
            except ValueError:
                self._damaged += 1
                break
            if int(file) != generation.offset:
                self._damaged += 1
                break
            ranges.append(StoredRange(generation.offset, len(data), range_head.sha256))
            generation = msgspec.structs.replace(
                generation, offset=generation.offset + len(data), modified=range_head.modified
            )
        self._index.put(sender.device, generation)
        for stored in ranges:
            self._index.add_range(sender.device, name, number, stored)

    def _counts(self, sender: SendingDevice, name: str, head: ObjectHead) -> bool:
        if self._index.is_withdrawn(sender.person, head.session) or self._index.is_object_withdrawn(
            sender.person, name
        ):
            return False
        now = self._index.level(sender.device, head.session)
        return now is not None and LEVELS.index(head.level) <= LEVELS.index(now.level)

    def _drop_replaced(self) -> None:
        """Delete what a crash has left of what newer objects replace."""
        for sender in self._index.senders():
            objects = self._index.objects(sender.device)
            newest_revision: dict[str, int] = {}
            for each in objects:
                session = each.head.session
                newest_revision[session] = max(newest_revision.get(session, 0), each.head.revision)
            for each in objects:
                generations = self._index.generations(sender.device, each.object)
                newer = [other for other in generations if other.generation > each.generation]
                replaced = any(other.is_complete or not _may_stay(each.head, other.head) for other in newer)
                if replaced or each.head.revision < newest_revision[each.head.session]:
                    self._index.remove(sender.device, each.object, each.generation)
                    self._index.begin(generation_name(sender.device, each.object, each.generation))
