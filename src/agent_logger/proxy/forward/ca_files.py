"""The files of the CA: `<home>/ca/`, which nobody but their owner may read.

| file | |
|---|---|
| `ca.pem`, `ca-key.pem` | the certificate and its key |
| `previous-ca.pem`, `previous-ca-key.pem` | those before the last renewal, in use for a day |

A key is written before its certificate. If a crash comes between the two, the certificate is issued again. What is
damaged, or may have been read by others, is replaced, and a notice says so.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.proxy.forward.hosts import are_permitted, reduced
from agent_logger.proxy.forward.issuing import (
    CaCertificate,
    PrivateKey,
    Validity,
    issue_ca,
    key_pem,
    new_key,
    read_certificate,
    read_key,
)

DAY = 86_400
BACKDATED_SECONDS = DAY  # for clients whose clock is slow
VALID_SECONDS = 365 * DAY
RENEWED_BEFORE_SECONDS = 30 * DAY
OVERLAP_SECONDS = DAY  # in which a key is used that was replaced
_LARGEST_FILE = 1 << 20

CERTIFICATE, KEY = "ca.pem", "ca-key.pem"
PREVIOUS = "previous-"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SigningPair:
    """A CA certificate with its key."""

    certificate: CaCertificate
    key: PrivateKey


@dataclass(frozen=True, slots=True)
class CaPairs:
    """The pair in use, and the one before it while it signs: clients that run trust no other."""

    current: SigningPair
    previous: SigningPair | None
    # What was wrong with the files and what was done, for people.
    notices: tuple[str, ...] = ()
    # What changes whenever a file does.
    stamp: tuple[object, ...] = ()

    @property
    def good(self) -> Validity:
        """The time in which nothing has to be done."""
        validity = self.current.certificate.validity
        end = validity.end - RENEWED_BEFORE_SECONDS
        if self.previous is not None:
            end = min(end, overlap_end(self.current), self.previous.certificate.validity.end)
        return Validity(validity.start, end)


def overlap_end(current: SigningPair) -> int:
    """When the pair before this one is no longer used. A certificate that is issued again keeps its dates."""
    return current.certificate.validity.start + BACKDATED_SECONDS + OVERLAP_SECONDS


class _UnusableError(Exception):
    """A file that cannot be used, and why."""


class CaFiles:
    """The folder `<home>/ca`. Everything raises `OSError` where the disk fails."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "ca"
        self._certificate_path, self._key_path = str(self.folder / CERTIFICATE), str(self.folder / KEY)
        self._notices: list[str] = []

    def stamp(self) -> tuple[object, ...]:
        """Return what changes whenever a file does."""
        return _stamp(self._certificate_path), _stamp(self._key_path)

    def open(self, subtrees: tuple[str, ...], now: float, *, renew: bool = False) -> CaPairs:
        """Read the files, and make or issue again what is missing, damaged or expired, or does not permit the names.
        Of many processes that do this at once, one makes the key. `renew`: replace the key in any case. Raises
        `StoreError`."""
        try:
            platform.make_folder(self.home)
            platform.make_folder(self.folder, top=self.home)
            with platform.exclusive_in(self.folder):
                self._notices = []
                return self._open(subtrees, now, renew)
        except OSError as error:
            raise StoreError(f"cannot use {self.folder}: {error.strerror}") from error

    def _open(self, subtrees: tuple[str, ...], now: float, renew: bool) -> CaPairs:
        is_private = self._make_private()
        self._remove_leftovers()
        key = self._key(KEY) if is_private else None
        certificate = self._certificate(CERTIFICATE, key) if key else None
        if key is None:
            current = self._issue(self._store_key(), subtrees, _new_validity(now))
        elif certificate is None or now < certificate.validity.start:
            current = self._issue(key, subtrees, _new_validity(now))
        else:
            current = self._kept_up(SigningPair(certificate, key), subtrees, now, renew)
        previous = self._previous(current, now) if is_private else None
        return CaPairs(current, previous, tuple(self._notices), self.stamp())

    def _kept_up(self, pair: SigningPair, subtrees: tuple[str, ...], now: float, renew: bool) -> SigningPair:
        """Renew the pair if it is time, or issue its certificate again if it lacks names. If neither can be written, a
        pair that is valid remains in use."""
        certificate = pair.certificate
        all_subtrees = reduced((*certificate.subtrees, *subtrees))  # another process may need the others
        try:
            if renew:
                return self._renew(pair, subtrees, now)
            if now >= certificate.validity.end - RENEWED_BEFORE_SECONDS:
                return self._renew(pair, all_subtrees, now)
            if not are_permitted(subtrees, certificate.subtrees):
                return self._issue(pair.key, all_subtrees, certificate.validity)
        except OSError as error:
            if renew or now not in certificate.validity:
                raise
            self._notices.append(f"cannot write {self.folder}: {error.strerror}; the old certificate remains in use")
        return pair

    def _renew(self, pair: SigningPair, subtrees: tuple[str, ...], now: float) -> SigningPair:
        if now in pair.certificate.validity:
            self._write(PREVIOUS + KEY, key_pem(pair.key))
            self._write(PREVIOUS + CERTIFICATE, pair.certificate.pem)
        key = new_key()
        self._write(KEY, key_pem(key))
        return self._issue(key, subtrees, _new_validity(now))

    def _issue(self, key: PrivateKey, subtrees: tuple[str, ...], validity: Validity) -> SigningPair:
        certificate = issue_ca(key, subtrees, validity)
        self._write(CERTIFICATE, certificate.pem)
        return SigningPair(certificate, key)

    def _store_key(self) -> PrivateKey:
        """Make a key, and write it unless another process, where locks do not work, was faster."""
        path, key = self.folder / KEY, new_key()
        if not _exists(path):
            temporary = self.folder / f".{KEY}.{os.getpid()}-{os.urandom(4).hex()}"
            with platform.open_file(temporary, create=True, top=self.home) as opened:
                try:
                    opened.write(key_pem(key))
                    platform.sync(opened.fd)
                    os.link(temporary, path)
                    return key
                except FileExistsError:
                    return self._key(KEY) or key
                except OSError as error:
                    if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                        raise  # others: a file system without links
                finally:
                    temporary.unlink(missing_ok=True)
        self._write(KEY, key_pem(key))
        return key

    def _previous(self, current: SigningPair, now: float) -> SigningPair | None:
        """Return the pair before this one while it is in use, and remove it afterwards."""
        if not _exists(self.folder / (PREVIOUS + KEY)):
            return None
        key = self._key(PREVIOUS + KEY)
        certificate = self._certificate(PREVIOUS + CERTIFICATE, key) if key else None
        is_in_use = key and certificate and not current.certificate.is_of(key) and now < overlap_end(current)
        if key and certificate and is_in_use and now in certificate.validity:
            return SigningPair(certificate, key)
        with suppress(OSError):
            for name in (PREVIOUS + KEY, PREVIOUS + CERTIFICATE):
                (self.folder / name).unlink(missing_ok=True)
        return None

    def _make_private(self) -> bool:
        """Take the folder's rights from all others. Returns whether nobody else could write there until now."""
        status = os.stat(self.folder)
        if status.st_uid not in (0, os.geteuid()):
            raise StoreError(
                f"{self.folder} belongs to another user (uid {status.st_uid}), so no certificate is used from there; "
                "move it away"
            )
        if status.st_mode & 0o077:
            os.chmod(self.folder, platform.FOLDER_MODE)
        if status.st_mode & 0o022:
            self._notices.append(f"other users could write to {self.folder}; a new key was made")
        return not status.st_mode & 0o022

    def _remove_leftovers(self) -> None:
        """Remove the files that a process was writing when it was killed."""
        with suppress(OSError):
            for path in self.folder.glob(f".{KEY}.*"):
                path.unlink()

    def _key(self, name: str) -> PrivateKey | None:
        return self._read(name, lambda pem: read_key(pem), "a new key was made", is_secret=True)

    def _certificate(self, name: str, key: PrivateKey) -> CaCertificate | None:
        def of_key(pem: bytes) -> CaCertificate:
            certificate = read_certificate(pem)
            if not certificate.is_of(key):
                raise _UnusableError("belongs to another key")
            return certificate

        return self._read(name, of_key, "the certificate was issued again", is_secret=False)

    def _read(self, name: str, parse: Callable[[bytes], T], remedy: str, *, is_secret: bool) -> T | None:
        path = self.folder / name
        try:
            return parse(_content(path, is_secret=is_secret))
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = f"{path} cannot be read ({error.strerror})"
        except _UnusableError as error:
            reason = f"{path} {error}"
        except ValueError:
            reason = f"{path} is damaged"
        self._notices.append(f"{reason}; {remedy}")
        return None

    def _write(self, name: str, data: bytes) -> None:
        platform.replace_file(self.folder / name, data, synced=True, top=self.home)


def _new_validity(now: float) -> Validity:
    return Validity(int(now) - BACKDATED_SECONDS, int(now) + VALID_SECONDS)


def _content(path: Path, *, is_secret: bool) -> bytes:
    """Return the bytes of a file of ours. Raises `_UnusableError` if others could read a secret, or could have written
    the file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode):
            raise _UnusableError("is not a regular file")
        if status.st_uid not in (0, os.geteuid()):
            raise _UnusableError(f"belongs to another user (uid {status.st_uid})")
        if is_secret and mode & 0o077:
            raise _UnusableError(f"could be read by other users (mode {mode:o})")
        return file.read(_LARGEST_FILE)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
