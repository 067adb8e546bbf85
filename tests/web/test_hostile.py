"""Hostile transcripts, and hostile pages beside ours: nothing runs, nothing loads, nothing is told."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.hostile import HOSTILE
from tests.web import homes
from tests.web.browser import Watched, chromium, let_in
from tests.web.page_process import Page, showing

pytestmark = pytest.mark.needs("chromium")

SESSION = "66666666-1111-4222-8333-444444444444"
SECRET = "sk-ant-api03-" + "Zq8" * 20
LONGEST = 2000  # characters of a text; it stands in a hundred fields

# Whatever is in the page that a browser would run, load or follow.
ACTIVE = """() => {
  const found = [];
  for (const it of document.querySelectorAll("*")) {
    const tag = it.tagName.toLowerCase();
    if (["iframe", "object", "embed", "base", "meta", "video", "audio", "math", "template", "style"].includes(tag)
        && !it.closest("head")) found.push(it.outerHTML.slice(0, 200));
    if (tag === "script" && !it.src.startsWith(location.origin + "/static/")) found.push(it.outerHTML);
    if (tag === "form" && new URL(it.action).origin !== location.origin) found.push(it.outerHTML.slice(0, 200));
    for (const {name, value} of it.attributes) {
      if (name.startsWith("on") || name === "style" && !it.matches(".exchange")) found.push(`${name}=${value}`);
      if (["href", "src", "action", "xlink:href"].includes(name) && /^\\s*(javascript|vbscript|data:text)/i.test(value))
        found.push(`${name}=${value}`);
    }
  }
  return found;
}"""


class Canary:
    """A server that nobody may ask."""

    def __init__(self) -> None:
        asked = self.asked = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_error(404)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    canary = Canary()
    yield canary
    canary.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium("--host-resolver-rules=MAP evil.example 127.0.0.1") as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, canary: Canary) -> Iterator[Page]:
    home = tmp_path_factory.mktemp("home")
    folder = home / ".claude/projects/-hostile"
    folder.mkdir(parents=True)
    lines = [
        line
        for number, text in enumerate(HOSTILE)
        for line in _exchange(number, text[:LONGEST].replace("CANARY", canary.url))
    ]
    encoded = "\n".join(json.dumps(line) for line in lines).encode()
    (folder / f"{SESSION}.jsonl").write_bytes(encoded + b"\n")
    with showing(home) as page:
        yield page


def _exchange(number: int, text: str) -> Iterator[dict[str, Any]]:
    """The text in every field that a view shows, and a key in some."""
    base = {
        "sessionId": SESSION,
        "cwd": f"/{text}",
        "gitBranch": text,
        "version": "2.1.325",
        "userType": "external",
    }
    at = f"2026-11-15T{10 + number // 60:02}:{number % 60:02}:00.000Z"

    def line(kind: str, **fields: Any) -> dict[str, Any]:
        return {**base, "type": kind, "uuid": f"{kind}-{number}-{len(fields)}", "timestamp": at, **fields}

    yield {"type": "summary", "summary": text, "leafUuid": f"user-{number}-1"}
    yield {"type": "custom-title", "customTitle": text, "sessionId": SESSION}
    yield line("user", message={"role": "user", "content": text})
    inputs = {
        "command": text,
        "file_path": text,
        "pattern": text,
        "url": text,
        "description": text,
        "prompt": text,
    }
    inputs |= {
        "old_string": text,
        "new_string": f"{text}\nx",
        "content": text,
        "subagent_type": text,
        text[:40]: text,
    }
    tools = ["Bash", "Read", "Edit", "Write", "Grep", "WebFetch", "Agent", "TodoWrite", text[:60]]
    uses = [
        {"type": "tool_use", "id": f"toolu_{number}_{at}{text}", "name": it, "input": inputs}
        for at, it in enumerate(tools)
    ]
    blocks = [{"type": "text", "text": f"{text} {SECRET}"}, {"type": "thinking", "thinking": text}, *uses]
    message = {
        "id": f"msg_{number}{text}",
        "role": "assistant",
        "model": text,
        "stop_reason": text,
        "content": blocks,
    }
    yield line("assistant", message=message, requestId=text)
    for number_of, use in enumerate(uses):
        result = {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": text,
            "is_error": number_of % 2 == 0,
        }
        yield line("user", message={"role": "user", "content": [result]}, toolUseResult=text)


VIEWS = ["", "#turn-70", "/turns/1", "/timeline", "/wire", "/tree", "/why", "/find?q=script"]
LISTS = [
    "/",
    "/sessions",
    "/sessions?project=%3Cscript%3E&title=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
    "/live",
]
LISTS += ["/search?q=%3Cscript%3Ealert(1)", "/why", "/health", "/no-such-%3Cscript%3Ealert(1)%3C/script%3E"]
LISTS += [
    "/sessions/%3Cimg%20src=x%20onerror=alert(1)%3E",
    "/api/v1/sessions",
    "/api/v1/sessions/x%3Cscript%3E",
]


@pytest.fixture(scope="module")
def shared_tab(browser: Browser, page: Page) -> Iterator[Watched]:
    with let_in(browser, page) as watched:
        yield watched


@pytest.mark.parametrize("path", [*(f"/sessions/{SESSION}{view}" for view in VIEWS), *LISTS])
def test_a_hostile_transcript_runs_no_script_and_loads_nothing(shared_tab: Watched, canary: Canary, path: str) -> None:
    watched = shared_tab
    watched.clear()
    watched.go(path)
    watched.tab.keyboard.press("o")
    _scroll(watched)
    active = watched.tab.evaluate(ACTIVE) if not path.startswith("/api") else []
    shown = watched.tab.content()
    complaints = [it for it in watched.complaints if "status of 404" not in it]
    assert (active, complaints, watched.elsewhere, canary.asked) == ([], [], [], [])
    assert SECRET not in shown
    assert not {"\x1b", "\u202e", "\x9b"} & set(shown)


READABLE = ("<script>alert(1)</script>", "sk-ant-...8Zq8")


def test_every_hostile_payload_is_shown_as_text(browser: Browser, page: Page) -> None:
    with let_in(browser, page) as watched:
        watched.go(f"/sessions/{SESSION}")
        for _ in range(15):
            _scroll(watched)
            shown = watched.tab.text_content("#conversation") or ""
            if all(it in shown for it in READABLE):
                break
    assert [it for it in READABLE if it not in shown] == []


def _scroll(watched: Watched, times: int = 4) -> None:
    for _ in range(times):
        watched.tab.mouse.wheel(0, 4000)
        watched.tab.wait_for_timeout(40)


def test_csv_exports_of_a_hostile_session_are_attachments_without_secrets(page: Page) -> None:
    cookie = page.cookie()
    for path in (
        "sessions",
        f"sessions/{SESSION}/turns",
        f"sessions/{SESSION}/ledger",
        "ledger",
        "search?q=script",
    ):
        mark = "&" if "?" in path else "?"
        answer = page.ask(f"/api/v1/{path}{mark}format=csv&limit=1000", cookie=cookie)
        assert answer.status == 200
        assert "attachment" in answer.headers["content-disposition"]
        assert SECRET not in answer.text


# ---------------------------------------------------------------- other pages in the same browser

ATTACK = """<!doctype html><title>evil</title><body><script>
const quiet = promise => promise.then(answer => answer.status || answer.type, error => "refused");
(async () => {
  const seen = [];
  for (const base of BASES) {
    for (const path of ["/", "/api/v1/sessions", "/sessions", "/events"]) {
      seen.push(await quiet(fetch(base + path)));
      seen.push(await quiet(fetch(base + path, {credentials: "include"})));
      seen.push(await quiet(fetch(base + path, {method: "POST", headers: {"x-agent-logger": "1"}})));
    }
    seen.push(await quiet(fetch(base + "/demo", {method: "POST", mode: "no-cors", credentials: "include", body: "x"})));
    for (const [tag, name] of [["img", "src"], ["iframe", "src"], ["script", "src"], ["link", "href"]]) {
      const it = document.createElement(tag);
      if (tag === "link") it.rel = "stylesheet";
      it[name] = base + "/";
      document.body.append(it);
      await new Promise(done => { it.onload = done; it.onerror = done; setTimeout(done, 400); });
      if (tag === "iframe") { try { seen.push(it.contentDocument.title) } catch { seen.push("refused") } }
    }
    const opened = await new Promise(done => {
      const it = new WebSocket(base.replace("http", "ws") + "/");
      it.onopen = () => done("open");
      it.onerror = () => done("refused");
    });
    seen.push(opened);
  }
  document.title = JSON.stringify(seen);
})();
</script>"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.example"])
def test_another_web_page_gets_no_data(browser: Browser, page: Page, tmp_path: Path, host: str) -> None:
    """From another port of this machine, and from a name that was rebound to it; with the cookie in the browser."""
    bases = [
        f"http://127.0.0.1:{page.port}",
        f"http://localhost:{page.port}",
        f"http://evil.example:{page.port}",
    ]
    evil = _serve(ATTACK.replace("BASES", json.dumps(bases)))
    try:
        with let_in(browser, page) as watched:
            watched.tab.goto(page.link())  # the cookie is as the page sets it
            tab = watched.tab.context.new_page()
            tab.goto(f"http://{host}:{evil.server_port}/")
            tab.wait_for_function("document.title.startsWith('[')", timeout=60_000)
            seen = json.loads(tab.title())
            assert 200 not in seen, seen
            assert "open" not in seen
            assert "agent-logger" not in "".join(map(str, seen))
    finally:
        evil.shutdown()
        evil.server_close()
    assert not (page.home / ".agent-logger" / "demo").exists()


def _serve(text: str) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_a_rebound_host_name_gets_status_421(browser: Browser, page: Page) -> None:
    with let_in(browser, page) as watched:
        watched.tab.goto(page.link())
        answer = watched.tab.goto(f"http://evil.example:{page.port}/")
        assert answer is not None
        assert answer.status == 421
        assert homes.FORK not in watched.tab.content()
