"""What Google Cloud Storage answers, as far as the hub asks: unlike S3, it refuses to delete what is absent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
MOST_NAMES = 1000


def variables(port: int) -> dict[str, str]:
    """Return the environment of a client."""
    account = {"gcs_base_url": f"http://127.0.0.1:{port}", "disable_oauth": True}
    keys = {"client_email": "", "private_key": "", "private_key_id": ""}
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps({**account, **keys}), "GOOGLE_ALLOW_HTTP": "true"}


@contextmanager
def google_cloud_storage() -> Iterator[int]:
    """Yields the port."""
    objects: dict[str, bytes] = {}
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def name(self) -> str | None:
            """Return the name of the object that is asked for. `None`: it is the bucket."""
            _, bucket, *name = unquote(urlsplit(self.path).path).split("/", 2)
            assert bucket == BUCKET
            return name[0] if name else None

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            name = self.name()
            assert name
            with lock:
                exists = name in objects
                if not (exists and self.headers["x-goog-if-generation-match"] == "0"):
                    objects[name] = data
                    exists = False
            self.send(412 if exists else 200)

        def do_GET(self) -> None:
            name = self.name()
            if name is None:
                self.send(200, self.names())
            elif name in objects:
                self.send(200, objects[name])
            else:
                self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")

        def do_DELETE(self) -> None:
            with lock:
                deleted = objects.pop(self.name() or "", None)
            self.send(204 if deleted is not None else 404)

        def names(self) -> bytes:
            query = parse_qs(urlsplit(self.path).query)
            prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
            names = sorted(name for name in list(objects) if name.startswith(prefix) and name > after)
            page = names[:MOST_NAMES]
            more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if names[MOST_NAMES:] else ""
            about = "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>1</ETag>"
            contents = "".join(f"<Contents><Key>{escape(n)}</Key><Size>1</Size>{about}</Contents>" for n in page)
            return f"<ListBucketResult>{more}{contents}</ListBucketResult>".encode()

        def send(self, status: int, content: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
