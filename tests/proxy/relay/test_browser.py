"""A real browser on a page that attacks the proxy: by its address, and by the page's own name."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.wires import Upstream, Wire, answering, pump, response

EVIL = "evil.example"
TRIES = ["get", "post", "no-cors", "cors", "beacon", "image", "form", "frame", "websocket"]
ATTACK = """<!doctype html><title>hello</title><body><script>
const tries = async (base, name) => {
  const url = kind => `http://${base}?${name}-${kind}`;
  const quiet = promise => promise.then(answer => answer.status, error => String(error));
  const seen = await Promise.all([
    quiet(fetch(url("get"))),
    quiet(fetch(url("post"), {method: "POST", headers: {"content-type": "text/plain"}, body: "{}"})),
    quiet(fetch(url("no-cors"), {method: "POST", mode: "no-cors", body: "{}"})),
    quiet(fetch(url("cors"), {method: "POST", headers: {"x-api-key": "k", "content-type": "application/json"}})),
  ]);
  navigator.sendBeacon(url("beacon"), "{}");
  const image = new Image();
  image.src = url("image");
  const frame = document.createElement("iframe");
  frame.src = url("frame");
  const target = document.createElement("iframe");
  target.name = name;
  const form = document.createElement("form");
  Object.assign(form, {action: url("form"), method: "post", enctype: "text/plain", target: name});
  document.body.append(image, frame, target, form);
  form.submit();
  const socket = new WebSocket(url("websocket").replace("http", "ws"));
  const opened = await new Promise(done => {
    socket.onopen = () => done("open");
    socket.onerror = () => done("error");
  });
  return [...seen, opened];
};
(async () => {
  const told = [];
  for (const [name, base] of Object.entries(TARGETS)) told.push([name, await tries(base, name)]);
  await new Promise(done => setTimeout(done, 500));
  await fetch("/told", {method: "POST", body: JSON.stringify(told)});
})();
</script>"""


class Rebinder:
    """What a rebound name amounts to: `evil.example` is the page's server first, and then the proxy.

    It listens on another address of loopback, which the browser has for that name; all but the page itself is passed
    on to the proxy, byte for byte.
    """

    def __init__(self, port: int, proxy: int, page: str) -> None:
        self._listener = socket.create_server(("127.0.0.2", port))
        self.port: int = self._listener.getsockname()[1]
        self._proxy, self._page = proxy, page
        self.told: list[tuple[str, list[object]]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), Wire(sock) as wire:
            head = wire.head()
            if head.startswith(b"GET /page "):
                self._answer(wire, self._page.encode())
            elif head.startswith(b"POST /told "):
                self.told += json.loads(wire.body(head))
                self._answer(wire, b"thanks")
            elif not head.startswith(b"GET /favicon.ico"):
                self._pass_on(wire)

    @staticmethod
    def _answer(wire: Wire, body: bytes) -> None:
        wire.send(response(body, headers=b"Content-Type: text/html\r\nConnection: close\r\n"))

    def _pass_on(self, wire: Wire) -> None:
        with socket.create_connection(("127.0.0.1", self._proxy)) as onward:
            onward.sendall(wire.read)
            back = threading.Thread(target=pump, args=(onward, wire.sock))
            back.start()
            pump(wire.sock, onward)
            back.join()


@contextlib.contextmanager
def browsing(url: str, profile: Path) -> Iterator[None]:
    """Chromium on a page, with the attacker's name."""
    line = [
        shutil.which("chromium") or "", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
        f"--user-data-dir={profile}", f"--host-resolver-rules=MAP {EVIL} 127.0.0.2", "--remote-debugging-port=0", url,
    ]  # fmt: skip
    browser = subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()


def attack(folder: Path, proxy: Process, port: int) -> list[tuple[str, list[object]]]:
    """From a page on that port (0: any). What the page saw, by target."""
    path = proxy.upstream.path().decode()
    targets = {
        "address": f"127.0.0.1:{proxy.port}{path}",
        "localhost": f"localhost:{proxy.port}{path}",
        "name": f"{EVIL}:{proxy.port}{path}",
    }
    page = ATTACK.replace("TARGETS", json.dumps(targets))
    with contextlib.ExitStack() as open_ones:
        rebinders = [Rebinder(wanted, proxy.port, page) for wanted in dict.fromkeys((proxy.port, port or 0))]
        for rebinder in rebinders:
            open_ones.callback(rebinder.close)
        server = rebinders[-1]
        with browsing(f"http://{EVIL}:{server.port}/page", folder / "profile"):
            wait_until(lambda: server.told, 60)
    return server.told


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("same_port", [True, False])
def test_a_web_page_in_a_real_browser_reaches_no_upstream(tmp_path: Path, same_port: bool) -> None:
    with Upstream(answering(response(b"secret"))) as upstream, proxying(tmp_path, upstream) as proxy:
        told = attack(tmp_path, proxy, proxy.port if same_port else 0)
        assert proxy.stop() == 0
        found = proxy.logged()
        assert upstream.wires == []
    assert [name for name, _ in told] == ["address", "localhost", "name"]
    assert not any(200 in seen or "open" in seen for _, seen in told), told
    assert set(found.logs.values()) == {"./refused"}
    paths = {request.path.rpartition("?")[2] for (request,) in found.requests.values()}
    assert {f"{name}-{kind}" for name, _ in told for kind in TRIES} <= paths
    assert {answer.status for (answer,) in found.responses.values()} <= {403, 421}
