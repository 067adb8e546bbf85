"""What can go wrong around the page: it says so, and goes on."""

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect
from starlette.testclient import TestClient

from agent_logger.home.homes import Homes
from agent_logger.web.app import page_app
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.tokens import PageTokens
from tests.web import homes
from tests.web.browser import chromium, let_in
from tests.web.page_process import Page, showing

FULL = 100_000  # bytes: a catalog of all these sessions is larger
TROUBLE = "cannot be written"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    homes.real_sessions(tmp_path)
    return tmp_path


def sessions(page: Page, cookie: str) -> list[str]:
    answer = page.ask("/api/v1/sessions?limit=1000", cookie=cookie)
    assert answer.status == 200, answer.text
    return [it["id"] for it in json.loads(answer.body)["items"]]


def until(holds: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.1)
    return held


def test_a_full_disk_shows_a_warning_and_all_sessions(home: Path) -> None:
    with showing(home, file_bytes=FULL) as page:
        cookie = page.cookie()
        assert until(lambda: TROUBLE in page.ask("/", cookie=cookie).text)
        known = sessions(page, cookie)
        assert len(known) > 30
        for path in ("/", "/sessions", "/search?q=Banana", "/health", f"/sessions/{known[0]}", "/why"):
            answer = page.ask(path, cookie=cookie)
            assert (answer.status, TROUBLE in answer.text) == (200, True), path
        new = homes.long_session(home, 20)
        assert until(lambda: new in sessions(page, cookie)), "what is new is read all the same"


@pytest.mark.long  # it is tried every half minute
def test_the_catalog_is_written_again_when_the_disk_has_room(home: Path) -> None:
    with showing(home, file_bytes=FULL) as page:
        cookie = page.cookie()
        assert until(lambda: TROUBLE in page.ask("/", cookie=cookie).text)
        resource.prlimit(page.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert until(lambda: TROUBLE not in page.ask("/", cookie=cookie).text, seconds=90)
        assert len(sessions(page, cookie)) > 30
    assert (home / ".agent-logger/catalog.db").stat().st_size > FULL


def test_a_deleted_catalog_is_rebuilt_while_the_page_runs(home: Path) -> None:
    with showing(home) as page:
        cookie = page.cookie()
        before = sessions(page, cookie)
        for path in (home / ".agent-logger").glob("catalog*"):
            path.unlink()
        new = homes.long_session(home, 20)
        assert until(lambda: new in sessions(page, cookie))
        assert set(before) < set(sessions(page, cookie))


@pytest.mark.needs("chromium")
def test_a_session_removed_while_open_is_reported_and_stays_visible(home: Path) -> None:
    session = homes.long_session(home, 20)
    (path,) = (home / ".claude/projects").rglob(f"{session}.jsonl")
    with showing(home) as page, chromium() as browser, let_in(browser, page) as watched:
        watched.go(f"/sessions/{session}")
        expect(watched.tab.locator(".turn").first).to_be_visible()
        path.unlink()
        expect(watched.tab.locator("#gone")).to_be_visible()
        expect(watched.tab.locator(".turn").first).to_be_visible()  # what one reads is not taken away
        answer = watched.go(f"/sessions/{session}")
        assert answer is not None
        assert answer.status == 404
        expect(watched.tab.locator(".error")).to_contain_text("may have been removed")


def test_the_page_shows_the_progress_of_building_the_catalog(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_logger.web.catalog_pool.WAIT_SECONDS", 0.0)
    pool = CatalogPool(Homes(home / ".agent-logger"))
    tokens = PageTokens(b"k" * 32, 8081, "run")
    client = TestClient(page_app(pool, tokens, 8081), base_url="http://127.0.0.1:8081")
    try:
        client.get(tokens.link())
        assert until(pool.refresher.ready.is_set)
        pool.refresher.close()
        pool.refresher.ready.clear()  # as it is until everything was looked at
        pool.refresher.done, pool.refresher.total = 3_000_000, 12_000_000
        shown, told = client.get("/sessions"), client.get("/api/v1/sessions")
        assert (shown.status_code, "3.0 MB of 12.0 MB read so far" in shown.text) == (503, True)
        assert (told.status_code, told.json()["next_step"] != "") == (503, True)
        pool.refresher.ready.set()
        assert client.get("/sessions").status_code == 200
    finally:
        pool.close()
