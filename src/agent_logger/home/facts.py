"""What cannot be derived: which folders hold logs of ours, and which sessions are removed. `marks` has what people say
of a session."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_logger.clock import CLOCK
from agent_logger.files.append import append_shared
from agent_logger.home.layout import facts_path
from agent_logger.home.small_files import read_small_file

MOST_BYTES = 256 << 20

_unwritten: dict[Path, dict[Path, None]] = {}  # by home: folders that could not be written to it


def register_log_folder(home: Path, folder: Path, *, warns: bool = True) -> None:
    """Write down that a folder holds logs, so that other commands find them. If the home cannot be written to,
    recording continues, and only this process knows the folder."""
    path, fact = facts_path(home), {"type": "log_folder", "path": str(folder.resolve())}
    try:
        content = path.read_bytes() if path.exists() else b""
        if msgspec.json.encode(fact)[:-1] not in content:
            append_shared(path, msgspec.json.encode({**fact, "ts": CLOCK.now()}))
    except OSError as error:
        _unwritten.setdefault(home, {})[folder.resolve()] = None
        if not warns:
            return
        import logging  # every command reads facts, and hardly any has this to say

        logging.getLogger("agent_logger.home").warning("%s: %s", path, error)


class _LogFolder(msgspec.Struct, frozen=True, tag_field="type", tag="log_folder"):
    path: str


def known_folders(home: Path) -> list[Path]:
    """The folders that logs were ever written to, whether they still exist or not."""
    written = (Path(fact.path) for fact in _facts(home, _LogFolder) if fact.path)
    return list(dict.fromkeys([*written, *_unwritten.get(home, ())]))


class Tombstone(msgspec.Struct, frozen=True, tag_field="type", tag="tombstone"):
    """A session that was removed. It does not come back, even if a source still holds it."""

    session: str
    paths: tuple[str, ...]  # of what is to be deleted; none once it is
    ts: str


def bury(home: Path, session: str, paths: Iterable[Path]) -> None:
    """Write down that a session was removed. Raises `OSError`."""
    stone = Tombstone(session, tuple(map(str, paths)), CLOCK.now())
    append_shared(facts_path(home), msgspec.json.encode(stone))


def tombstones(home: Path) -> dict[str, Tombstone]:
    return {fact.session: fact for fact in _facts(home, Tombstone)}


F = TypeVar("F", _LogFolder, Tombstone)


def fact_lines(home: Path) -> list[bytes]:
    """Return the lines of the file; none if it cannot be read. The home may be somebody else's."""
    return read_small_file(facts_path(home), MOST_BYTES).split(b"\n")


def _facts(home: Path, kind: type[F]) -> Iterator[F]:
    for line in fact_lines(home):
        try:
            yield msgspec.json.decode(line, type=kind)
        except (ValueError, RecursionError):  # another fact
            continue
