"""The addresses of sessions: short where that is enough, and every name of a session is one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.home.marks import label_session
from tests.catalog.catalogs import assistant, claude_file, user
from tests.web import homes
from tests.web.page_process import Page, showing
from tests.web.test_trouble import until

ALONE = "aaaaaaaa-1111-4111-8111-111111111111"
TWINS = ("bbbbbbbb-1111-4111-8111-111111111111", "bbbbbbbb-2222-4111-8111-111111111111")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    home = tmp_path_factory.mktemp("home")
    for number, name in enumerate((ALONE, *TWINS)):
        lines = [user(10 * number, f"Task {name[:13]}", name), assistant(10 * number + 1, "Done", name)]
        claude_file(home, name, lines)
    (home / ".agent-logger").mkdir()
    label_session(home / ".agent-logger", ALONE, "my-task")
    with showing(home) as page:
        yield page


def get(page: Page, path: str) -> tuple[int, str]:
    answer = page.ask(path, cookie=page.let_in)
    return answer.status, answer.text


@pytest.mark.parametrize("name", [ALONE, ALONE[:8], ALONE[:3], "my-task"])
@pytest.mark.parametrize("view", ["", "/timeline", "/wire", "/tree", "/why", "/turns/0", "/head"])
def test_every_name_of_a_session_is_an_address_of_its_views(page: Page, name: str, view: str) -> None:
    status, text = get(page, f"/sessions/{name}{view}")
    assert status == 200
    assert f"Task {ALONE[:13]}" in text


def test_links_have_the_short_id_where_it_is_unique(page: Page) -> None:
    _, text = get(page, "/sessions")
    links = set(re.findall(r'href="/sessions/([^"/?]+)"', text))
    assert links == {ALONE[:8], TWINS[0][:10], TWINS[1][:10]}
    for link in links:
        assert get(page, f"/sessions/{link}")[0] == 200


def test_an_ambiguous_address_lists_the_sessions_that_it_may_mean(page: Page) -> None:
    status, text = get(page, "/sessions/bbbb")
    assert status == 300
    assert "bbbb may mean 2 sessions" in text
    assert all(f'href="/sessions/{name[:10]}"' in text for name in TWINS)
    assert ALONE[:8] not in text
    status, text = get(page, "/api/v1/sessions/bbbb")
    assert status == 300
    assert all(name in json.loads(text)["error"] for name in TWINS)


def test_an_unknown_address_is_not_found(page: Page) -> None:
    assert get(page, "/sessions/cccc")[0] == 404


def test_addresses_for_programs_have_the_whole_id(page: Page) -> None:
    _, text = get(page, f"/api/v1/sessions/{ALONE[:8]}")
    assert json.loads(text)["url"] == f"/sessions/{ALONE}"


def test_a_unique_beginning_of_an_id_means_that_session_whatever_logs_are_called(home: Path) -> None:
    homes.demo(home)
    (log,) = (home / "demo").glob("*.jsonl")
    name = f"{log.stem[:8]}-of-the-same-day"
    claude_file(home, name, [user(1, "One", name), assistant(2, "Done", name)])
    with Catalog.open() as catalog:
        assert len(catalog.sessions()) == 2
        short_ids = catalog.short_ids()
        assert short_ids == catalog.short_ids(short_ids)
        assert len(short_ids[name]) > 8
        assert [catalog.resolve(short) for short in short_ids.values()] == [[name] for name in short_ids]


def test_labels_are_in_a_pick_list_and_select_their_sessions(page: Page) -> None:
    _, text = get(page, "/sessions")
    assert '<option value="my-task">my-task</option>' in text
    _, text = get(page, "/sessions?label=my-task")
    assert '<option value="my-task" selected>my-task</option>' in text
    assert set(re.findall(r'class="row-link" href="/sessions/([^"]+)"', text)) == {ALONE[:8]}


def test_a_new_label_appears_by_itself(page: Page) -> None:
    _, text = get(page, "/sessions")
    (version,) = re.findall(r"/events\?version=([^\"]+)", text)
    label_session(page.home / ".agent-logger", TWINS[0], "later <b>")
    assert until(lambda: "later &lt;b&gt;" in get(page, "/sessions")[1])
    assert until(lambda: version not in get(page, "/sessions")[1]), "pages that listen hear of it"
    assert "later &lt;b&gt;" in get(page, f"/sessions/{TWINS[0]}/tree")[1]
