"""Reads bundles, which anybody may have made: a bundle is written to a new folder whole, or refused.

A bundle has regular files only, in the layout of `archive/imported`, at most `MOST_FILES` of them with at most
`MOST_BYTES` in all, and is not packed more than `MOST_FOLD` times. No name leads out of the folder, and no two names
are equal, also where the file system ignores case.
"""

import errno
import hashlib
import os
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from agent_logger import platform
from agent_logger.agents.registry import given_id, readable_agent
from agent_logger.archive.imported import AGENTS, BUNDLE_FORM, FILES, HEAD, HOOKS, LOGS, BundledSession
from agent_logger.archive.witness_files import Parts, is_portable
from agent_logger.errors import SourceError
from agent_logger.files.parts import open_regular
from agent_logger.files.sealed import FRAME_MAGIC, zstd
from agent_logger.home.layout import safe_name
from agent_logger.logs.hook_files import tag_in
from agent_logger.model.plurals import pluralize
from agent_logger.protocols.tar import READ_BYTES, TarError, TarMember, members

SUFFIX = ".tar.zst"
MOST_FILES = 100_000
MOST_BYTES = 10 << 30
MOST_FOLD = 200
FOLDED_FREELY_BYTES = 64 << 20  # a little may be packed as much as it likes
MOST_HEAD_BYTES = 1 << 16
DEEPEST = 32  # names of a path
WINDOW_LOG = 23  # zstd may need so many bits of memory
_OPTIONS: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}

Advance = Callable[[int], None]


def is_bundle(path: Path) -> bool:
    """Whether a file is packed as a bundle is, and has its name or begins with an archive."""
    try:
        with open_regular(path) as file:
            if file.read(len(FRAME_MAGIC)) != FRAME_MAGIC:
                return False
            file.seek(0)
            with zstd.ZstdFile(file, options=_OPTIONS) as plain:
                return path.name.endswith(SUFFIX) or bool(plain.read(512)[257:262] == b"ustar")
    except (OSError, EOFError, SourceError, zstd.ZstdError):
        return False


def unpack(path: Path, to: Path, advance: Advance) -> tuple[list[BundledSession], str]:
    """Write the files of a bundle below a new folder. Returns what it says of its sessions, and its digest. Raises
    `SourceError` if the bundle is refused; the caller removes the folder then."""
    with open_regular(path) as file:
        counted = _CountedFile(file, advance)
        try:
            with zstd.ZstdFile(counted, options=_OPTIONS) as plain:  # type: ignore[call-overload]
                reading = _Unpacking(to, counted, plain.read)
                for member in members(reading.read):
                    reading.take(member)
                while rest := reading.read(READ_BYTES):
                    if any(rest):
                        raise RefusedError("something is behind its end")
        except (TarError, zstd.ZstdError, EOFError) as error:
            raise SourceError(f"{path}: not a bundle that can be imported: {_reason(error)}") from error
        except RefusedError as error:
            raise SourceError(f"{path}: refused, nothing was imported: {error}") from error
        except FileExistsError as error:
            raise SourceError(f"{path}: refused, nothing was imported: two files have one name") from error
        except NotADirectoryError as error:
            raise SourceError(f"{path}: refused, nothing was imported: a file has the name of a folder") from error
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            what = "a path is longer than this system takes"
            raise SourceError(f"{path}: refused, nothing was imported: {what}") from error
        if not reading.heads:
            raise SourceError(f"{path}: a bundle without a session")
        return list(reading.heads.values()), counted.digest()


def _reason(error: Exception) -> str:
    return "it is cut" if isinstance(error, EOFError) else str(error)


class RefusedError(Exception):
    """The bundle has something that no bundle of ours has."""


class _CountedFile:
    """A file that is read once from its beginning: how much of it was read, and the digest of that."""

    def __init__(self, file: BinaryIO, advance: Advance) -> None:
        self._file, self._advance = file, advance
        self._hash = hashlib.sha256()
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        self.bytes += len(data)
        self._advance(len(data))
        return data

    def digest(self) -> str:
        return self._hash.hexdigest()


