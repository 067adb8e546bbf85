"""What happens now is seen while it happens: an agent asks a scripted model through the real proxy."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from agent_logger.demo.client import DemoClient
from agent_logger.proxy.attached import attached
from tests.fakeapi.server import FakeAPI
from tests.web.browser import Watched, chromium, let_in
from tests.web.page_process import showing

pytestmark = pytest.mark.needs("chromium")

KEY = "sk-ant-api03-" + "Qz7" * 20
HOSTILE = "<img src=//evil.example/x onerror=alert(1)> <script>alert(2)</script>"
WORDS = f"{KEY} {HOSTILE} {' '.join(f'word{number:02}' for number in range(40))} the end."
LINES = "\n\n".join(f"line{number:03}" for number in range(100))
BELOW = "document.documentElement.scrollHeight - innerHeight - scrollY"  # pixels
SCENARIO = {
    "lanes": [
        {"match": {"last_user_re": "there"}, "repeat": True, "turns": [{"text": f"Ready.\n\n{LINES}"}]},
        {
            "match": {"last_user_re": "words"},
            "repeat": True,
            "turns": [{"text": WORDS, "pieces": 42, "chunk_ms": 200}],
        },
        {
            "match": {"last_user_re": "lines"},
            "repeat": True,
            "turns": [{"text": LINES, "pieces": 100, "chunk_ms": 150}],
        },
    ]
}


class Agent:
    """Asks in one session, and remembers what was said."""

    def __init__(self, client: DemoClient) -> None:
        self.session, self._client, self._history = str(uuid.uuid4()), client, list[dict[str, object]]()

    def ask(self, text: str) -> threading.Thread:
        """Without waiting for the answer."""
        self._history.append({"role": "user", "content": text})
        thread = threading.Thread(target=self._ask, daemon=True)
        thread.start()
        return thread

    def _ask(self) -> None:
        body = {"model": "claude-sonnet-4-5", "tools": [{"name": "Bash"}], "messages": self._history}
        answer = self._client.ask(body, {"x-claude-code-session-id": self.session, "user-agent": "claude-cli/2.1.325"})
        self._history.append({"role": "assistant", "content": answer.blocks})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def api() -> Iterator[FakeAPI]:
    """A model that speaks slowly, until one has seen it speak and sets its `pace` to 0."""
    with FakeAPI(SCENARIO) as api:
        yield api


@pytest.fixture(scope="module")
def url(home: Path, api: FakeAPI) -> Iterator[str]:
    """Of the model, through the proxy."""
    with attached(home / "logs", [api.url], home=home / ".agent-logger") as port:
        yield f"http://127.0.0.1:{port}/anthropic/{api.url.removeprefix('http://')}"


@pytest.fixture(scope="module")
def seen(home: Path) -> Iterator[Watched]:
    with showing(home) as page, chromium() as browser, let_in(browser, page) as watched:
        yield watched
        assert (watched.complaints, watched.elsewhere) == ([], [])


@pytest.fixture
def agent(url: str, api: FakeAPI, seen: Watched) -> Iterator[Agent]:
    """That has said something already, and is on the live page."""
    api.pace = 1.0
    with closing(DemoClient(url)) as client:
        agent = Agent(client)
        agent.ask("Are you there?").join()
        seen.go("/live")
        expect(_running(seen, agent)).to_contain_text("Ready.", timeout=30_000)
        yield agent


def _running(seen: Watched, agent: Agent) -> Locator:
    return seen.tab.locator(".running", has=seen.tab.locator(f"[data-words='{agent.session}']"))


def test_an_answer_is_shown_while_it_streams(seen: Watched, api: FakeAPI, agent: Agent) -> None:
    tab = seen.tab
    seen.go(f"/sessions/{agent.session}")
    asked = agent.ask("Tell me words")
    said = tab.locator("#words")
    expect(said).to_contain_text("word01 word02")
    assert "word39" not in tab.inner_text("#conversation")
    assert KEY[:20] not in tab.inner_text("#conversation")
    assert "<script>alert(2)" in tab.inner_text("#words"), "it is text, and nothing else"
    api.pace = 0
    asked.join()
    expect(tab.locator(".exchange .turn").last).to_contain_text("the end.")
    expect(said).to_be_empty()
    expect(tab.locator(".toc li")).to_have_count(2)
    expect(tab.locator(".tabs [aria-current]")).to_have_text("Conversation")
    assert KEY not in tab.content()


def test_the_live_page_shows_the_text_of_running_sessions(seen: Watched, api: FakeAPI, agent: Agent) -> None:
    running = _running(seen, agent)
    asked = agent.ask("Tell me words")
    expect(running.locator(".speaking")).to_contain_text("word01")
    assert "word39" not in running.inner_text()
    api.pace = 0
    asked.join()
    expect(running.locator(".turn:not(.speaking)").last).to_contain_text("the end.")
    expect(running.locator(".speaking")).to_have_count(0)


def _drag_up(tab: Page) -> None:
    """As a finger or the scroll bar does: no wheel, no key, and not in one step."""
    for _ in range(20):
        tab.evaluate("scrollBy(0, -300)")
        tab.wait_for_timeout(60)
        if tab.inner_text("[data-follow]") == "Follow":
            return


def test_following_stops_on_scrolling_up_and_resumes_at_the_end(seen: Watched, api: FakeAPI, agent: Agent) -> None:
    tab = seen.tab
    seen.go(f"/sessions/{agent.session}")
    asked = agent.ask("Tell me lines")
    expect(tab.locator("#words")).to_contain_text("line003")
    tab.evaluate("document.querySelector('#words .prose p').dataset.kept = 'yes'")
    tab.click("[data-follow]")
    for _ in range(2):  # and then with more of them
        tab.wait_for_function(f"{BELOW} < 5")
        tab.wait_for_timeout(300)
    expect(tab.locator("#words p[data-kept]")).to_have_text("line000")  # what is there is not made anew
    _drag_up(tab)
    expect(tab.locator("[data-follow]")).to_have_text("Follow")
    at = tab.evaluate("scrollY")
    tab.wait_for_timeout(400)
    assert abs(tab.evaluate("scrollY") - at) < 5, "what is read must stay where it is while more comes"
    tab.keyboard.press("End")
    expect(tab.locator("[data-follow]")).to_have_text("Following")
    api.pace = 0
    asked.join()
    expect(tab.locator(".exchange .turn").last.get_by_text("line099")).to_be_in_viewport()
