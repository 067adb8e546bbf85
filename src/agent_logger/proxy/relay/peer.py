"""Whether a client that will send no more still listens.

Its FIN means "I have sent everything" or "I am gone", and TCP does not tell which before we send something; an agent
that was interrupted while the model thinks would cost money until then. But clients are on this machine, so its kernel
knows: a socket that nobody holds has no inode.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
from typing import Any, Protocol

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY, _ERROR = 20, 2  # message types
_MESSAGE = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_SOCKET = struct.Struct("!HH16s16s12s")
_INODE = struct.Struct("=I")
# The inode follows family, state, timer and retransmits, the id, and four numbers.
_INODE_AT = _MESSAGE.size + 4 + _SOCKET.size + 16
_ANY = 0xFFFFFFFF
_NO_COOKIE = bytes(4) + b"\xff" * 8  # the interface (0: any), then the cookie

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds
FLUSH_SECONDS = 30.0  # time for a slow client to read what came before a reset
_LOOK_SECONDS = 0.01


class Peer(Protocol):
    """What is asked of a transport here."""

    def get_extra_info(self, name: str, default: Any = None) -> Any: ...
    def is_closing(self) -> bool: ...
    def get_write_buffer_size(self) -> int: ...
    def abort(self) -> None: ...


def reset(transport: Peer, deadline: float | None = None) -> None:
    """Reset the connection once the other side's kernel has all we sent: a reset discards what is still on its way."""
    loop = asyncio.get_running_loop()
    if transport.is_closing():
        return
    deadline = loop.time() + FLUSH_SECONDS if deadline is None else deadline
    sock = transport.get_extra_info("socket")
    if _unsent(transport, sock) and loop.time() < deadline:
        loop.call_later(_LOOK_SECONDS, reset, transport, deadline)
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()


def _unsent(transport: Peer, sock: socket.socket) -> int:
    count = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    return transport.get_write_buffer_size() + int(struct.unpack("i", count)[0])


def is_gone(transport: Peer) -> bool | None:
    """Whether the other end of a loopback IPv4 connection is closed for good. `None`: we cannot know here."""
    with contextlib.suppress(OSError, AttributeError, TypeError, struct.error):
        theirs, ours = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        return _inode(theirs, ours) == 0
    return None


def _inode(local: tuple[str, int], remote: tuple[str, int]) -> int:
    addresses = (socket.inet_aton(local[0]), socket.inet_aton(remote[0]))
    query = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY)
    query += _SOCKET.pack(local[1], remote[1], *addresses, _NO_COOKIE)
    message = _MESSAGE.pack(_MESSAGE.size + len(query), _BY_FAMILY, 1, 1, 0) + query
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as netlink:
        netlink.settimeout(0.05)  # the kernel answers before `send` returns
        netlink.send(message)
        answer = netlink.recv(4096)
    if _MESSAGE.unpack_from(answer)[1] == _ERROR:
        return 0  # there is no such socket any more
    inode: int = _INODE.unpack_from(answer, _INODE_AT)[0]
    return inode
