"""Imports a bundle, a session file of ours or of an agent, another home, or a folder of these.

What is imported is written to a new folder beside the imports, and gets its name when it is complete.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from agent_logger import platform
from agent_logger.agents.registry import readable_agent
from agent_logger.archive.imported import ORIGIN, BundledSession, imports_path, origin_of
from agent_logger.archive.witness_files import WitnessFile, root_of, witness_files
from agent_logger.catalog.discovery.below_folder import sessions_below, sessions_in_file
from agent_logger.clock import CLOCK
from agent_logger.errors import ConfigError, SourceError, StoreError
from agent_logger.files.sources import Source, StampCache
from agent_logger.home.machine import origin_of as home_origin
from agent_logger.home.machine import usable_name
from agent_logger.imports.bundles import MOST_BYTES, MOST_FILES, SUFFIX, Advance, RefusedError, is_bundle, unpack
from agent_logger.imports.homes import home_at, home_files
from agent_logger.model.origin import ImportOrigin
from agent_logger.model.plurals import pluralize

UNIT = "home"  # of an import that is no bundle
MOST_STEM = 40  # characters of a file's name that are in the name of its import
MAKING_SECONDS = 86_400.0  # after which no process is making that import any more, where there are no locks
_MAKING, _OLDER = ".making-", "-older"
_ODD = re.compile(r"[^A-Za-z0-9_-]+")

Kind = Literal["bundle", "file", "home"]


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one thing that was to be imported."""

    path: str
    import_name: str
    state: Literal["new", "replaced", "there"]  # replaced: of a home; there: the same was imported before
    kind: Kind
    machine: str | None
    files: int
    bytes: int


class _Contents(NamedTuple):
    """What was written for an import."""

    kind: Kind
    machine: str | None
    digest: str


def importable(path: Path) -> list[Path]:
    """Return what a path stands for: itself, or the bundles and homes in a folder. Raises `SourceError`."""
    if not path.is_dir() or home_at(path):
        return [path]
    inside = [entry for entry in sorted(path.iterdir()) if not entry.is_symlink()]
    return [entry for entry in inside if home_at(entry) or (entry.is_file() and is_bundle(entry))] or [path]


def size_of(path: Path) -> int:
    """Return how many bytes of a path may be read."""
    if not path.is_dir():
        return path.stat().st_size if path.is_file() else 0
    files = (Path(inside, name) for inside, _, names in os.walk(path) for name in names)
    return sum(os.lstat(file).st_size for file in files)


def run_import(home: Path, path: Path, advance: Advance = lambda _bytes: None) -> ImportResult:
    """Import one thing. Raises `SourceError` if it is refused or cannot be read, `StoreError` if it cannot be
    written."""
    if not os.path.lexists(path):
        raise SourceError(f"{path}: no such file or folder")
    path = (home_at(path) or path).absolute()
    with _new_folder(home) as folder:
        contents = _written(home, path, folder, advance)
        name, before = _name_of(home, path, contents)
        origin = ImportOrigin(
            name=name,
            kind=contents.kind,
            path=_printed(path),
            machine=contents.machine,
            at=CLOCK.now(),
            digest=contents.digest,
        )
        files, size = _counts(folder)
        is_there = before is not None and before.digest == contents.digest
        if not is_there:
            platform.replace_file(folder / ORIGIN, msgspec.json.encode(origin))
            _put_in_place(folder, imports_path(home) / name)
        return ImportResult(
            path=_printed(path),
            import_name=name,
            state="there" if is_there else "replaced" if before else "new",
            kind=contents.kind,
            machine=contents.machine,
            files=files,
            bytes=size,
        )


def _name_of(home: Path, path: Path, contents: _Contents) -> tuple[str, ImportOrigin | None]:
    """Return the name of an import, and the import that it replaces or repeats. Only that of a home is ever
    replaced."""
    digest = _digest_of_path(path) if contents.kind == "home" else contents.digest
    name = f"{_stem(path)}-{digest[:8]}"
    before = origin_of(home, name)
    if before is None or before.digest == contents.digest or before.kind == contents.kind == "home":
        return name, before
    name = f"{_stem(path)}-{digest}"
    return name, origin_of(home, name)


def _written(home: Path, path: Path, folder: Path, advance: Advance) -> _Contents:
    if home_at(path):
        if path.resolve() == home.resolve():
            raise SourceError(f"{path}: this is the home that is in use; nothing is imported into itself")
        return _Contents("home", _machine_of_home(path), _copied(path, home_files(path), folder, advance))
    if path.is_file() and is_bundle(path):
        heads, digest = unpack(path, folder, advance)
        return _Contents("bundle", _machine_of(heads), digest)
    sources = list(sessions_below(path) if path.is_dir() else sessions_in_file(path))
    if not sources:
        raise SourceError(f"{path}: not a bundle, a home, or a file with a session of a known agent")
    return _Contents("file", None, _copied(path, _files_of(sources), folder, advance))


def _machine_of(heads: Iterable[BundledSession]) -> str | None:
    """Return the machine that all sessions of a bundle name, if it can be the name of one."""
    machines = {head.machine or "" for head in heads}
    return usable_name(machines.pop()) if len(machines) == 1 else None


