"""Pieces as HTML: whatever they hold, the page gets text, colours, and nothing that runs or loads."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.views.html.ansi import output_lines
from agent_logger.views.html.code import LANGUAGES, code_lines
from agent_logger.views.html.markdown import prose_html
from agent_logger.views.html.pieces import LONGEST, html_of
from agent_logger.views.pieces import (
    Checklist,
    ChecklistItem,
    Code,
    Diff,
    DiffLine,
    FileList,
    Json,
    Link,
    Matches,
    MatchLine,
    OutputPiece,
    Picture,
    Piece,
    Prose,
    Terminal,
)
from agent_logger.views.printable import printable
from tests.hostile import HOSTILE, SHORT, name_of
from tests.views.html_check import Checked

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()

texts = st.lists(st.sampled_from(SHORT) | st.text(max_size=10)).map("".join)


def pieces(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Piece]:
    signs = st.sampled_from(" +-@")
    values = st.recursive(
        texts | st.integers() | st.none(), lambda it: st.lists(it) | st.dictionaries(texts, it), max_leaves=4
    )
    return st.one_of(
        st.builds(Prose, texts),
        st.builds(
            Code,
            texts,
            st.none() | texts | st.sampled_from(sorted(LANGUAGES)),
            st.none() | st.integers(1, 99),
        ),
        st.builds(Diff, st.none() | texts, st.lists(st.builds(DiffLine, signs, texts)).map(tuple), texts),
        st.builds(Terminal, texts, st.none() | texts, st.none() | st.integers()),
        st.builds(OutputPiece, texts, st.booleans()),
        st.builds(Matches, st.lists(st.builds(MatchLine, texts, st.integers(), texts)).map(tuple)),
        st.builds(FileList, st.lists(texts).map(tuple)),
        st.builds(
            Checklist,
            st.lists(st.builds(ChecklistItem, texts, st.sampled_from(["open", "doing", "done"]))).map(tuple),
        ),
        st.builds(Link, texts),
        st.builds(Json, values),
        st.builds(Picture, texts, texts | st.just(PNG)),
    )


@given(pieces(texts))
def test_the_html_of_any_piece_has_only_allowed_tags_and_attributes(piece: Piece) -> None:
    html = html_of(piece)
    Checked(html)
    assert printable(html, lines=True) == html


@pytest.mark.parametrize("text", HOSTILE, ids=name_of)
def test_no_hostile_text_becomes_a_tag_or_an_attribute(text: str) -> None:
    pieces: list[Piece] = [
        Prose(text),
        Code(text, "html"),
        Code(text, text, 3),
        Terminal(text, text, 1),
        Link(text),
    ]
    pieces += [
        OutputPiece(text, is_error=True),
        Diff(text, (DiffLine("+", text),), text),
        Matches((MatchLine(text, 1, text),)),
    ]
    pieces += [
        FileList((text,)),
        Checklist((ChecklistItem(text, "done"),)),
        Json({text: text}),
        Picture(text, text),
    ]
    for piece in pieces:
        assert all("javascript" not in link for link in Checked(html_of(piece)).links)


# ---- Markdown


def test_prose_is_rendered_and_its_code_highlighted() -> None:
    seen = Checked(prose_html("# Title\n\nSome *words*.\n\n```python\ndef f(): ...\n```\n\n| a |\n|---|\n| b |"))
    assert "Title" in seen.text
    assert {"code", "t-k"} <= seen.classes
    assert "<h4>" in prose_html("# Title")


@pytest.mark.parametrize("url", ["http://a.b/c?d=e&f", "https://a.b", "mailto:a@b.c"])
def test_web_links_are_rendered_as_links(url: str) -> None:
    assert Checked(prose_html(f"[x]({url})")).links == [url]
    assert Checked(prose_html(f"<{url}>")).links == [url]


@pytest.mark.parametrize(
    "url", ["javascript:x", "data:text/html,x", "file:///etc/passwd", "/relative", "//a.b", "vbscript:x"]
)
def test_other_links_are_rendered_as_text(url: str) -> None:
    assert Checked(prose_html(f"[x]({url})")).links == []
    assert Checked(html_of(Link(url))).links == []


def test_a_remote_image_is_not_loaded() -> None:
    html = prose_html("![a cat](https://evil.example/cat.png)")
    assert "<img" not in html
    assert Checked(html).text.strip() == "[a cat]"
    inside = Checked(prose_html("[![a](https://a.b/c.png)](https://d.e)"))
    assert (inside.links, inside.text.strip()) == (["https://d.e"], "[a]")


# ---- code and output


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_each_line_of_code_is_one_line_of_html_in_every_language(language: str) -> None:
    text = '\n\ndef f():  /* <b>\n""" a\n \'b\' -- # */\n<!-- x\n\ttab\n\n'
    lines = code_lines(text, language)
    assert [Checked(line).text for line in lines] == text.removesuffix("\n").split("\n")


def test_terminal_colors_become_classes_and_continue_across_lines() -> None:
    lines = output_lines("a\x1b[1;31mred\nstill\x1b[0m plain\x1b[38;5;196mx\x1b[48;2;0;0;0my\x1b[K\x1b[39;49mz")
    assert lines == [
        'a<span class="ansi-bold ansi-ink-1">red</span>',
        '<span class="ansi-bold ansi-ink-1">still</span> plain<span class="ansi-ink-9">x</span>'
        '<span class="ansi-ink-9 ansi-ground-0">y</span>z',
    ]


def test_other_terminal_escapes_are_dropped_or_shown_as_text() -> None:
    assert output_lines("a\x1b[2Jb\x1b]0;title\x07c\x1b7d\x08") == ["abc\\x1b7d\\x08"]


def test_a_long_output_is_folded_with_its_line_count() -> None:
    html = html_of(OutputPiece("\n".join(f"line {number}" for number in range(100))))
    assert '<details class="more"><summary>88 more lines</summary>' in html
    assert html.index("line 11") < html.index("<details") < html.index("line 12")


def test_line_numbers_continue_in_the_folded_part() -> None:
    html = html_of(Code("\n".join("x" * 30), "py", 100))
    assert 'aria-hidden="true">100\n101' in html
    assert 'aria-hidden="true">112\n113' in html


@pytest.mark.parametrize("make", [Prose, Code, OutputPiece, lambda text: Terminal("", text)])
def test_an_overlong_piece_is_cut_with_a_note(make: Any) -> None:
    html = html_of(make("word\n" * (LONGEST // 5 + 20)))
    assert "(100 characters more are in the log)" in html or "(100 more characters are in the log)" in html
    assert len(Checked(html).text) < LONGEST * 1.1


# ---- pictures


def test_the_image_type_is_taken_from_its_bytes() -> None:
    assert f'src="data:image/png;base64,{PNG}"' in html_of(Picture("image/svg+xml", PNG))


@pytest.mark.parametrize(
    "data", [base64.b64encode(b"<svg onload=alert(1)>").decode(), "%%%", "", PNG + "A" * (6 << 20)]
)
def test_invalid_and_oversized_images_are_not_shown(data: str) -> None:
    html = html_of(Picture("image/svg+xml", data))
    assert "<img" not in html
    assert "not shown" in html
