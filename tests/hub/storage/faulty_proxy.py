"""An HTTP proxy before a service, that loses answers, or gives others."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Faults:
    """What happens to the next requests with a method: `lose` the answer, `cut` it in the middle, answer a status
    instead after the service has done it (`done 503`) or without asking it (`not 503`)."""

    port: int
    next: dict[str, list[str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def take(self, method: str) -> str:
        self.requests.append(method)
        faults = self.next.get(method, [])
        return faults.pop(0) if faults else ""


@contextmanager
def faulty_proxy(port: int, kind: type[Faults] = Faults) -> Iterator[tuple[Faults, int]]:
    faults = kind(port)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            with suppress(OSError, http.client.HTTPException):
                super().handle_one_request()
                return
            self.close_connection = True  # the service is down

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = faults.take(self.command)
            if fault.startswith("not "):
                self.send(int(fault[4:]), b"")
                return
            connection = http.client.HTTPConnection("127.0.0.1", faults.port, timeout=30)
            connection.request(self.command, self.path, body, dict(self.headers))
            response = connection.getresponse()
            content = response.read()
            connection.close()
            if fault == "lose":
                self.close_connection = True
            elif fault.startswith("done "):
                self.send(int(fault[5:]), b"")
            else:
                self.send(response.status, content, cut=fault == "cut", headers=dict(response.getheaders()))

        def send(
            self, status: int, content: bytes, *, cut: bool = False, headers: dict[str, str] | None = None
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            self.close_connection = self.close_connection or cut

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield faults, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