def _machine_of_home(home: Path) -> str | None:
    """Return the machine that a home says it is from. Raises `SourceError` for a home of a newer version."""
    try:
        return home_origin(home).machine
    except ConfigError as error:
        raise SourceError(str(error)) from error


def _files_of(sources: Iterable[Source]) -> Iterator[WitnessFile]:
    for source in sources:
        try:
            yield from witness_files(_with_agents(source))
        except OSError as error:
            raise SourceError(f"{source.path}: {error.strerror}") from error


def _with_agents(source: Source) -> Source:
    """Return a session with the files of its sub-agents, if it is in a folder like those of its agent: they may be in
    other folders of it."""
    agent, path = readable_agent(source.agent), Path(source.path)
    root = root_of(agent.location, path) if agent else None
    if agent is None or agent.location is None or agent.location.is_database or root is None:
        return source
    return next((each for each in agent.discover([root], StampCache()) if each.path == source.path), source)


def _copied(path: Path, files: Iterable[WitnessFile], folder: Path, advance: Advance) -> str:
    """Copy files as they are. Returns a digest of all of them. Raises `SourceError`."""
    try:
        return _write_files(folder / UNIT, files, advance)
    except RefusedError as error:
        raise SourceError(f"{path}: {error}; nothing was imported") from error


def _write_files(unit: Path, files: Iterable[WitnessFile], advance: Advance) -> str:
    digest, size = hashlib.sha256(), 0
    written: set[tuple[str, ...]] = set()
    for file in files:
        if file.parts in written:
            continue
        written.add(file.parts)
        if len(written) > MOST_FILES:
            raise RefusedError(f"more than {pluralize(MOST_FILES, 'file')}")
        path = unit.joinpath(*file.parts)
        platform.make_folder(path.parent)
        digest.update(msgspec.json.encode(file.parts))
        with platform.open_file(path, create=True) as copy:
            for chunk in file.chunks():
                copy.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                advance(len(chunk))
                if size > MOST_BYTES:
                    raise RefusedError(f"more than {MOST_BYTES >> 30} GB")
            os.utime(copy.fd, (file.modified, file.modified))
    if not written:
        raise RefusedError("no session in it can be imported")
    return digest.hexdigest()


def _stem(path: Path) -> str:
    name = path.parent.name if path.name == ".agent-logger" else path.name.removesuffix(SUFFIX)
    return _ODD.sub("-", name.partition(".")[0] or name)[:MOST_STEM].strip("-_") or "import"


def _printed(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _digest_of_path(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()


def _counts(folder: Path) -> tuple[int, int]:
    sizes = [os.lstat(Path(inside, name)).st_size for inside, _, names in os.walk(folder) for name in names]
    return len(sizes), sum(sizes)


# ---------------------------------------------------------------- folders


@contextmanager
def _new_folder(home: Path) -> Iterator[Path]:
    """Yield a folder that becomes an import when it is renamed; else it is deleted. It is locked meanwhile."""
    root = imports_path(home)
    folder = root / f"{_MAKING}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        platform.make_folder(root)
        with platform.exclusive_in(root):
            platform.make_folder(folder)
            held = platform.Held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), folder)
            _sweep(root, has_locks=_locked(held))
        with held:
            yield folder
    except OSError as error:
        raise StoreError(f"cannot import into {root}: {error.strerror}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(folder: Path, to: Path) -> None:
    """Give a complete import its name, when all of it is on the device; an earlier one of that name is deleted."""
    _sync(folder)
    older = to.with_name(f"{folder.name}{_OLDER}")
    with platform.exclusive_in(to.parent):
        with suppress(FileNotFoundError):
            os.rename(to, older)
        os.rename(folder, to)
        (older / ORIGIN).unlink(missing_ok=True)  # nobody brings it back
    platform.sync_folder(to.parent)
    shutil.rmtree(older, ignore_errors=True)


def _sync(folder: Path) -> None:
    for inside, _, names in os.walk(folder):
        for name in names:
            with platform.open_file(Path(inside, name)) as file:
                platform.sync(file.fd)
        platform.sync_folder(Path(inside))


def _sweep(root: Path, *, has_locks: bool) -> None:
    """Remove what killed imports left. An import that was to be replaced is brought back, if the new one did not get
    its name."""
    for older in root.glob(f"{_MAKING}*{_OLDER}"):
        with suppress(OSError, ValueError):
            origin = msgspec.json.decode((older / ORIGIN).read_bytes(), type=ImportOrigin)
            if not (root / origin.name).exists():
                os.rename(older, root / origin.name)
    for path in root.glob(".*"):
        with suppress(OSError):
            can_tell = has_locks and path.name.startswith(_MAKING)
            if not platform.is_locked(path) if can_tell else _is_old(path):
                shutil.rmtree(path, ignore_errors=True)


def _locked(held: platform.Held) -> bool:
    """Lock the folder of an import, where there are locks: then it belongs to this process."""
    try:
        return platform.lock(held)
    except platform.NoLocksError:
        return False


def _is_old(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > MAKING_SECONDS
