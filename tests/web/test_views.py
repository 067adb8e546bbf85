"""Every view, in a real browser, over real files of all agents, the recorded demo and ten thousand messages."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from agent_logger.agents.registry import AGENTS
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.web import homes
from tests.web.browser import Watched, chromium, let_in
from tests.web.page_process import Page, showing

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.needs("axe")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def demo(home: Path) -> str:
    homes.real_sessions(home)
    return homes.demo(home)


@pytest.fixture(scope="module")
def long(home: Path) -> str:
    return homes.long_session(home, 10_000)


@pytest.fixture(scope="module")
def page(home: Path, demo: str, long: str) -> Iterator[Page]:
    with showing(home) as page:
        yield page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shared_tab(browser: Browser, page: Page) -> Iterator[Watched]:
    with let_in(browser, page) as watched:
        yield watched


@pytest.fixture
def tab(shared_tab: Watched) -> Watched:
    shared_tab.clear()
    return shared_tab


@pytest.fixture
def seen(tab: Watched) -> Iterator[Watched]:
    """Whatever a test does, the browser has nothing to complain about, and asks nobody else."""
    yield tab
    assert tab.complaints == []
    assert tab.elsewhere == []


@pytest.fixture(scope="module")
def demo_url(page: Page, demo: str) -> str:
    answer = page.ask("/api/v1/sessions?project=tea-timer", cookie=page.let_in)
    (session,) = json.loads(answer.text)["items"]
    assert session["id"].startswith(demo)
    return str(session["url"])


VIEWS = {
    "home": "/",
    "home-365": "/?days=365",
    "sessions": "/sessions",
    "filtered": "/sessions?agent=codex&witness=transcript",
    "none": "/sessions?title=no+such+title",
    "search": "/search?q=timer",
    "live": "/live",
    "health": "/health",
    "why": "/why?limit=20",
    "session": "{demo}",
    "turn": "{demo}/turns/1",
    "timeline": "{demo}/timeline",
    "wire": "{demo}/wire",
    "tree": "{demo}/tree",
    "session-why": "{demo}/why",
    "sub-agents": f"/sessions/{homes.SUB_AGENTS}",
    "forks": f"/sessions/{homes.FORKED}/tree",
    "beside": f"/sessions/{homes.FORKED}/beside/{homes.FORK}",
    "long": "/sessions/{long}",
    "gone": "/sessions/no-such-session",
    "nowhere": "/no-such-page",
}


LARGE = pytest.param("long", marks=pytest.mark.long)  # axe takes its time with thousands of elements


@pytest.mark.parametrize("view", [LARGE if view == "long" else view for view in VIEWS])
def test_every_view_can_be_used_by_everybody(tab: Watched, demo_url: str, long: str, view: str) -> None:
    """By light and in the dark, on a large screen and a narrow one."""
    missing = view in ("gone", "nowhere")
    answer = tab.go(VIEWS[view].format(demo=demo_url, long=long))
    assert answer is not None
    assert answer.status == (404 if missing else 200)
    assert tab.tab.locator("link[rel=icon]").count() == 1
    assert tab.axe() == []
    tab.tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert tab.axe("color-contrast") == []
    tab.tab.set_viewport_size({"width": 380, "height": 740})
    assert tab.tab.evaluate("document.documentElement.scrollWidth") <= 380, tab.tab.evaluate(
        "[...document.querySelectorAll('main *')].filter(it => it.getBoundingClientRect().right > 381)"
        ".slice(0, 5).map(it => it.outerHTML.slice(0, 120))"
    )
    assert [it for it in tab.complaints if not (missing and "404" in it)] == []
    assert tab.elsewhere == []


# ---------------------------------------------------------------- home


def test_the_link_leads_home_in_a_browser_that_was_never_here(browser: Browser, page: Page) -> None:
    with let_in(browser, page) as watched:
        watched.tab.context.clear_cookies()
        watched.tab.goto(page.link())
        expect(watched.tab).to_have_url(f"{page.url}/")
        expect(watched.tab.locator("svg.chart.bars")).to_be_visible()
        watched.go("/sessions")
        expect(watched.tab.locator(".list tbody tr").first).to_be_visible()
        assert (watched.complaints, watched.elsewhere) == ([], [])


def test_numbers_of_the_home_lead_to_their_sessions(seen: Watched) -> None:
    seen.go("/")
    seen.tab.click("text=tea-timer >> nth=0")
    expect(seen.tab).to_have_url(re.compile(r"/sessions"))
    expect(seen.tab.locator(".list tbody tr, .session-head")).to_have_count(1)


def test_every_chart_has_a_table_behind_it(seen: Watched) -> None:
    seen.go("/")
    charts = seen.tab.locator("svg.chart.bars")
    assert charts.count() == 1
    seen.tab.click("text=As a table")
    assert seen.tab.locator(".behind table tbody tr").count() >= 1


def test_who_has_nothing_yet_is_set_up(tmp_path: Path, browser: Browser) -> None:
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go("/")
        expect(watched.tab.locator(".setup")).to_contain_text("One minute")
        expect(watched.tab.locator(".agents tbody tr")).to_have_count(len(AGENTS))
        expect(watched.tab.locator(".agents")).to_contain_text("agent-logger run -- claude")
        assert watched.axe() == []
        watched.tab.click("text=Record the demo")
        expect(watched.tab.locator(".recent").first).to_contain_text(
            "My tea timer rings too early", timeout=30_000
        )
        assert (watched.complaints, watched.elsewhere) == ([], [])


# ---------------------------------------------------------------- sessions and search


def test_filters_are_in_the_address(seen: Watched) -> None:
    seen.go("/sessions")
    seen.tab.select_option("select[name=agent]", "codex")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?agent=codex")
    agents = set(seen.tab.locator(".list .agent").all_inner_texts())
    assert agents == {"codex"}
    seen.tab.click(".chips a >> nth=0")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions")


def test_the_list_begins_with_the_dearest_where_that_is_asked(seen: Watched) -> None:
    seen.go("/sessions?agent=claude-code")
    seen.tab.click("th >> text=Cost")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?agent=claude-code&order=cost")
    expect(seen.tab.locator("th[aria-sort]")).to_have_text("Cost")
    told = seen.tab.locator("td[data-label=cost]").all_inner_texts()
    costs = [float(it.strip("$+")) for it in told if it.startswith("$")]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) > 3


def test_the_list_is_walked_by_keyboard(seen: Watched) -> None:
    seen.go("/sessions")
    for key in "jjk":
        seen.tab.keyboard.press(key)
    first = seen.tab.locator(".list tbody tr").nth(0)
    expect(first).to_have_class("at")
    href = first.locator("a").first.get_attribute("href")
    seen.tab.keyboard.press("Enter")
    expect(seen.tab).to_have_url(f"{seen.page.url}{href}")


def test_words_are_found_while_they_are_typed_and_open_the_very_turn(seen: Watched) -> None:
    seen.go("/")
    seen.tab.keyboard.press("/")
    seen.tab.keyboard.type("half minutes")
    hit = seen.tab.locator("#found li a").first
    expect(hit.locator("mark").first).to_have_text(re.compile("half|minutes", re.IGNORECASE))
    target = (hit.get_attribute("href") or "").partition("#")[2]
    hit.click()
    expect(seen.tab.locator(f"#{target}")).to_be_in_viewport()
    expect(seen.tab.locator(f"#{target}")).to_contain_text(re.compile("half", re.IGNORECASE))


def test_escape_leaves_the_search(seen: Watched) -> None:
    seen.go("/sessions")
    seen.tab.fill(".search input", "timer")
    expect(seen.tab.locator("#found")).to_be_visible()
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.locator("#found")).to_be_hidden()


def test_the_theme_is_chosen_once(seen: Watched) -> None:
    seen.go("/")
    before = seen.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.tab.keyboard.press("t")
    after = seen.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    seen.go("/sessions")
    assert seen.tab.evaluate("getComputedStyle(document.body).backgroundColor") == after
    assert seen.tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_keys_are_explained(seen: Watched) -> None:
    seen.go("/")
    seen.tab.keyboard.press("?")
    expect(seen.tab.locator("#help")).to_be_visible()
    assert seen.axe() == []
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.locator("#help")).to_be_hidden()


# ---------------------------------------------------------------- a session


def test_a_session_reads_as_it_was(seen: Watched, demo_url: str) -> None:
    seen.go(demo_url)
    tab = seen.tab
    expect(tab.locator(".asked")).to_have_count(3)
    expect(tab.locator(".tool.failed pre.output")).to_contain_text("1 failed, 1 passed")
    expect(tab.locator(".diff .added")).to_contain_text("round(minutes * 60)")
    thought = tab.locator(".thought").first
    assert thought.evaluate("it => it.open") is False
    thought.locator("summary").click()
    expect(thought.locator(".prose")).to_be_visible()
    expect(tab.locator(".resume code")).to_contain_text("claude --resume")


def test_a_sub_agent_is_in_its_place_and_opens(seen: Watched) -> None:
    seen.go(f"/sessions/{homes.SUB_AGENTS}")
    agents = seen.tab.locator(".tool.kind-agent .agent-work")
    expect(agents).to_have_count(2)
    agents.first.locator("summary").first.click()
    expect(agents.first.locator(".turn").first).to_be_visible()


def test_a_link_to_a_turn_of_a_sub_agent_opens_it(seen: Watched) -> None:
    seen.go(f"/sessions/{homes.SUB_AGENTS}#turn-3")
    expect(seen.tab.locator(".agent-work #turn-3")).to_be_in_viewport()


def test_finding_in_a_session(seen: Watched, long: str) -> None:
    seen.go(f"/sessions/{long}")
    seen.tab.keyboard.press("f")
    seen.tab.keyboard.type("the")
    hit = seen.tab.locator(".found-list a").last
    expect(hit).to_be_visible()
    target = (hit.get_attribute("href") or "")[1:]
    hit.click()
    expect(seen.tab.locator(f"#{target}")).to_be_in_viewport()


@pytest.mark.parametrize("number", [1, 1500, 3000])
def test_every_turn_of_a_long_session_has_a_link(seen: Watched, long: str, number: int) -> None:
    seen.go(f"/sessions/{long}#turn-{number}")
    turn = seen.tab.locator(f"#turn-{number}")
    expect(turn).to_be_in_viewport()
    seen.tab.wait_for_timeout(500)
    assert -50 < turn.evaluate("it => it.getBoundingClientRect().top") < 700


def test_what_is_far_away_is_fetched_when_it_comes_near(seen: Watched, long: str) -> None:
    seen.go(f"/sessions/{long}")
    drawn = seen.tab.locator(".turn").count()
    assert drawn < 100
    fetched = seen.tab.locator(".exchange:not([data-lines])")
    for _ in range(200):
        seen.tab.mouse.wheel(0, 3000)
        seen.tab.wait_for_timeout(50)
        if fetched.count() > 12:
            break
    expect(fetched.nth(12)).to_be_attached()
    assert seen.tab.locator(".turn").count() > drawn


def test_a_long_result_is_fetched_when_it_is_opened(seen: Watched, long: str) -> None:
    seen.go(f"/sessions/{long}")
    tool = seen.tab.locator("details.tool[data-src]").first
    assert tool.locator("pre").count() == 0
    tool.locator("summary").click()
    expect(seen.tab.locator("details.tool[open] pre").first).to_be_visible()


def test_the_wire_under_a_turn(seen: Watched, demo_url: str) -> None:
    seen.go(demo_url)
    seen.tab.locator("#turn-2 .about a", has_text="wire").click()
    expect(seen.tab.locator("h2", has_text="What changed")).to_be_visible()
    expect(seen.tab.locator(".call-line")).to_contain_text("POST")
    seen.tab.click("summary:has-text('Events, as they came')")
    expect(seen.tab.locator(".events tbody tr").first).to_contain_text("message_start")
    seen.tab.click("summary:has-text('Headers') >> nth=0")
    expect(seen.tab.locator(".headers").first).to_contain_text("x-claude-code-session-id")
    assert seen.axe() == []


def test_a_number_is_explained_row_by_row(seen: Watched, demo_url: str) -> None:
    seen.go(demo_url)
    seen.tab.click(".facts a[title='Why this number']")
    expect(seen.tab.locator(".rows tbody tr")).to_have_count(8)
    expect(seen.tab.locator(".rows tbody tr").first).to_contain_text("matched by message id")


def test_damage_is_shown_with_the_line(home: Path, browser: Browser, tmp_path: Path) -> None:
    homes.real_sessions(tmp_path)
    (broken, *_) = sorted((tmp_path / ".claude/projects").rglob("*.jsonl"))
    with broken.open("ab") as file:
        file.write(b'{"type":"user","message":<script>alert(1)</script>\n')
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go("/health")
        watched.tab.click(f"a:has-text('{broken.name}')", timeout=30_000)
        expect(watched.tab.locator("pre")).to_contain_text("<script>alert(1)</script>")
        assert (watched.complaints, watched.elsewhere) == ([], [])


# ---------------------------------------------------------------- live


def test_a_session_that_goes_on_is_followed_until_one_scrolls(tmp_path: Path, browser: Browser) -> None:
    session = homes.long_session(tmp_path, 200)
    (path,) = (tmp_path / ".claude/projects").rglob("*.jsonl")
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go(f"/sessions/{session}")
        tab = watched.tab
        _append(path, session, "What shows that it goes on")
        tab.click("[data-follow]")
        _append(path, session, "The first new thing")
        expect(tab.get_by_text("The first new thing").last).to_be_in_viewport(timeout=10_000)
        before = tab.evaluate("scrollY")
        tab.mouse.wheel(0, -4000)
        expect(tab.locator("[data-follow]")).to_have_text("Follow")
        at = _at_rest(tab, before)
        _append(path, session, "The second new thing")
        expect(tab.locator("[data-follow]")).to_have_text(re.compile("new below"), timeout=10_000)
        assert abs(tab.evaluate("scrollY") - at) < 200
        assert (watched.complaints, watched.elsewhere) == ([], [])


def test_a_new_session_shows_up_in_the_list_by_itself(tmp_path: Path, browser: Browser) -> None:
    homes.long_session(tmp_path, 50)
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go("/sessions")
        expect(watched.tab.locator(".list tbody tr")).to_have_count(1)
        homes.real_sessions(tmp_path)
        expect(watched.tab.locator(".list tbody tr").nth(10)).to_be_visible(timeout=15_000)
        assert (watched.complaints, watched.elsewhere) == ([], [])


def test_long_names_do_not_make_a_page_wider_than_its_window(tmp_path: Path, browser: Browser) -> None:
    name = ID.format(1)
    lines = [
        user(1, "A" * 5000, name),
        *tool(2, name, "mcp__" + "long" * 50, {"command": "x" * 900}, "y" * 900),
    ]
    claude_file(tmp_path, name, [*lines, assistant(5, "z" * 900, name, model="model" * 60)])
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        for width, path in ((1280, "/sessions"), (375, f"/sessions/{name}/turns/0"), (375, "/live")):
            watched.tab.set_viewport_size({"width": width, "height": 800})
            watched.go(path)
            assert watched.tab.evaluate("document.documentElement.scrollWidth") <= width, path


def _at_rest(tab: Tab, before: int) -> int:
    """Where the page stands once the wheel has moved it from there, which takes a while."""
    places = [before]
    while before in places[-3:] or len(set(places[-3:])) > 1:
        tab.wait_for_timeout(100)
        places.append(tab.evaluate("scrollY"))
    return places[-1]


def _append(path: Path, session: str, text: str) -> None:
    """As the client writes: a person's words, and the model's answer."""
    last = json.loads(path.read_bytes().splitlines()[-1])
    asked = {**last, "type": "user", "parentUuid": last["uuid"], "uuid": f"u-{text}", "message": {}}
    asked["message"] = {"role": "user", "content": f"Say: {text}"}
    answer = {**asked, "type": "assistant", "parentUuid": asked["uuid"], "uuid": f"a-{text}"}
    told = [{"type": "text", "text": text}]
    answer["message"] = {"id": f"msg_{hash(text)}", "role": "assistant", "model": "claude-x", "content": told}
    with path.open("a") as file:
        file.write(json.dumps(asked) + "\n" + json.dumps(answer) + "\n")
