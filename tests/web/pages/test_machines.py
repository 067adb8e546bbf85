"""The page over several homes: it says which machine a session is from, and counts by machine."""

import json
from collections.abc import Iterator

import pytest

from agent_logger.archive.run import archive_all
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.web.page_process import Page, showing

OURS, THEIRS = ID.format(1), ID.format(2)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("machines")
    homes = []
    with pytest.MonkeyPatch.context() as there:
        for number, (name, machine) in enumerate((("me", "desk"), ("them", "<laptop>")), 1):
            session = ID.format(number)
            claude_file(folder / name, session, [user(number, "Hello", session), assistant(10 + number, "Hi", session)])
            there.setenv("HOME", str(folder / name))
            homes.append(folder / name / ".agent-logger")
            archive_all(homes[-1])
            (homes[-1] / "machine.json").write_text(json.dumps({"machine": machine}))
    with showing(folder / "me", *[argument for home in homes for argument in ("--home", str(home))]) as page:
        yield page


def text_of(page: Page, path: str) -> str:
    answer = page.ask(path, cookie=page.let_in)
    assert answer.status == 200, answer.text
    return answer.text


def test_the_list_has_a_column_and_a_filter_for_machines(page: Page) -> None:
    rows = text_of(page, "/sessions")
    assert '<td class="machine-cell" title="desk">' in rows
    assert '<td class="machine-cell" title="&lt;laptop&gt;">' in rows and "<laptop>" not in rows
    selected = text_of(page, "/sessions?machine=%3Claptop%3E")
    assert THEIRS in selected and OURS not in selected


def test_a_session_of_another_machine_has_no_command_to_resume_it_here(page: Page) -> None:
    ours, theirs = text_of(page, f"/sessions/{OURS}"), text_of(page, f"/sessions/{THEIRS}")
    assert "on desk</span>" in ours and "Copy resume command" in ours
    assert "on &lt;laptop&gt;</span>" in theirs and "Copy resume command" not in theirs


def test_cost_is_broken_down_by_machine(page: Page) -> None:
    home = text_of(page, "/?by=machine")
    assert "machine=desk" in home and "machine=%3Claptop%3E" in home
    rows = json.loads(text_of(page, "/api/v1/usage?by=machine"))["items"]
    assert {row["key"]: row["responses"] for row in rows} == {"desk": 1, "<laptop>": 1}
    sessions = json.loads(text_of(page, "/api/v1/sessions"))["items"]
    assert {session["id"]: session["machines"] for session in sessions} == {OURS: ["desk"], THEIRS: ["<laptop>"]}
