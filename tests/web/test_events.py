"""A page that listens is told of all that changed since it was made, and of nothing else."""

import html
import http.client
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger import __version__
from tests.catalog.catalogs import ID, claude_file, user
from tests.web.page_process import Page, showing
from tests.web.test_trouble import until

LISTENING = ("/", "/sessions", "/live")
CHANGED = b"event: changed"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    _write(home, 1)
    return home


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[Page]:
    with showing(home) as page:
        yield page


@pytest.fixture(scope="module")
def cookie(page: Page) -> str:
    return page.cookie()


def _write(home: Path, number: int) -> str:
    claude_file(home, ID.format(number), [user(number, "Hello", ID.format(number))])
    return ID.format(number)


def _address(page: Page, cookie: str, path: str) -> str:
    (address,) = re.findall(r'data-events="([^"]+)"', page.ask(path, cookie=cookie).text)
    return html.unescape(address)


def _told(page: Page, cookie: str, address: str, seconds: float) -> bytes:
    """Until something changed, or for so long after the first word."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", address, headers={"Cookie": cookie})
    own = connection.sock
    answer = connection.getresponse()
    try:
        told, end = answer.read1(), time.monotonic() + seconds
        own.settimeout(seconds)
        while CHANGED not in told and time.monotonic() < end:
            told += answer.read1()
    except TimeoutError:
        pass
    finally:
        connection.close()
    return told


def test_changes_after_a_page_was_rendered_are_sent_to_the_page(home: Path, page: Page, cookie: str) -> None:
    addresses = [_address(page, cookie, path) for path in LISTENING]
    new = _write(home, 2)
    assert until(lambda: new in page.ask("/sessions", cookie=cookie).text)
    for address in addresses:
        assert CHANGED in _told(page, cookie, address, seconds=60), address


def test_no_change_event_is_sent_for_content_already_shown(page: Page, cookie: str) -> None:
    page.settle()
    assert until(lambda: _is_settled(page, cookie))
    told = _told(page, cookie, _address(page, cookie, "/"), seconds=1.5)
    assert told.startswith(b": hello")
    assert CHANGED not in told


def _is_settled(page: Page, cookie: str) -> bool:
    before = _address(page, cookie, "/")
    time.sleep(1.0)
    return before == _address(page, cookie, "/")


def test_the_footer_of_every_page_shows_the_program_version(page: Page, cookie: str) -> None:
    for path in (*LISTENING, "/search", "/health"):
        assert f"<span>agent-logger {__version__}</span>" in page.ask(path, cookie=cookie).text
