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
def keeper(home: Path) -> Iterator[Refresher]:
    keeper = Refresher(home)
    keeper.wake()
    yield keeper
    keeper.close()


def _lies_down(keeper: Refresher, meanwhile: Callable[[], object]) -> None:
    keeper._wake = _Interrupted(meanwhile)
    keeper._last_wake = 0.0  # long ago


def test_who_looks_while_the_keeper_lies_down_wakes_it(keeper: Refresher) -> None:
    looks = keeper._looks
    _lies_down(keeper, keeper.wake)
    assert until(lambda: keeper._looks > looks + 2)


def test_a_page_that_ends_while_the_keeper_lies_down_does_not_wait_for_it(keeper: Refresher) -> None:
    def end() -> None:
        keeper._ended.set()
        keeper._wake.set()

    _lies_down(keeper, end)
    keeper._thread.join(60)
    assert not keeper._thread.is_alive()


class _Vanishing(CatalogPool):
    """A session is removed as soon as somebody was told of it."""

    path: Path

    async def ask(self, question: Callable[[Catalog], T]) -> T:
        answer, version = await super().query(question), self.keeper.version
        if self.path.exists():
            self.path.unlink()
            while self.keeper.version == version:
                self.keeper.wake()
                await asyncio.sleep(0.02)
        return answer


def test_a_session_that_is_removed_while_a_page_begins_to_listen_is_told_as_gone(home: Path) -> None:
    session = ID.format(1)
    archive = _Vanishing(home / ".agent-logger")
    archive.path = claude_file(home, session, [user(1, "Hello", session)])
    app = Starlette()
    app.state.site = Site(archive)

    async def told() -> str:
        await archive.keeper.note_view()
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
        archive.close()
