"""Every view, in a real browser, over real files of all agents, the recorded demo and ten thousand messages."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect
from playwright.sync_api import Page as Tab

from agent_logger.agents.registry import AGENTS
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.commands import run_command
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
    beginning = homes.demo(home)
    marks = ["tag", beginning, "todo", "--pin", "--note", "Ask about the kettle."]
    assert run_command(marks, {"HOME": str(home), "PATH": os.environ["PATH"]}).returncode == 0
    return beginning


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
    "home-365": "/?days=365&by=project",
    "sessions": "/sessions",
    "filtered": "/sessions?agent=codex&witness=transcript&since=2026-01-01",
    "none": "/sessions?title=no+such+title",
    "search": "/search?q=timer",
    "live": "/live",
    "health": "/health",
    "why": "/why?limit=20",
    "session": "{demo}",
    "turn": "{demo}/turns/1",
    "timeline": "{demo}/timeline",
    "wire": "{demo}/wire",
    "not-proxied": f"/sessions/{homes.FORKED}/wire",
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
def test_every_view_is_accessible_in_both_themes_and_on_narrow_screens(
    tab: Watched, demo_url: str, long: str, view: str
) -> None:
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


def test_the_link_opens_the_home_page_in_a_new_browser(browser: Browser, page: Page) -> None:
    with let_in(browser, page) as watched:
        watched.tab.context.clear_cookies()
        watched.tab.goto(page.link())
        expect(watched.tab).to_have_url(f"{page.url}/")
        expect(watched.tab.locator("svg.chart.columns")).to_be_visible()
        watched.go("/sessions")
        expect(watched.tab.locator(".list tbody tr").first).to_be_visible()
        assert (watched.complaints, watched.elsewhere) == ([], [])


def test_home_page_entries_link_to_their_sessions(seen: Watched) -> None:
    seen.go("/?by=project")
    seen.tab.click(".legend a:text-is('tea-timer')")
    expect(seen.tab).to_have_url(re.compile(r"/sessions"))
    expect(seen.tab.locator(".list tbody tr, .session-head")).to_have_count(1)


def test_every_chart_has_a_table_behind_it(seen: Watched) -> None:
    seen.go("/")
    charts = seen.tab.locator("svg.chart.columns")
    assert charts.count() == 1
    seen.tab.click("text=As a table")
    assert seen.tab.locator(".behind table tbody tr").count() >= 1


def test_the_month_to_date_comes_first(seen: Watched) -> None:
    seen.go("/")
    month = seen.tab.locator("main section").first
    expect(month.locator("h2").first).to_have_text(re.compile(r"^\w+ so far$"))
    expect(month.locator(".figure").first).to_have_text(re.compile(r"^\$"))
    assert [month.locator("h2").nth(number).inner_text().split()[0] for number in (1, 2)] == ["Against", "By"]


@pytest.mark.parametrize("by", ["model", "project", "agent"])
def test_the_values_of_a_column_are_shown_at_the_pointer(seen: Watched, by: str) -> None:
    seen.go("/?days=7")
    seen.tab.click(f".switch a:text-is('{by}')")
    expect(seen.tab.locator(".switch a[aria-current]", has_text=by)).to_be_visible()
    column = seen.tab.locator("svg.columns a", has=seen.tab.locator("[class^=series]")).last
    label = column.get_attribute("aria-label") or ""
    column.hover(force=True)
    tip = seen.tab.locator(".tip:visible")
    expect(tip.locator("p").first).to_have_text(label.replace(": ", ""))
    row = seen.tab.locator(f"#cost-table tr[data-column='{column.get_attribute('data-column')}']")
    values = [text for text in row.locator("td").all_text_contents()[2:] if text]
    assert tip.locator("p").count() == 1 + len(values)
    seen.tab.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_the_setup_page_is_shown_when_nothing_is_recorded(tmp_path: Path, browser: Browser) -> None:
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go("/")
        expect(watched.tab.locator(".setup")).to_contain_text("No sessions yet")
        expect(watched.tab.locator(".agents tbody tr")).to_have_count(sum(agent.run is not None for agent in AGENTS))
        expect(watched.tab.locator(".agents")).to_contain_text("agent-logger run -- claude")
        assert watched.axe() == []
        watched.tab.click("text=Record the demo")
        expect(watched.tab.locator(".recent").first).to_contain_text("My tea timer rings too early", timeout=30_000)
        assert (watched.complaints, watched.elsewhere) == ([], [])


# ---------------------------------------------------------------- sessions and search


def test_filters_are_in_the_url(seen: Watched) -> None:
    seen.go("/sessions")
    seen.tab.select_option("select[name=agent]", "codex")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?agent=codex")
    agents = set(seen.tab.locator(".list .agent").all_inner_texts())
    assert agents == {"codex"}
    seen.tab.select_option("select[name=period]", "this-year")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?agent=codex&period=this-year")
    seen.tab.click("text=Clear")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions")


def test_pick_lists_have_the_values_of_the_sessions(seen: Watched) -> None:
    seen.go("/sessions")
    items = json.loads(seen.page.ask("/api/v1/sessions?limit=1000", cookie=seen.page.let_in).text)["items"]
    for name, values in (
        ("agent", {item["agent"] for item in items}),
        ("project", {item["project"] for item in items}),
        ("model", {model for item in items for model in item["models"]}),
    ):
        options = seen.tab.locator(f"select[name={name}] option").all()
        assert {option.get_attribute("value") for option in options} == {"", *values} - {None}


def test_dates_replace_a_period_and_a_period_replaces_dates(seen: Watched) -> None:
    seen.go("/sessions?period=7d")
    seen.tab.click(".more-filters summary")
    seen.tab.fill("input[name=since]", "2026-11-05")
    seen.tab.locator("input[name=since]").dispatch_event("change")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?since=2026-11-05")
    expect(seen.tab.locator("select[name=period] option:checked")).to_have_text("from 2026-11-05")
    seen.tab.select_option("select[name=period]", "any")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions")


def test_twenty_sessions_fit_on_a_screen(seen: Watched) -> None:
    seen.tab.set_viewport_size({"width": 1280, "height": 800})
    seen.go("/sessions")
    rows = seen.tab.locator(".list tbody tr")
    tops = [rows.nth(number).bounding_box() for number in range(min(20, rows.count()))]
    assert tops
    heights = [box["height"] for box in tops if box]
    first = tops[0]
    assert first
    assert first["y"] + 20 * max(heights) <= 800


def test_a_whole_row_opens_its_session_and_its_details_open_in_place(seen: Watched) -> None:
    seen.go("/sessions")
    row = seen.tab.locator(".list tbody tr").nth(1)
    href = row.locator("a").first.get_attribute("href")
    row.locator(".peek summary").click()
    expect(row.locator(".peek dl")).to_contain_text("Peak context")
    seen.tab.keyboard.press("Escape")
    expect(row.locator(".peek dl")).to_be_hidden()
    row.click(position={"x": 700, "y": 10})
    expect(seen.tab).to_have_url(f"{seen.page.url}{href}")


def test_a_session_that_was_not_proxied_has_the_line_that_records_the_next_one(page: Page) -> None:
    answer = page.ask(f"/sessions/{homes.FORKED}/wire", cookie=page.let_in)
    assert 'data-copy="agent-logger run -- codex' in answer.text


def test_filters_fold_on_a_narrow_screen(seen: Watched) -> None:
    seen.tab.set_viewport_size({"width": 390, "height": 740})
    seen.go("/sessions")
    expect(seen.tab.locator("#filters")).to_be_hidden()
    seen.tab.click("text=Filters")
    expect(seen.tab.locator("select[name=agent]")).to_be_visible()
    assert seen.axe() == []
    seen.tab.select_option("select[name=agent]", "codex")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?agent=codex")
    expect(seen.tab.locator(".fold-filters")).to_have_text("Filters (1)")


def test_the_palette_opens_what_its_words_name(seen: Watched) -> None:
    seen.go("/health")
    seen.tab.keyboard.press("Control+k")
    option = seen.tab.locator("#palette-list [aria-selected=true]")
    expect(option).to_contain_text("Home")
    seen.tab.keyboard.type("tea timer early")
    expect(option).to_contain_text("My tea timer rings too early")
    assert seen.axe() == []
    active = seen.tab.locator("#palette input").get_attribute("aria-activedescendant")
    assert active == option.get_attribute("id")
    href = option.get_attribute("href")
    seen.tab.keyboard.press("Enter")
    expect(seen.tab).to_have_url(f"{seen.page.url}{href}")


@pytest.mark.parametrize(
    ("text", "kind", "url"),
    [("cost by proj", "Views", "/?by=project"), ("tea-timer", "Projects", "/sessions?project=%2Fdemo%2Ftea-timer")],
)
def test_the_palette_has_views_and_projects(seen: Watched, text: str, kind: str, url: str) -> None:
    seen.go("/sessions")
    seen.tab.click("[data-palette]")
    seen.tab.keyboard.type(text)
    expect(seen.tab.locator("#palette-list a").first).to_have_attribute(
        "href", re.compile(re.escape(url.split("=")[0]))
    )
    group = seen.tab.locator("#palette-list [role=group]", has_text=kind).first
    expect(group.locator(f"a[href$='{url.rpartition('%2F')[2]}']")).to_have_count(1)
    seen.tab.keyboard.press("ArrowDown")
    expect(seen.tab.locator("#palette-list [aria-selected=true]")).to_have_count(1)
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.locator("#palette")).to_be_hidden()


def test_the_list_can_be_ordered_by_cost(seen: Watched) -> None:
    seen.go("/sessions?agent=claude-code")
    seen.tab.click("th >> text=Cost")
    expect(seen.tab).to_have_url(f"{seen.page.url}/sessions?agent=claude-code&order=cost")
    expect(seen.tab.locator("th[aria-sort]")).to_have_text("Cost")
    told = seen.tab.locator("td.cost-cell").all_inner_texts()
    costs = [float(it.strip("$+")) for it in told if it.startswith("$")]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) > 3


def test_the_list_can_be_navigated_by_keyboard(seen: Watched) -> None:
    seen.go("/sessions")
    for key in "jjk":
        seen.tab.keyboard.press(key)
    first = seen.tab.locator(".list tbody tr").nth(0)
    expect(first).to_have_class("at")
    href = first.locator("a").first.get_attribute("href")
    seen.tab.keyboard.press("Enter")
    expect(seen.tab).to_have_url(f"{seen.page.url}{href}")


def test_search_results_appear_while_typing_and_open_the_matching_turn(seen: Watched) -> None:
    seen.go("/")
    seen.tab.keyboard.press("/")
    seen.tab.keyboard.type("half minutes")
    hit = seen.tab.locator("#found li a").first
    expect(hit.locator("mark").first).to_have_text(re.compile("half|minutes", re.IGNORECASE))
    target = (hit.get_attribute("href") or "").partition("#")[2]
    hit.click()
    expect(seen.tab.locator(f"#{target}")).to_be_in_viewport()
    expect(seen.tab.locator(f"#{target}")).to_contain_text(re.compile("half", re.IGNORECASE))


def test_escape_closes_the_search(seen: Watched) -> None:
    seen.go("/sessions")
    seen.tab.fill(".search input", "timer")
    expect(seen.tab.locator("#found")).to_be_visible()
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.locator("#found")).to_be_hidden()


def test_the_chosen_theme_applies_to_every_page(seen: Watched) -> None:
    seen.go("/")
    before = seen.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.tab.keyboard.press("t")
    after = seen.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    seen.go("/sessions")
    assert seen.tab.evaluate("getComputedStyle(document.body).backgroundColor") == after
    assert seen.tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_question_mark_key_opens_the_help(seen: Watched) -> None:
    seen.go("/")
    seen.tab.keyboard.press("?")
    expect(seen.tab.locator("#help")).to_be_visible()
    assert seen.axe() == []
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.locator("#help")).to_be_hidden()


# ---------------------------------------------------------------- a session


def test_a_session_page_shows_prompts_tools_diffs_and_thoughts(seen: Watched, demo_url: str) -> None:
    seen.go(demo_url)
    tab = seen.tab
    expect(tab.locator(".asked")).to_have_count(3)
    expect(tab.locator(".tool.failed pre.output")).to_contain_text("1 failed, 1 passed")
    expect(tab.locator(".diff .added")).to_contain_text("round(minutes * 60)")
    thought = tab.locator(".thought").first
    assert thought.evaluate("it => it.open") is False
    thought.locator("summary").click()
    expect(thought.locator(".prose")).to_be_visible()
    expect(tab.locator(".session-tools button").first).to_have_attribute("data-copy", re.compile("claude --resume"))


def test_a_sub_agent_is_shown_under_its_call_and_can_be_opened(seen: Watched) -> None:
    seen.go(f"/sessions/{homes.SUB_AGENTS}")
    agents = seen.tab.locator(".tool.kind-agent .agent-work")
    expect(agents).to_have_count(2)
    agents.first.locator("summary").first.click()
    expect(agents.first.locator(".turn").first).to_be_visible()


def test_a_link_to_a_sub_agent_turn_opens_the_sub_agent(seen: Watched) -> None:
    seen.go(f"/sessions/{homes.SUB_AGENTS}#turn-3")
    expect(seen.tab.locator(".agent-work #turn-3")).to_be_in_viewport()


def test_search_in_a_session_scrolls_to_the_match(seen: Watched, long: str) -> None:
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


def test_distant_parts_are_loaded_on_scrolling(seen: Watched, long: str) -> None:
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


def test_a_long_tool_result_is_loaded_when_opened(seen: Watched, long: str) -> None:
    seen.go(f"/sessions/{long}")
    tool = seen.tab.locator("details.tool[data-src]").first
    assert tool.locator("pre").count() == 0
    tool.locator("summary").click()
    expect(seen.tab.locator("details.tool[open] pre").first).to_be_visible()


def test_a_turn_links_to_its_wire_call(seen: Watched, demo_url: str) -> None:
    seen.go(demo_url)
    seen.tab.locator("#turn-2 .about a", has_text="wire").click()
    expect(seen.tab.locator("h2", has_text="What changed")).to_be_visible()
    expect(seen.tab.locator(".call-line")).to_contain_text("POST")
    seen.tab.click("summary:has-text('Events as received')")
    expect(seen.tab.locator(".events tbody tr").first).to_contain_text("message_start")
    seen.tab.click("summary:has-text('Headers') >> nth=0")
    expect(seen.tab.locator(".headers").first).to_contain_text("x-claude-code-session-id")
    assert seen.axe() == []


def test_a_call_is_compared_with_any_other_call(seen: Watched, demo_url: str) -> None:
    seen.go(f"{demo_url}/wire")
    rows = seen.tab.locator(".calls tbody tr")
    expect(rows).to_have_count(8)
    rows.nth(4).click(position={"x": 600, "y": 10})
    expect(seen.tab.locator(".call-line")).to_contain_text("Call 5 of 8")
    value = seen.tab.locator("select[name=since] option", has_text=re.compile("^1: ")).get_attribute("value") or ""
    seen.tab.select_option("select[name=since]", value)
    expect(seen.tab).to_have_url(re.compile(rf"\?since={value}$"))
    added = seen.tab.locator("#changes .diff", has_text="added").first
    expect(added).to_be_visible()
    expect(seen.tab.locator("#changes")).to_contain_text("1 message unchanged")
    assert seen.axe() == []
    seen.tab.goto(seen.tab.url.partition("?")[0] + "?since=no-such-call")
    expect(seen.tab.locator("h1")).to_contain_text("no call no-such-call to compare with")
    seen.complaints.clear()  # the browser reports the 404


def test_calls_show_cache_cost_and_seconds(seen: Watched, demo_url: str) -> None:
    seen.go(f"{demo_url}/wire")
    first = seen.tab.locator(".calls tbody tr").first
    expect(first.locator("time")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    expect(first.locator("[data-label='cache write']")).to_have_text("11.8k")
    costs = seen.tab.locator("[data-label=cost]").all_inner_texts()
    assert all(cost.startswith("$") for cost in costs)
    items = json.loads(seen.page.ask(f"/api/v1{demo_url}/ledger", cookie=seen.page.let_in).text)["items"]
    assert sum(float(cost[1:]) for cost in costs) == pytest.approx(sum(item["cost_usd"] for item in items), abs=0.001)


@pytest.mark.parametrize(("form", "beginning"), [("md", "# My tea timer"), ("html", "<!doctype"), ("json", "{")])
def test_a_session_can_be_exported_and_copied(seen: Watched, demo_url: str, form: str, beginning: str) -> None:
    seen.go(demo_url)
    seen.tab.click(".menu summary")
    assert seen.axe() == []
    with seen.tab.expect_download() as download:
        seen.tab.click(f".menu a[href$='/export/{form}']")
    assert re.fullmatch(rf"session-[0-9a-f]{{8}}\.{form}", download.value.suggested_filename)
    assert Path(download.value.path()).read_text().lower().startswith(beginning.lower())


def test_copy_buttons_copy_the_export_and_the_resume_command(seen: Watched, demo_url: str) -> None:
    seen.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.go(demo_url)
    seen.tab.click("text=Copy resume command")
    expect(seen.tab.locator(".session-tools button").first).to_have_text("Copied")
    assert seen.tab.evaluate("navigator.clipboard.readText()").startswith("claude --resume ")
    seen.tab.click(".menu summary")
    seen.tab.click(".menu li:first-child button")
    expect(seen.tab.locator(".menu li:first-child button")).to_have_text("Copied")
    assert seen.tab.evaluate("navigator.clipboard.readText()").startswith("# My tea timer")


def test_a_cost_links_to_its_ledger_rows(seen: Watched, demo_url: str) -> None:
    seen.go(demo_url)
    seen.tab.click(".facts a[title='How this number is computed']")
    expect(seen.tab.locator(".rows tbody tr")).to_have_count(8)
    expect(seen.tab.locator(".rows tbody tr").first).to_contain_text("matched by message id")


def test_a_damaged_line_is_shown_on_the_health_page(home: Path, browser: Browser, tmp_path: Path) -> None:
    homes.real_sessions(tmp_path)
    (broken, *_) = sorted((tmp_path / ".claude/projects").rglob("*.jsonl"))
    with broken.open("ab") as file:
        file.write(b'{"type":"user","message":<script>alert(1)</script>\n')
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go("/health")
        watched.tab.click(f"a:has-text('{broken.name}')", timeout=30_000)
        expect(watched.tab.locator("pre")).to_contain_text("<script>alert(1)</script>")
        watched.tab.set_viewport_size({"width": 380, "height": 740})
        assert watched.tab.evaluate("document.documentElement.scrollWidth") <= 380
        assert (watched.complaints, watched.elsewhere) == ([], [])


# ---------------------------------------------------------------- live


def test_a_growing_session_is_followed_until_the_reader_scrolls(tmp_path: Path, browser: Browser) -> None:
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


def test_turns_that_were_in_view_are_not_announced_to_a_reader_who_scrolls_away(
    tmp_path: Path, browser: Browser
) -> None:
    session = homes.long_session(tmp_path, 200)
    (path,) = (tmp_path / ".claude/projects").rglob("*.jsonl")
    with showing(tmp_path) as page, let_in(browser, page) as watched:
        watched.go(f"/sessions/{session}")
        tab = watched.tab
        _append(path, session, "What shows that it goes on")
        tab.click("[data-follow]")
        expect(tab.get_by_text("What shows that it goes on").last).to_be_in_viewport(timeout=10_000)
        # The head of the page arrives late: the reader scrolls while the page is still being renewed.
        held: list[Route] = []
        tab.route("**/head", lambda route: held.append(route))
        _append(path, session, "The first new thing")
        expect(tab.get_by_text("The first new thing").last).to_be_in_viewport(timeout=10_000)
        tab.mouse.wheel(0, -4000)
        expect(tab.locator("[data-follow]")).to_have_text("Follow")
        while not held:
            tab.wait_for_timeout(20)
        with tab.expect_response("**/head"):
            held[0].continue_()
        tab.wait_for_timeout(300)
        expect(tab.locator("[data-follow]")).to_have_text("Follow")


def test_a_new_session_appears_in_the_list_without_reload(tmp_path: Path, browser: Browser) -> None:
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
