"""Certificates of the forward door: a CA for this installation alone, and short-lived leaves in memory.

The CA certificate permits the recorded hosts and nothing else, so a stolen key can impersonate nothing else. It is in
no trust store: children get its file in variables. If hosts are added, the certificate is issued again, with the same
key and subject. A client that runs has read the certificate of its start, and accepts leaves for the hosts of that time
only. So for each run the door opens the hosts of its start, and an added one only for clients that start later.

`cryptography` is imported when the first certificate is needed.
"""

import os
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agent_logger.clock import CLOCK, Clock
from agent_logger.errors import StoreError
from agent_logger.proxy.forward.hosts import RecordedHosts, are_permitted, host_name

if TYPE_CHECKING:
    from agent_logger.proxy.forward.ca_files import CaFiles, CaPairs, SigningPair

_DAY = 86_400
LEAF_SECONDS = 30 * _DAY
LEAF_BACKDATED_SECONDS = _DAY  # for clients whose clock is slow
_LEAF_USED_SECONDS = LEAF_SECONDS // 2
_LEAVES_KEPT = 256  # a wildcard has any number of hosts
_RETRY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Leaf:
    context: ssl.SSLContext
    signer: "SigningPair"
    start: float
    end: float


class Authority:
    """The CA of a home, for any number of threads. Several processes may have it open: they share its files, and each
    notices within the next call if another one replaced them.

    Nothing is read or written before the first call. What is damaged is made again; `notices` says so.
    """

    def __init__(self, home: Path, hosts: RecordedHosts, clock: Clock = CLOCK) -> None:
        self.hosts = hosts
        self._home, self._clock = home, clock
        self._lock = threading.RLock()
        self._files: CaFiles | None = None
        self._pairs: CaPairs | None = None
        self._leaves: dict[str, _Leaf] = {}
        self._failure: StoreError | None = None
        self._retry_at = 0.0
        self.notices: tuple[str, ...] = ()

    def opens(self, host: str) -> bool:
        """Whether a tunnel to this host can be opened: the host is recorded, and the certificate permits it. If the CA
        cannot be used, no host is opened; `problem` has the reason."""
        if not self.hosts.covers(host):
            return False
        try:
            pairs = self._current()
        except StoreError:
            return False
        return are_permitted((host_name(host),), pairs.current.certificate.subtrees)

    @property
    def problem(self) -> str | None:
        """Why the CA cannot be used, as one line for people."""
        return str(self._failure) if self._failure else None

    def server_context(self, host: str) -> ssl.SSLContext:
        """Return the TLS settings of a server with a certificate for this host: HTTP/1.1, TLS 1.2 and 1.3. A second
        call takes microseconds. Raises `StoreError` if the CA cannot be used, or does not permit the host."""
        name, now = host_name(host), self._clock.wall()
        pairs = self._current()
        if leaf := self._leaf(name, pairs, now):
            return leaf.context
        with self._lock:
            leaf = self._leaf(name, pairs, now) or self._issue(name, pairs, now)
            return leaf.context

    def certificates(self) -> tuple[bytes, ...]:
        """Return the certificates, as PEM, that a client must trust: one, and for a day after a renewal two. Raises
        `StoreError`."""
        pairs = self._current()
        in_use = (pairs.current, pairs.previous) if pairs.previous else (pairs.current,)
        return tuple(pair.certificate.pem for pair in in_use)

    def pairs(self) -> "CaPairs":
        """Return the certificates with their keys. Raises `StoreError`."""
        return self._current()

    def renew(self) -> None:
        """Make a new key, for the hosts that are recorded now. The old one signs for another day, for clients that run.
        Raises `StoreError`."""
        with self._lock:
            self._open(renew=True)

    def _current(self) -> "CaPairs":
        if pairs := self._usable():
            return pairs
        with self._lock:
            if pairs := self._usable():
                return pairs  # opened by another thread meanwhile
            if self._failure is not None and time.monotonic() < self._retry_at:
                raise self._failure
            return self._open()

    def _usable(self) -> "CaPairs | None":
        """Return the pairs that were read last, unless there is something to read or to do."""
        pairs = self._pairs
        if pairs is None or self._files is None:
            return None
        stamp, now = self._files.stamp(), self._clock.wall()
        could_not_be_renewed = time.monotonic() < self._retry_at and now in pairs.current.certificate.validity
        # Files that are gone were removed by a person: clients that run still trust this certificate.
        is_unchanged = stamp == pairs.stamp or None in stamp
        return pairs if is_unchanged and (now in pairs.good or could_not_be_renewed) else None

    def _open(self, *, renew: bool = False) -> "CaPairs":
        from agent_logger.proxy.forward.ca_files import CaFiles

        files = self._files = self._files or CaFiles(self._home)
        now, retry_at = self._clock.wall(), time.monotonic() + _RETRY_SECONDS
        try:
            pairs = files.open(self.hosts.subtrees, now, renew=renew)
        except StoreError as error:
            self._failure, self._retry_at = error, retry_at
            raise
        self._pairs, self._failure = pairs, None
        self._retry_at = 0.0 if now in pairs.good else retry_at
        self.notices = (*self.notices, *pairs.notices)[-20:]
        return pairs

    def _leaf(self, host: str, pairs: "CaPairs", now: float) -> _Leaf | None:
        leaf = self._leaves.get(host)
        if leaf is not None and leaf.signer is _signer(pairs, host) and leaf.start <= now < leaf.end:
            return leaf
        return None

    def _issue(self, host: str, pairs: "CaPairs", now: float) -> _Leaf:
        from agent_logger.proxy.forward.issuing import Validity, issue_leaf, key_pem

        signer = _signer(pairs, host)
        certificate = signer.certificate
        if not are_permitted((host,), certificate.subtrees):
            raise StoreError(f"the certificate of {self._home / 'ca'} does not permit {host}; it is not recorded")
        start, end = int(now) - LEAF_BACKDATED_SECONDS, int(now) + LEAF_SECONDS - LEAF_BACKDATED_SECONDS
        validity = Validity(max(start, certificate.validity.start), min(end, certificate.validity.end))
        key, pem = issue_leaf(host, certificate, signer.key, validity)
        try:
            context = _server_context(pem + key_pem(key))
        except OSError as error:
            raise StoreError(f"cannot use a certificate for {host}: {error.strerror}") from error
        leaf = _Leaf(context, signer, validity.start, min(now + _LEAF_USED_SECONDS, validity.end))
        while len(self._leaves) >= _LEAVES_KEPT:
            del self._leaves[next(iter(self._leaves))]
        self._leaves[host] = leaf
        return leaf


def _signer(pairs: "CaPairs", host: str) -> "SigningPair":
    """Return the pair that all clients trust which may ask for this host."""
    previous = pairs.previous
    if previous is not None and are_permitted((host,), previous.certificate.subtrees):
        return previous
    return pairs.current


def _server_context(pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    with _as_file(pem) as path:
        context.load_cert_chain(path)
    return context


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Write bytes to a file that only this process can read, for a moment: OpenSSL reads certificates from files only.
    Where the system can, the file is in memory."""
    with _memory_file() or tempfile.NamedTemporaryFile(prefix="agent-logger-", suffix=".pem") as file:
        file.write(data)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if isinstance(file.name, int) else file.name


def _memory_file() -> BinaryIO | None:
    if sys.platform != "linux" or not os.path.isdir("/proc/self/fd"):
        return None
    return os.fdopen(os.memfd_create("agent-logger"), "wb")
