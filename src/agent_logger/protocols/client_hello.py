"""The first message of a TLS client, as far as a proxy must know it before it answers."""

import hashlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

RECORD_TYPE = 22  # of a record with a handshake message
LONGEST_HELLO = 64 << 10
_RECORD = struct.Struct(">BBBH")  # type, version, length
_CLIENT_HELLO = 1
# Extensions.
_ALPN, _VERSIONS = (number.to_bytes(2) for number in (16, 43))
# Those that differ between connections of one client: name, padding, and what belongs to resumption and retries.
_VARYING = frozenset(number.to_bytes(2) for number in (0, 21, 41, 42, 44))


class NotTlsError(ValueError):
    """Bytes that are not the beginning of a TLS connection."""


class ClientHello(NamedTuple):
    protocols: tuple[bytes, ...]  # what ALPN offers; nothing without ALPN
    # The same for all connections of one TLS library with one configuration, whatever the host.
    fingerprint: bytes

    @property
    def may_speak_http1(self) -> bool:
        return not self.protocols or b"http/1.1" in self.protocols or b"http/1.0" in self.protocols


def begins_tls(data: bytes) -> bool | None:
    """Whether data is the beginning of a TLS record with a handshake; `None` if that cannot be said yet."""
    start = bytes((RECORD_TYPE, 3))
    if not data.startswith(start[: len(data)]):
        return False
    return True if len(data) >= len(start) else None


def read_client_hello(data: bytes) -> ClientHello | None:
    """Read the first message of a connection; `None` if it is incomplete. Raises `NotTlsError`."""
    message = b""
    while not _is_whole(message):
        if len(data) < _RECORD.size:
            return None
        kind, major, _, length = _RECORD.unpack_from(data)
        if kind != RECORD_TYPE or major != 3 or not length:
            raise NotTlsError("not a TLS handshake")
        message += data[_RECORD.size : _RECORD.size + length]
        data = data[_RECORD.size + length :]
        if (message and message[0] != _CLIENT_HELLO) or len(message) > LONGEST_HELLO:
            raise NotTlsError("not a ClientHello")
    return _parse(message)


def _is_whole(message: bytes) -> bool:
    return len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4])


def _parse(message: bytes) -> ClientHello:
    try:
        return _fields(_Reader(message[4 : 4 + int.from_bytes(message[1:4])]))
    except IndexError as error:
        raise NotTlsError("a ClientHello that is not valid") from error


def _fields(hello: "_Reader") -> ClientHello:
    version = hello.take(2)
    hello.take(32)  # random
    hello.vector(1)  # session id
    suites = hello.vector(2)
    hello.vector(1)  # compression
    extensions = _Reader(hello.vector(2).data if hello.data else b"")
    protocols: tuple[bytes, ...] = ()
    kinds: list[bytes] = []
    details = b""
    while extensions.data:
        kind, content = extensions.take(2), extensions.vector(2)
        if not _is_grease(kind):
            kinds.append(kind)
        if kind == _ALPN:
            protocols = tuple(_each(content.vector(2)))
            details += b"\0".join(protocols)
        elif kind == _VERSIONS:
            details += _without_grease(content.vector(1))
    constant = sorted(kind for kind in kinds if kind not in _VARYING)  # some clients shuffle them
    facts = b"\1".join([version, _without_grease(suites), b"".join(constant), details])
    return ClientHello(protocols, hashlib.sha256(facts).digest()[:16])


def _each(reader: "_Reader") -> Iterator[bytes]:
    while reader.data:
        yield reader.vector(1).data


def _is_grease(value: bytes) -> bool:
    """Whether a value is one of those that clients make up, so that servers stay tolerant (RFC 8701)."""
    return value[0] == value[1] and value[0] & 0x0F == 0x0A


def _without_grease(values: "_Reader") -> bytes:
    data = values.data
    pairs = (data[at : at + 2] for at in range(0, len(data) - 1, 2))
    return b"".join(pair for pair in pairs if not _is_grease(pair))


class _Reader:
    """Takes fields off the front. `IndexError`: there are fewer bytes than a field needs."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if len(self.data) < count:
            raise IndexError(count)
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def vector(self, size: int) -> "_Reader":
        """Take a field that begins with its own length, a number of so many bytes."""
        return _Reader(self.take(int.from_bytes(self.take(size))))
