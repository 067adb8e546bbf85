"""A real browser on the page: Debian's Chromium, and an eye on all that it complains about or asks elsewhere."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Response,
    ViewportSize,
    expect,
    sync_playwright,
)
from playwright.sync_api import Page as Tab

from agent_logger.web.site import STATIC
from tests.clients import ROOT
from tests.web.page_process import Page

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
FLAGS += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
expect.set_options(timeout=20_000)  # the machine may be busy; what is there is found at once
AXE = ROOT / ".components" / "node_modules" / "axe-core" / "axe.min.js"
PLAIN_DOCUMENT = f"{STATIC}/page.css"  # of the same site, or the browser would start a process for it
PLAIN_ICON = "/favicon.ico"  # what a browser asks for, beside a document that names no icon
VIEWPORT: ViewportSize = {"width": 1280, "height": 860}


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=[*FLAGS, *flags], timeout=60_000
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A tab, and what was wrong in it."""

    tab: Tab
    page: Page
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def go(self, path: str) -> Response | None:
        return self.tab.goto(self.page.url + path)

    def axe(self, *rules: str) -> list[str]:
        """What it finds, of these rules or of all. The debugger runs its script, which no policy
        keeps out."""
        # What is not drawn yet has no place, and would seem to lie on other things.
        self.tab.evaluate(
            "for (const it of document.querySelectorAll('.exchange')) it.style.contentVisibility = 'visible'"
        )
        if not self.tab.evaluate("'axe' in window"):
            self.tab.evaluate(AXE.read_text())
        asked = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        found: dict[str, Any] = self.tab.evaluate("asked => axe.run(document, asked)", asked)
        return [
            f"{it['id']} ({it['impact']}): {[node['html'][:120] for node in it['nodes'][:3]]}"
            for it in found["violations"]
        ]

    def hear(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not said.location["url"].endswith(PLAIN_ICON):
            self.complaints.append(said.text)

    def clear(self) -> None:
        """Make the tab what `let_in` gives, for the next test: a new browser takes a second of processor time."""
        self.go(PLAIN_DOCUMENT)  # ends whatever the document before it was doing
        self.tab.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.tab.set_viewport_size(VIEWPORT)
        self.tab.context.clear_cookies()
        _add_cookie(self.tab.context, self.page)
        assert self.tab.context.pages == [self.tab]
        self.complaints.clear()
        self.elsewhere.clear()


@contextmanager
def let_in(browser: Browser, page: Page, **options: Any) -> Iterator[Watched]:
    """A browser of its own, that has the cookie of who opened the page's link."""
    context = browser.new_context(**({"viewport": VIEWPORT} | options))
    context.set_default_timeout(20_000)
    try:
        _add_cookie(context, page)
        yield _watched(context, page)
    finally:
        context.close()


def _add_cookie(context: BrowserContext, page: Page) -> None:
    name, _, value = page.let_in.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": page.url}])


def _watched(context: BrowserContext, page: Page) -> Watched:
    watched = Watched(context.new_page(), page)
    tab = watched.tab
    tab.on("console", watched.hear)
    tab.on("pageerror", lambda error: watched.complaints.append(str(error)))
    tab.on("dialog", lambda dialog: watched.complaints.append(f"dialog: {dialog.message}"))
    context.on("request", lambda it: watched.elsewhere.append(it.url) if _is_foreign(it.url, page) else None)
    return watched


def _is_foreign(url: str, page: Page) -> bool:
    parts = urlsplit(url)
    return parts.scheme != "data" and parts.netloc != f"127.0.0.1:{page.port}"
