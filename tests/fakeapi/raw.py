"""A client down to the bytes, for what no library would send or tell."""

import http.client
import json
import socket
from typing import Any

from tests.fakeapi import FakeAPI


def message_request(*, stream: bool = False, close: bool = True) -> bytes:
    """A request to Anthropic's API, as bytes."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": stream})
    lines = [
        "POST /v1/messages HTTP/1.1",
        f"Content-Length: {len(body)}",
        *["Connection: close"][: int(close)],
    ]
    return "\r\n".join([*lines, "", body]).encode()


def connection(api: FakeAPI) -> socket.socket:
    return socket.create_connection(("127.0.0.1", api.port), timeout=60)


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


def read_until_silent(sock: socket.socket, seconds: float = 0.3) -> bytes:
    received = b""
    sock.settimeout(seconds)
    while True:
        try:
            received += sock.recv(65536)
        except TimeoutError:
            return received


def exchange(api: FakeAPI, request: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    with connection(api) as sock:
        sock.sendall(request)
        return read_all(sock)


def unchunk(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return body


def post(
    api: FakeAPI, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    client = http.client.HTTPConnection("127.0.0.1", api.port, timeout=60)
    try:
        client.request("POST", path, json.dumps(body), headers or {})
        with client.getresponse() as response:
            return response.status, response.headers, response.read()
    finally:
        client.close()
