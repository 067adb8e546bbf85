"""Where things are: our home, log folders, and names that are safe as file names."""

import os
import re
from contextlib import suppress
from pathlib import Path

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.files.append import append_once
from agent_logger.model.plurals import pluralize

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOOKS_LIKE_A_PART = re.compile(r".*\.p[0-9]+|.*\.jsonl.*")
KEY_BYTES = 32


def safe_name(outside: str) -> str:
    """A file name for an id from outside: the id itself if it can do no harm, else its hash."""
    if _SAFE.fullmatch(outside) and not _LOOKS_LIKE_A_PART.fullmatch(outside):
        return outside
    return _hashed(outside)


_HASH = re.compile(r"[0-9a-f]{32}")
# Files beside transcripts that do not belong to them.
_TAKEN = re.compile(r"memory|sessions-index\.json|.*\.bodies", re.IGNORECASE)


def session_name(session_id: str) -> str:
    """The name of a session's transcript and of the folder beside it. No two ids share a name: an id that looks like a
    hash is hashed too."""
    if _HASH.fullmatch(session_id) or _TAKEN.fullmatch(session_id):
        return _hashed(session_id)
    return safe_name(session_id)


def is_hashed(name: str) -> bool:
    """Whether a name made by these functions is a hash, from which the id cannot be derived."""
    return _HASH.fullmatch(name) is not None


_PROJECT = re.compile(r"[A-Za-z0-9-]{1,220}")


def project_folder(key: str) -> str:
    """The name of a project's folder, for a key that a client made of its path."""
    return key if _PROJECT.fullmatch(key) and not _HASH.fullmatch(key) else _hashed(key)


def _hashed(outside: str) -> str:
    import hashlib  # seldom, and it takes its time

    return hashlib.sha256(outside.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def make_log_folder(path: Path) -> None:
    """Make a log folder, unless it exists. A new one gets a `.gitignore`: logs do not belong in a repository.
    Raises `OSError`."""
    if platform.make_folder(path):
        append_once(path / ".gitignore", b"*")


def prepare_log_folder(path: Path) -> None:
    """Make a log folder, and check that it can be written to. Raises `StoreError` with a one-line message.

    This is for start-up: later, a folder that cannot be written to loses records, but stops nothing.
    """
    try:
        make_log_folder(path)
        probe = path / ".write-test"
        probe.unlink(missing_ok=True)
        with suppress(FileExistsError):  # written by another process that is starting
            platform.open_file(probe, create=True).close()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write to {path}: {error.strerror}; choose another folder") from error


def install_key(home: Path) -> bytes:
    """The 32 random bytes that HMACs of this installation are made with. Raises `StoreError`."""
    path = home / "key"
    try:
        if not path.exists():
            _create_key(home, path)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}") from error
    if len(key) != KEY_BYTES:
        raise StoreError(
            f"{path} has {pluralize(len(key), 'byte')} instead of {KEY_BYTES}; move it away, and a new one is created"
        )
    return key


def existing_key(home: Path) -> bytes | None:
    """The key, if there is one that can be used. Creates nothing."""
    try:
        key = (home / "key").read_bytes()
    except OSError:
        return None
    return key if len(key) == KEY_BYTES else None


def _create_key(home: Path, path: Path) -> None:
    """Create the key file whole or not at all. The first process wins, however many start at once."""
    platform.make_folder(home)
    temporary = home / f".key-{os.getpid()}-{os.urandom(4).hex()}"
    with platform.open_file(temporary, create=True) as held:
        try:
            held.write(os.urandom(KEY_BYTES))
            platform.sync(held.fd)
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink()


def facts_path(home: Path) -> Path:
    """The file of what cannot be derived: known log folders, names, tags, tombstones."""
    return home / "facts.jsonl"
