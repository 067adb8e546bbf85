"""What happens at the very moment in which the page looks elsewhere is not missed."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.refresh.changes import Progress
from agent_logger.catalog.refresh.refresh import RefreshReport
from agent_logger.home.homes import Homes
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.pages.live import GONE, session_events
from agent_logger.web.refresher import Refresher
from agent_logger.web.site import Site
from tests.catalog.catalogs import ID, claude_file, user
from tests.web.test_trouble import until

T = TypeVar("T")


class _Interrupted(threading.Event):
    """Somebody comes just before it is cleared."""

    def __init__(self, come: Callable[[], object]) -> None:
        super().__init__()
        self._come = come

    def clear(self) -> None:
        self._come()
        super().clear()


@pytest.fixture
def refresher(home: Path) -> Iterator[Refresher]:
    refresher = Refresher(Homes(home))
    refresher.wake()
    yield refresher
    refresher.close()


def _make_idle(refresher: Refresher, meanwhile: Callable[[], object]) -> None:
    refresher._wake_event = _Interrupted(meanwhile)
    refresher._last_wake = 0.0  # long ago


def test_a_request_wakes_a_refresher_that_is_going_idle(refresher: Refresher) -> None:
    count = refresher._refresh_count
    _make_idle(refresher, refresher.wake)
    assert until(lambda: refresher._refresh_count > count + 2)


def test_closing_does_not_wait_for_a_refresher_that_is_going_idle(refresher: Refresher) -> None:
    def end() -> None:
        refresher._closed.set()
        refresher._wake_event.set()

    _make_idle(refresher, end)
    refresher._thread.join(60)
    assert not refresher._thread.is_alive()


def test_an_error_of_ours_ends_no_refresher(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refresh, failures = Catalog.refresh, iter(range(3))

    def fail_at_first(catalog: Catalog, progress: Progress | None = None) -> RefreshReport:
        if next(failures, None) is not None:
            raise KeyError("a reader is wrong")
        return refresh(catalog, progress)

    monkeypatch.setattr(Catalog, "refresh", fail_at_first)
    monkeypatch.setattr("agent_logger.web.refresher.SECONDS", 0.01)
    refresher = Refresher(Homes(home))
    refresher.wake()
    assert until(lambda: bool(refresher.version), seconds=20)
    assert refresher.ready.is_set()
    assert caplog.text.count("a reader is wrong") == 2  # once, with the traceback
    refresher.close()


class _VanishingSession(CatalogPool):
    """A session is removed as soon as somebody was told of it."""

    path: Path

    async def query(self, question: Callable[[Catalog], T]) -> T:
        answer, version = await super().query(question), self.refresher.version
        if self.path.exists():
            self.path.unlink()
            while self.refresher.version == version:
                self.refresher.wake()
                await asyncio.sleep(0.02)
        return answer


def test_a_session_removed_as_a_page_starts_listening_is_reported_as_gone(home: Path) -> None:
    session = ID.format(1)
    pool = _VanishingSession(Homes(home / ".agent-logger"))
    pool.path = claude_file(home, session, [user(1, "Hello", session)])
    app = Starlette()
    app.state.site = Site(pool)

    async def told() -> str:
        await pool.refresher.wait_for_refresh()
        asked = {"type": "http", "app": app, "path_params": {"session_id": session}, "query_string": b""}
        answer = await session_events(Request(asked))
        assert isinstance(answer, StreamingResponse)
        async with asyncio.timeout(20):
            async for event in answer.body_iterator:
                if event == GONE:
                    return GONE
        return "the end"

    try:
        assert asyncio.run(told()) == GONE
    finally:
        pool.close()
