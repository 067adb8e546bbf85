"""What a client says first in TLS: the host it wants, the protocols and the versions it offers."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SERVER_NAME, ALPN, VERSIONS = 0, 16, 43
NAMES = {0x0301: "1.0", 0x0302: "1.1", 0x0303: "1.2", 0x0304: "1.3"}


@dataclass(frozen=True)
class ClientHello:
    server_name: str | None
    alpn: tuple[str, ...]
    versions: tuple[str, ...]

    @classmethod
    def parse(cls, data: bytes) -> "ClientHello | None":
        """Read the message at the beginning of a connection; `None` if it is not one, or not all of it is there."""
        try:
            return cls._parse(data)
        except (struct.error, IndexError, UnicodeDecodeError):
            return None

    @classmethod
    def _parse(cls, data: bytes) -> "ClientHello | None":
        if len(data) < 9 or data[0] != 22 or data[5] != 1 or len(data) < 5 + struct.unpack_from(">H", data, 3)[0]:
            return None
        (version,) = struct.unpack_from(">H", data, 9)
        position = 43  # after the random bytes
        position += 1 + data[position]  # the session id
        position += 2 + struct.unpack_from(">H", data, position)[0]  # cipher suites
        position += 1 + data[position]  # compression
        (length,) = struct.unpack_from(">H", data, position)
        extensions = dict(_extensions(data[position + 2 : position + 2 + length]))
        named = extensions.get(SERVER_NAME)
        versions = extensions.get(VERSIONS)
        offered = struct.unpack(f">{(len(versions) - 1) // 2}H", versions[1:]) if versions else (version,)
        return cls(
            named[5:].decode() if named else None,
            tuple(_names(extensions.get(ALPN, b"\0\0")[2:])),
            tuple(sorted(NAMES[number] for number in offered if number in NAMES)),
        )


def _extensions(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        kind, length = struct.unpack_from(">HH", data)
        if len(data) < 4 + length:
            raise IndexError("cut off")
        yield kind, data[4 : 4 + length]
        data = data[4 + length :]


def _names(data: bytes) -> Iterator[str]:
    while data:
        yield data[1 : 1 + data[0]].decode()
        data = data[1 + data[0] :]
