"""The Cost page: its words, its tiles, and what the head of a session says about calls that are not counted."""

import html
import re
from collections.abc import Iterator

import pytest

from agent_logger.catalog.ledger.unlisted import UNLISTED_CALLS
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.web import homes
from tests.web.browser import chromium, let_in
from tests.web.page_process import Page, showing

ONE, TWO = ID.format(1), ID.format(2)  # sessions, by how many responses have no known price
WIDTHS = (1280, 1100, 900, 700, 380)  # pixels
UNFINISHED = {"stop_reason": None}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    home = tmp_path_factory.mktemp("home")
    claude_file(home, ONE, [user(1, "Hello", ONE), assistant(2, "Hi", ONE, model="nobody-1", **UNFINISHED)])
    responses = [assistant(at, "Hi", TWO, model="nobody-1", **UNFINISHED) for at in (12, 13)]
    claude_file(home, TWO, [user(11, "Hello", TWO), *responses])
    homes.demo(home)
    with showing(home) as page:
        yield page


def text_of(page: Page, path: str) -> str:
    """What a person reads, with single spaces."""
    answer = page.ask(path, cookie=page.let_in)
    assert answer.status == 200, answer.text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", answer.text)).split())


@pytest.mark.parametrize(
    ("session", "sentences"),
    [
        (
            ONE,
            (
                "The estimated cost of 1 model response, at",
                "1 response has no known price (unknown model).",
                "1 response was cut off and counts as far as it got.",
            ),
        ),
        (
            TWO,
            (
                "The estimated cost of 2 model responses, at",
                "2 responses have no known price. The last column says why.",
                "2 responses were cut off and count as far as they got.",
            ),
        ),
    ],
    ids=["one", "two"],
)
def test_the_cost_page_uses_the_singular_for_one_response(page: Page, session: str, sentences: tuple[str, ...]) -> None:
    text = text_of(page, f"/sessions/{session}/why")
    assert [sentence for sentence in sentences if sentence not in text] == []


def head_of(page: Page, path: str) -> str:
    answer = page.ask(path, cookie=page.let_in)
    (head,) = re.findall(r'<header class="session-head".*?</header>', answer.text, re.DOTALL)
    return html.unescape(head)


@pytest.mark.parametrize("tab", ["", "/head", "/timeline", "/wire", "/tree", "/why", "/turns/0"])
def test_the_head_of_a_session_says_that_unlisted_calls_are_not_counted(page: Page, tab: str) -> None:
    assert UNLISTED_CALLS in head_of(page, f"/sessions/{ONE}{tab}")


def test_the_head_of_a_proxied_session_does_not_mention_unlisted_calls(page: Page) -> None:
    answer = page.ask("/api/v1/sessions?witness=wire", cookie=page.let_in).text
    (url,) = re.findall(r'"url":"([^"]+)"', answer)
    assert "not counted" not in head_of(page, url)


@pytest.mark.needs("chromium")
def test_no_tile_is_narrower_than_its_text(page: Page) -> None:
    with chromium() as browser, let_in(browser, page) as watched:
        for path in ("/why", f"/sessions/{ONE}/why", "/", "/health"):
            watched.go(path)
            for width in WIDTHS:
                watched.tab.set_viewport_size({"width": width, "height": 800})
                wide = watched.tab.evaluate(
                    "[...document.querySelectorAll('.stat')].filter(tile => tile.scrollWidth > tile.clientWidth)"
                    ".map(tile => tile.innerText)"
                )
                assert wide == [], f"{path} at {width} pixels"
