"""The pipe from the proxy to the recorder: the values of credentials, which never touch a disk.

Each message is its length and a `CredentialFrame` in msgpack. The end of the pipe says that the recorder is to finish.
"""

import os
import select
import struct
import time
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from agent_logger.proxy.spool.frames import REMEMBERED, CredentialFrame, Mask
from agent_logger.proxy.spool.segments import SpoolFollower

POLL_SECONDS = 0.02
CREDENTIAL_SECONDS = 1.0  # how long to wait for a credential that a frame names, while none arrives
LENGTH = struct.Struct("<I")  # the length, before each message of the pipe


def message(value: msgspec.Struct) -> bytes:
    data = msgspec.msgpack.encode(value)
    return LENGTH.pack(len(data)) + data


class _Credentials:
    """The credentials of one relay. They come in the order of their indexes."""

    def __init__(self) -> None:
        self.values: OrderedDict[int, bytes] = OrderedDict()
        self._last = -1  # the index of the last credential that arrived, or was given up
        self._last_index = -1  # the highest index that a frame named

    def add(self, credential: CredentialFrame) -> None:
        self.values[credential.index] = credential.value
        self._last = max(self._last, credential.index)

    def may_arrive(self, index: int) -> bool:
        """Whether the credential may still be on its way."""
        return index > self._last

    def give_up(self, index: int) -> None:
        self._last = index

    def mark_used(self, index: int) -> None:
        """Forget what is far behind the frames; how far the pipe is ahead of them does not matter."""
        if index <= self._last_index:
            return
        self._last_index = index
        while self.values and next(iter(self.values)) < self._last_index - 2 * REMEMBERED:
            self.values.popitem(last=False)


class Pipe:
    """The credentials, as they come."""

    def __init__(self, fd: int) -> None:
        self.ended = False
        self._fd, self._data = fd, bytearray()
        self._relays: defaultdict[str, _Credentials] = defaultdict(_Credentials)
        self._lasting: list[bytes] = []  # lasting credentials that were not taken yet
        os.set_blocking(fd, False)

    def drain(self) -> bool:
        """Read all that is in the pipe. Returns whether there was anything."""
        before = len(self._data)
        while not self.ended:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            self.ended = not data
            self._data += data
        has_more = len(self._data) > before
        while len(self._data) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._data)
            if len(self._data) < LENGTH.size + length:
                break
            message = bytes(self._data[LENGTH.size : LENGTH.size + length])
            del self._data[: LENGTH.size + length]
            credential = msgspec.msgpack.decode(message, type=CredentialFrame)
            self._relays[credential.relay].add(credential)
            if credential.lasting:
                self._lasting.append(credential.value)
        return has_more

    def take_lasting(self) -> list[bytes]:
        """Take the lasting credentials that came since the last time. They are here before the frames of their calls,
        which the relay may be slow to write."""
        self.drain()
        new, self._lasting = self._lasting, []
        return new

    def wait(self, seconds: float) -> None:
        if self.ended:
            time.sleep(seconds)
        else:
            select.select([self._fd], [], [], seconds)

    def values(self, relay: SpoolFollower, masks: Sequence[Mask]) -> Mapping[int, bytes]:
        """The values of a relay's credentials, also of one that is gone: what it sent may still be in the pipe. Nothing
        is known of a relay of an earlier run."""
        values_known = self._relays[relay.relay]
        newest = max([mask.credential for mask in masks], default=-1)
        values_known.mark_used(newest)
        if values_known.may_arrive(newest):
            self._await(relay, values_known, newest)
        return values_known.values

    def _await(self, relay: SpoolFollower, credentials: _Credentials, index: int) -> None:
        give_up = time.monotonic() + CREDENTIAL_SECONDS
        while credentials.may_arrive(index):
            if self.drain():
                give_up = time.monotonic() + CREDENTIAL_SECONDS
                continue
            relay.look()
            if self.ended or time.monotonic() > give_up or (relay.gone and not credentials.values):
                credentials.give_up(index)
                break
            self.wait(POLL_SECONDS)
