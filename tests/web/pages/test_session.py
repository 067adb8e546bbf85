"""The page of a session, for sessions of which little is known."""

import html
import re
from pathlib import Path

from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.web.page_process import showing


def test_a_prompt_that_was_not_typed_to_the_agent_is_not_called_yours(home: Path) -> None:
    typed, given = ID.format(1), ID.format(2)
    claude_file(home, typed, [user(1, "Hello", typed), assistant(2, "Hi", typed)])
    claude_file(home, given, [user(1, "Hello", given, promptSource="sdk"), assistant(2, "Hi", given)])
    with showing(home) as page:
        asked = {name: page.ask(f"/sessions/{name}", cookie=page.let_in).text for name in (typed, given)}
    words = {name: " ".join(re.sub(r"<[^>]*>", "", text).split()) for name, text in asked.items()}
    assert "1 You" in words[typed] and "1 Prompt" in words[given]


def test_the_head_of_a_session_without_an_answer_has_no_share_of_nothing(home: Path) -> None:
    name = ID.format(1)
    claude_file(home, name, [user(1, "Hello", name)])
    with showing(home) as page:
        text = html.unescape(page.ask(f"/sessions/{name}", cookie=page.let_in).text)
    head = " ".join(re.sub(r"<[^>]*>", " ", text[text.index('id="session-head"') :].partition("</header>")[0]).split())
    assert "0 out, 0 in Context – Active" in head
