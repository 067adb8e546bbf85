"""How the pieces of an answer reach the client, and how that goes wrong when the turn says so."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from agent_logger.demo.http import HEAD_LIMIT, Reply

from .calls import Call
from .turns import FakeTurn

RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds: close sends RST, not FIN
READ_SECONDS = 0.1  # for the client to read what it was sent, before an end that may take it away

Pause = Callable[[float], Awaitable[None]]  # milliseconds


class Channel(Protocol):
    reply: Reply

    async def write(self, piece: bytes) -> None: ...

    async def end(self) -> None: ...


class HttpChannel:
    """Every piece is a write of its own to the socket, or several of `split_bytes`."""

    def __init__(self, reply: Reply, call: Call, split_bytes: int) -> None:
        self.reply, self._call, self._split_bytes = reply, call, split_bytes

    async def write(self, piece: bytes) -> None:
        for part in split(piece, self._split_bytes):
            await asyncio.sleep(0)  # the other connections' turn; not after the last part, whose end follows
            self._call.sent += part
            await self.reply.write(part)

    async def end(self) -> None:
        await self.reply.end()


def split(data: bytes, size: int) -> Iterator[bytes]:
    """Parts of `size` bytes; size 0 is all in one."""
    step = size or len(data) or 1
    return (data[i : i + step] for i in range(0, len(data), step))


async def deliver(pieces: Sequence[bytes], turn: FakeTurn, channel: Channel, pause: Pause) -> None:
    """Send the pieces, with the turn's faults. A fault past the last piece comes before the end."""
    due = pieces[: turn.disconnect_after]  # None: all of them
    for number, piece in enumerate(due):
        if number == turn.stall_after and await left(channel.reply, turn.stall_s):
            return
        await channel.write(piece)
        if turn.chunk_ms:
            await pause(turn.chunk_ms)
    if turn.stall_after is not None and turn.stall_after >= len(due) and await left(channel.reply, turn.stall_s):
        return
    if turn.disconnect_after is None:
        if turn.end_ms:
            await pause(turn.end_ms)
        await channel.end()
    else:
        await asyncio.sleep(READ_SECONDS)
        cut(channel.reply, turn)


def cut(reply: Reply, turn: FakeTurn) -> None:
    """End the connection without a proper end."""
    if turn.disconnect == "rst":
        sock = reply.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        reply.writer.transport.abort()
    reply.writer.close()


async def left(reply: Reply, seconds: float) -> bool:
    """Whether the client closes its side within that time. What it sends is thrown away."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while await reply.reader.read(HEAD_LIMIT):
                pass
            return True
    return False
