"""TLS servers on loopback, and a proxy that leads to them by any name: real clients verify what they serve."""

import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from socket import SHUT_WR, create_connection, create_server, socket

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@contextmanager
def tls_proxy(sites: Mapping[str, ssl.SSLContext]) -> Iterator[tuple[int, dict[str, int]]]:
    """Serve each host with its certificate. Yields the port of a proxy for CONNECT, and the port of each host."""
    with ExitStack() as stack:
        ports = {host: stack.enter_context(_listening(_Site(context))) for host, context in sites.items()}
        yield stack.enter_context(_listening(_Connect(ports))), ports


class _Handler:
    def serve(self, client: socket) -> None:
        raise NotImplementedError


@contextmanager
def _listening(handler: _Handler) -> Iterator[int]:
    listener = create_server(("127.0.0.1", 0))

    def serve(client: socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(30)
            handler.serve(client)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(2)
        listener.close()


class _Site(_Handler):
    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def serve(self, client: socket) -> None:
        with self._context.wrap_socket(client, server_side=True) as secure:
            if _head(secure):
                secure.sendall(ANSWER)


class _Connect(_Handler):
    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports

    def serve(self, client: socket) -> None:
        host = _head(client).split()[1].decode().rpartition(":")[0]
        with create_connection(("127.0.0.1", self._ports[host]), timeout=30) as site:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            thread = threading.Thread(target=_pump, args=(client, site), daemon=True)
            thread.start()
            _pump(site, client)
            thread.join(30)


def _head(connection: socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and (data := connection.recv(1 << 16)):
        head += data
    return head


def _pump(source: socket, target: socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(SHUT_WR)
