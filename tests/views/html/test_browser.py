"""The exported page in a real browser: whatever is in the session, nothing runs and nothing is loaded."""

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_logger.model.session import Session
from agent_logger.views.html.session import session_html
from tests.hostile import MARKDOWN, MARKUP, TERMINAL, WORDS
from tests.views.html_check import Checked
from tests.views.sessions import all_hostile

RAN = "document.documentElement.lang='ran'"


class Canary:
    """A server that nobody should ask. It remembers who did."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        canary = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                canary.asked.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    with contextlib.closing(Canary()) as canary:
        yield canary


def opened(page: str, folder: Path) -> str:
    """The document as the browser has it after it has loaded all and run all."""
    file = folder / "page.html"
    file.write_text(page)
    line = [
        shutil.which("chromium") or "", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    return subprocess.run(line, check=True, capture_output=True, text=True, timeout=200).stdout


def attacks(canary: Canary) -> Session:
    return all_hostile([_armed(text, canary) for text in MARKUP + MARKDOWN + TERMINAL + WORDS])


def _armed(text: str, canary: Canary) -> str:
    return text.replace("CANARY", canary.url).replace("alert(1)", RAN)


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("with_policy", [True, False])
def test_a_hostile_session_runs_no_script_and_loads_nothing(tmp_path: Path, canary: Canary, with_policy: bool) -> None:
    """Without the policy too: it is the second lock, not the only one."""
    page = "".join(session_html(attacks(canary)))
    if not with_policy:
        page, removed = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        assert removed == 1
    seen = opened(page, tmp_path)
    assert canary.asked == []
    assert '<html lang="en">' in seen
    Checked(seen.replace("<!DOCTYPE html>", "<!doctype html>"))


@pytest.mark.needs("chromium")
def test_unescaped_text_would_run_and_load_in_the_browser(tmp_path: Path, canary: Canary) -> None:
    """What the test above looks for is there when text is not escaped."""
    texts = " ".join(_armed(text, canary) for text in MARKUP[:4])
    seen = opened(f'<!doctype html><html lang="en"><body>{texts}', tmp_path)
    assert "/script" in canary.asked
    assert "/img" in canary.asked
    assert '<html lang="ran">' in seen