class _Unpacking:
    def __init__(self, to: Path, packed: _CountedFile, read: Callable[[int], bytes]) -> None:
        self._to, self._packed, self._read = to, packed, read
        self._bytes = 0
        self._names: set[tuple[str, ...]] = set()
        self.heads: dict[str, BundledSession] = {}

    def read(self, size: int) -> bytes:
        """Read exactly so many bytes, fewer only at the end."""
        pieces = []
        while size and (piece := self._read(size)):
            pieces.append(piece)
            size -= len(piece)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise RefusedError(f"more than {MOST_BYTES >> 30} GB")
        if self._bytes > max(FOLDED_FREELY_BYTES, MOST_FOLD * self._packed.bytes):
            raise RefusedError(f"packed more than {MOST_FOLD} times")
        return data

    def take(self, member: TarMember) -> None:
        parts = _checked(member.name)
        self._check_new(parts)
        if parts[1:] == (HEAD,):
            self.heads[parts[0]] = _head(parts[0], member)
        elif parts[0] not in self.heads:
            raise RefusedError(f"{member.name!r}: a file before the {HEAD} of its session")
        self._write(parts, member)

    def _check_new(self, parts: Parts) -> None:
        name = tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)
        if name in self._names:
            raise RefusedError(f"{'/'.join(parts)!r}: two files have this name")
        self._names.add(name)
        if len(self._names) > MOST_FILES:
            raise RefusedError(f"more than {pluralize(MOST_FILES, 'file')}")

    def _write(self, parts: Parts, member: TarMember) -> None:
        path = self._to.joinpath(*parts)
        platform.make_folder(path.parent)
        with platform.open_file(path, create=True) as file:
            if parts[1:] == (HEAD,):
                file.write(msgspec.json.encode(self.heads[parts[0]]))
            for chunk in member.chunks:
                file.write(chunk)
            modified = min(member.modified, int(time.time()))
            os.utime(file.fd, (modified, modified))


def _checked(name: str) -> Parts:
    """Return the parts of a name in the layout of a unit. Raises `RefusedError`."""
    parts = tuple(name.split("/"))
    quoted = repr(name[:200])
    if len(parts) > DEEPEST or any(part in ("", ".", "..") or not is_portable(part) for part in parts):
        raise RefusedError(f"{quoted}: not a path that a bundle may have")
    if safe_name(parts[0]) != parts[0] or parts[0].startswith("."):
        raise RefusedError(f"{quoted}: not the name of a session's folder")
    match parts[1:]:
        case ("session.json",):
            return parts
        case (kind, folder, *names) if names and _is_in_layout(kind, folder, names):
            return parts
    raise RefusedError(f"{quoted}: not a file that a bundle has")


def _is_in_layout(kind: str, folder: str, names: list[str]) -> bool:
    if kind == HOOKS:
        return len(names) == 1 and tag_in(names[0]) is not None and folder.isdecimal()
    if kind in (AGENTS, FILES):
        agent = readable_agent(folder)
        is_database = bool(agent and agent.location and agent.location.is_database)
        return agent is not None and len(names) > 1 and (not is_database or names[-1].endswith(".rows.jsonl"))
    return kind == LOGS


def _head(unit: str, member: TarMember) -> BundledSession:
    if member.size > MOST_HEAD_BYTES:
        raise RefusedError(f"{member.name!r} has more than {pluralize(MOST_HEAD_BYTES, 'byte')}")
    try:
        head = msgspec.json.decode(b"".join(member.chunks), type=BundledSession)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{member.name!r}: {error}") from error
    if head.form != BUNDLE_FORM or head.v != 1:
        raise RefusedError(f"{member.name!r}: version {head.v} of {head.form!r} is newer than this agent-logger")
    if safe_name(head.session) not in (unit, given_id(head.agent, unit)):
        raise RefusedError(f"{member.name!r}: the folder of another session")
    return head
