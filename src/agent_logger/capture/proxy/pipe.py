"""The pipe from the proxy to the recorder: the values of credentials, which never touch a disk.

Each message is its length and a `Credential` in msgpack. The end of the pipe says that the recorder is to finish.
"""

import os
import select
import struct
import time
from collections.abc import Mapping, Sequence

import msgspec

from agent_logger.capture.proxy.frames import Credential, Mask
from agent_logger.capture.proxy.segments import Follower

POLL_SECONDS = 0.02
CREDENTIAL_SECONDS = 1.0  # to wait for one whose frame is here already
LENGTH = struct.Struct("<I")  # before each message of the pipe


def message(credential: Credential) -> bytes:
    data = msgspec.msgpack.encode(credential)
    return LENGTH.pack(len(data)) + data


class Pipe:
    """Credentials, as they come."""

    def __init__(self, fd: int) -> None:
        self.ended = False
        self._fd, self._data = fd, bytearray()
        self._values: dict[str, dict[int, bytes]] = {}
        self._missing: set[tuple[str, int]] = set()  # waited for in vain
        os.set_blocking(fd, False)

    def drain(self) -> None:
        while not self.ended:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            self.ended = not data
            self._data += data
        while len(self._data) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._data)
            if len(self._data) < LENGTH.size + length:
                return
            message = bytes(self._data[LENGTH.size : LENGTH.size + length])
            del self._data[: LENGTH.size + length]
            credential = msgspec.msgpack.decode(message, type=Credential)
            self._values.setdefault(credential.relay, {})[credential.index] = credential.value

    def wait(self, seconds: float) -> None:
        if self.ended:
            time.sleep(seconds)
        else:
            select.select([self._fd], [], [], seconds)

    def values(self, relay: Follower, masks: Sequence[Mask]) -> Mapping[int, bytes]:
        known = self._values.setdefault(relay.relay, {})
        give_up = time.monotonic() + CREDENTIAL_SECONDS
        while (
            missing := {(relay.relay, it.credential) for it in masks if it.credential not in known}
            - self._missing
        ):
            relay.look()
            if relay.gone or self.ended or time.monotonic() > give_up:
                self._missing |= missing
                break
            self.wait(POLL_SECONDS)
            self.drain()
        return known
