"""A TLS client over a raw socket, so that a test can close one direction, cut, or stop reading at any byte."""

import contextlib
import socket
import ssl


class TlsSocket:
    """As much of a socket as `Wire` needs, with TLS inside. `ended_cleanly`: the other side said that it is done."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None) -> None:
        self.raw = sock
        self.ended_cleanly = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._pending = b""  # encrypted and not sent yet
        self.settimeout, self.setsockopt, self.gettimeout = sock.settimeout, sock.setsockopt, sock.gettimeout
        self.fileno = sock.fileno

    def shake_hands(self) -> None:
        """Raises `ssl.SSLError`, `ConnectionError` or `EOFError`."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send_all()
                self._fill()
            except ssl.SSLError:
                self._send_all()
                raise
            else:
                self._send_all()
                return

    @property
    def version(self) -> str | None:
        return self._tls.version()

    @property
    def protocol(self) -> str | None:
        return self._tls.selected_alpn_protocol()

    def certificate(self) -> bytes | None:
        return self._tls.getpeercert(binary_form=True)

    def _fill(self) -> None:
        data = self.raw.recv(1 << 16)
        if not data:
            raise EOFError
        self._incoming.write(data)

    def _send_all(self) -> None:
        if data := self._outgoing.read():
            self.raw.sendall(data)

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._tls.write(view) :]
            self._send_all()

    def send(self, data: bytes) -> int:
        """Send without waiting, as a socket with a timeout of 0 does."""
        if self._pending:
            self._pending = self._pending[self.raw.send(self._pending) :]
            raise BlockingIOError
        sent = self._tls.write(data)
        self._pending = self._outgoing.read()
        with contextlib.suppress(BlockingIOError):
            self._pending = self._pending[self.raw.send(self._pending) :]
        return sent

    def recv(self, size: int) -> bytes:
        while True:
            try:
                data = self._tls.read(size)
            except ssl.SSLWantReadError:
                try:
                    self._fill()
                except EOFError:
                    return b""
            except ssl.SSLZeroReturnError:
                self.ended_cleanly = True
                return b""
            else:
                self.ended_cleanly = self.ended_cleanly or not data
                return data

    def shutdown(self, _how: int) -> None:
        """Say that nothing more is sent."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._send_all()

    def close(self) -> None:
        self.raw.close()
