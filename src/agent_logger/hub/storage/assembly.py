"""Makes a home for each device out of what it pushed, in the form that the catalog reads. The homes may be deleted."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger import platform
from agent_logger.archive.layout import FOLDER_FILE
from agent_logger.catalog.discovery.claims import FILE as CLAIMS
from agent_logger.catalog.discovery.claims import Claims
from agent_logger.catalog.discovery.documents import FOLDER as DOCUMENTS
from agent_logger.catalog.discovery.documents import SUFFIX
from agent_logger.hub.database import HubDatabase
from agent_logger.hub.storage.index import Generation, HubIndex, SendingDevice
from agent_logger.hub.storage.intake import range_name, safe_device, unpacked_range
from agent_logger.hub.storage.store import ObjectStore

TABLES = (
    """CREATE TABLE IF NOT EXISTS assembled (
        device TEXT NOT NULL, object TEXT NOT NULL, generation INTEGER NOT NULL, path TEXT NOT NULL,
        PRIMARY KEY (device, object)
    ) WITHOUT ROWID""",
)
BUILDING = ".building"


class AssemblyReport(msgspec.Struct):
    """What was done."""

    written: int = 0  # files
    deleted: int = 0
    problems: list[str] = []


class _Assembled(NamedTuple):
    generation: int
    path: str


class Assembly:
    """The homes of devices. One process at a time brings them up to date."""

    def __init__(self, database: HubDatabase, index: HubIndex, store: ObjectStore, homes: Path) -> None:
        self._database, self._index, self._store, self._homes = database, index, store, homes

    def update(self, people: "dict[str, str]") -> AssemblyReport:
        """Bring all homes up to date. `people`: names by id. What fails is reported, and tried again the next time."""
        report = AssemblyReport()
        for sender in self._index.senders():
            self._update_home(sender, people.get(sender.person, sender.person), report)
        return report

    def clear(self) -> None:
        """Delete all homes."""
        self._database.execute("DELETE FROM assembled")
        shutil.rmtree(self._homes, ignore_errors=True)

    def _update_home(self, sender: SendingDevice, person: str, report: AssemblyReport) -> None:
        home = self._homes / safe_device(sender.device)
        _write_origin(home, sender.machine, person)
        _write_if_changed(
            home / CLAIMS, msgspec.json.encode(Claims(sender.person, self._index.claims(sender.person)), order="sorted")
        )
        due = {each.object: (each, _path_of(each)) for each in _visible(self._index.objects(sender.device))}
        present = self._present(sender.device)
        for name, assembled in present.items():
            if name not in due or due[name][1] != assembled.path:
                _delete(home, assembled.path)
                self._database.execute("DELETE FROM assembled WHERE device = ? AND object = ?", (sender.device, name))
                report.deleted += 1
        taken = {assembled.path for name, assembled in present.items() if name in due}
        for name, (generation, path) in sorted(due.items()):
            before = present.get(name)
            if (before is None or before.path != path) and path in taken:
                report.problems.append(f"{path}: two objects have this place")
                continue
            taken.add(path)
            try:
                if self._write(sender.device, home, generation, path, before):
                    report.written += 1
            except (OSError, ValueError) as error:
                report.problems.append(f"{path}: {error}")

    def _present(self, device: str) -> dict[str, _Assembled]:
        rows = self._database.rows("SELECT object, generation, path FROM assembled WHERE device = ?", (device,))
        return {name: _Assembled(generation, path) for name, generation, path in rows}

    def _write(self, device: str, home: Path, generation: Generation, path: str, before: _Assembled | None) -> bool:
        """Bring a file up to date. It is always the beginning of its object. Returns whether it was changed."""
        target = home / path
        is_same = before is not None and before == _Assembled(generation.generation, path)
        size = platform.size_of(target) if is_same and target.exists() else None
        if size is not None and size == generation.offset:
            return False
        platform.make_folder(target.parent, home)
        if generation.head.origin:
            _write_once(home.joinpath(*generation.head.place[:3]) / FOLDER_FILE, os.fsencode(generation.head.origin))
        if size is not None and size < generation.offset:
            with platform.open_file(target, top=home) as file:
                for data in self._bytes(device, generation, size):
                    file.write(data)
                _set_time(file.fd, generation)
            return True
        building = target.with_name(f"{BUILDING}-{generation.object}")
        building.unlink(missing_ok=True)
        with platform.open_file(building, create=True, top=home) as file:
            for data in self._bytes(device, generation, 0):
                file.write(data)
            _set_time(file.fd, generation)
        os.rename(building, target)
        row = (device, generation.object, generation.generation, path)
        self._database.execute("INSERT OR REPLACE INTO assembled VALUES (?, ?, ?, ?)", row)
        return True

    def _bytes(self, device: str, generation: Generation, start: int) -> Iterator[bytes]:
        """Yield the bytes of an object from an offset on, up to what was acknowledged."""
        for stored in self._index.ranges(device, generation.object, generation.generation):
            if stored.offset + stored.length > start and stored.offset < generation.offset:
                name = range_name(device, generation.object, generation.generation, stored.offset)
                _, data = unpacked_range(self._store.read(name))
                yield data[max(0, start - stored.offset) :]


def _visible(generations: Sequence[Generation]) -> Iterator[Generation]:
    """Yield the newest complete generation of each object; of a session those of the latest statement alone."""
    newest: dict[str, Generation] = {}
    for each in sorted(generations, key=lambda each: each.generation):
        if each.is_complete:
            newest[each.object] = each
    latest: dict[str, int] = {}
    for each in newest.values():
        latest[each.head.session] = max(latest.get(each.head.session, 0), each.head.revision)
    yield from (each for each in newest.values() if each.head.revision == latest[each.head.session])


def _path_of(generation: Generation) -> str:
    if generation.head.form == "document":
        return f"{DOCUMENTS}/{generation.object}{SUFFIX}"
    return "/".join(generation.head.place)


def _set_time(fd: int, generation: Generation) -> None:
    """Give a file the time that it has on its machine, if that is a time."""
    with suppress(OSError, OverflowError, ValueError):
        os.utime(fd, (generation.modified, generation.modified))


def _write_origin(home: Path, machine: str, person: str) -> None:
    content = msgspec.json.encode({"machine": machine, "person": person, "v": 1}) + b"\n"
    _write_if_changed(home / "machine.json", content)


def _write_if_changed(path: Path, content: bytes) -> None:
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    platform.make_folder(path.parent)
    platform.replace_file(path, content)


def _write_once(path: Path, content: bytes) -> None:
    if not path.exists():
        platform.replace_file(path, content)


def _delete(home: Path, path: str) -> None:
    """Delete a file, and the folders that are empty without it."""
    target = home / path
    target.unlink(missing_ok=True)
    for folder in _folders_between(home, target):
        try:
            left = os.listdir(folder)
            if left == [FOLDER_FILE]:
                (folder / FOLDER_FILE).unlink()
            elif left:
                return
            folder.rmdir()
        except OSError:
            return


def _folders_between(home: Path, target: Path) -> Iterable[Path]:
    return [folder for folder in target.parents if home in folder.parents]
