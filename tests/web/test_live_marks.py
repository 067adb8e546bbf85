"""The mark of a live session is true: on every page it goes when the session ends, without a reload."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web import homes
from tests.web.browser import chromium, let_in
from tests.web.page_process import showing

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class Program:
    """A program that records the demo: it has the log open until it ends, and changes nothing when it does."""

    def __init__(self, home: Path) -> None:
        self.session = homes.demo(home)
        (log,) = (home / "demo").glob("*.jsonl")
        self._file = os.open(log, os.O_RDONLY)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def end(self) -> None:
        os.close(self._file)


def test_the_mark_of_a_live_session_goes_when_the_session_ends(tmp_path: Path, browser: Browser) -> None:
    program = Program(tmp_path)
    # A browser has six connections to a server, and each of these keeps one.
    views = ["/", "/sessions", f"/sessions/{program.session}", f"/sessions/{program.session}/wire"]
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        tabs: list[Page] = [watched.tab, *(watched.tab.context.new_page() for _ in views[1:])]
        for tab, view in zip(tabs, views, strict=True):
            tab.goto(page.url + view)
            tab.evaluate("window.wasHere = true")
            expect(tab.locator("main .live-mark").first).to_be_visible()
        program.end()
        for tab, view in zip(tabs, views, strict=True):
            tab.bring_to_front()
            expect(tab.locator("main .live-mark")).to_have_count(0)
            assert tab.evaluate("window.wasHere") is True, f"{view} was loaded again"
        expect(tabs[2].locator("[data-follow]")).to_be_hidden()
        assert (watched.complaints, watched.elsewhere) == ([], [])
