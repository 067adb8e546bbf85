"""A session as a file for others: HTML and Markdown that are safe whatever is in it, and JSON."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent_logger.logs.reader import read_session
from agent_logger.model.session import Session
from agent_logger.views.html.session import session_html
from agent_logger.views.json import session_json
from agent_logger.views.markdown import session_markdown
from agent_logger.views.printable import printable
from tests.hostile import HOSTILE, SHORT, name_of
from tests.views.html_check import Checked
from tests.views.sessions import all_hostile, all_tools, hostile, with_agents

GOLDEN = Path(__file__).parent / "golden"
DATA = Path(__file__).parents[1] / "data"
RECORDED = next(DATA.glob("claude-cli/2.1.325/subagents/home/.claude/projects/*/*.jsonl"))
KEY = "sk-ant-api03-" + "Qz7" * 20

texts = st.lists(st.sampled_from(SHORT) | st.text(max_size=10), min_size=1, max_size=4).map("".join)


def html(session: Session) -> str:
    return "".join(session_html(session))


def markdown(session: Session) -> str:
    return "".join(session_markdown(session))


def body(text: str) -> str:
    """Without the style sheet, which is no part of what is looked at here."""
    return re.sub(r"<style>.*?</style>|sha256-[\w+/=]*", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(("name", "text"), [("session.html", lambda it: body(html(it))), ("session.md", markdown)])
def test_exports_of_a_recorded_session_match_the_golden_files(name: str, text: object) -> None:
    assert callable(text)
    assert text(read_session(RECORDED)) == (GOLDEN / name).read_text()


# ---- HTML


@pytest.mark.parametrize("session", [all_tools(), with_agents()], ids=["tools", "agents"])
def test_a_page_is_valid_and_has_an_anchor_for_every_turn(session: Session) -> None:
    text = html(session)
    Checked(text)
    for number in range(len(session.turns)):
        assert f'id="turn-{number}"' in text
    assert text.count("<h1>") == 1
    assert "<script" not in text


def test_hostile_text_in_any_field_stays_text() -> None:
    page = html(all_hostile(SHORT))
    seen = Checked(page)
    assert printable(page, lines=True) == page
    assert not any("javascript" in link for link in seen.links)


@settings(max_examples=25, deadline=None)
@given(texts)
def test_any_text_in_any_field_stays_text(text: str) -> None:
    page = html(hostile(text))
    Checked(page)
    assert printable(page, lines=True) == page


def test_the_content_security_policy_allows_only_the_style_sheet() -> None:
    page = html(all_tools())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<title>")
    assert not re.search(r"\sstyle=|\son\w+=", page)


# ---- Markdown


def tokens(text: str) -> Iterator[Token]:
    """As a program would see it that takes HTML for HTML and everything for a link."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    for token in parser.parse(text):
        yield token
        yield from token.children or ()


def check(session: Session) -> None:
    text = markdown(session)
    assert printable(text, lines=True) == text
    found = list(tokens(text))
    assert not [it.content for it in found if it.type in ("html_block", "html_inline", "image")]
    links = [str(it.attrs["href"]) for it in found if it.type == "link_open"]
    assert [link for link in links if not re.match("https?:|mailto:", link)] == []
    headings = [found[i + 1].content for i, it in enumerate(found) if it.type == "heading_open" and it.tag == "h3"]
    ours = [int(it[1]) for it in map(re.compile(r"(\d+) ·").match, headings) if it]
    assert sorted(ours) == list(range(len(session.turns)))


@pytest.mark.parametrize("session", [all_tools(), with_agents()], ids=["tools", "agents"])
def test_every_turn_has_its_heading_in_markdown(session: Session) -> None:
    check(session)


@pytest.mark.parametrize("text", HOSTILE, ids=name_of)
def test_hostile_text_does_not_break_the_markdown_structure(text: str) -> None:
    check(hostile(text))


@settings(max_examples=25, deadline=None)
@given(texts | st.text("`~\n >-#<a[]()!", max_size=40))
def test_arbitrary_text_does_not_break_the_markdown_structure(text: str) -> None:
    check(hostile(text))


# ---- all of them


@pytest.mark.parametrize("write", [html, markdown, session_json])
def test_no_key_is_in_any_exported_file(write: object) -> None:
    assert callable(write)
    text = write(hostile(f"say {KEY} now"))
    assert "say sk-ant-" in text
    assert "Qz7Qz7" not in text


def test_the_json_export_contains_every_turn() -> None:
    read = json.loads(session_json(all_tools()))
    assert len(read["exchanges"][0]["turns"]) == len(all_tools().turns)
