"""The Markdown of aider: what the user, the model and aider itself said."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.agents.aider.history import passages

Kind = Literal["prompt", "notice", "answer"]
START = "\n# aider chat started at 2026-11-19 13:53:33\n\n"


def written(kind: Kind, text: str) -> str:
    """The text as aider 0.86.2 writes it."""
    if kind == "prompt":
        return "\n#### " + "  \n#### ".join(text.splitlines() or ["<blank>"]).rstrip() + "  \n"
    return f"\n{text.strip()}\n\n" if kind == "answer" else f"> {text.strip()}  \n"


def read(markdown: str) -> list[tuple[str, str]]:
    return [(passage.kind, passage.text) for passage in passages(markdown.split("\n"))]


@pytest.mark.parametrize(
    "answer",
    [
        "Hi.",
        "# A heading\n\ntext",
        "#### Only a heading",
        "> Only a quotation",
        "text\n\n> a quotation\n> of two lines\n\nmore",
        "One\u2028two",
        "```\n> code  \n#### code  \n```",
        "hello.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
    ],
)
def test_an_answer_may_look_like_a_prompt_or_a_notice(answer: str) -> None:
    said: list[tuple[Kind, str]] = [("prompt", "Go"), ("answer", answer), ("notice", "Tokens: 1 sent, 1 received.")]
    markdown = START + "".join(written(*passage) for passage in said)
    assert read(markdown) == [("start", "2026-11-19 13:53:33"), *said]


def test_a_notice_of_several_lines_is_no_answer() -> None:
    notice = "# 1 SEARCH/REPLACE block failed to match!\n\n## Reason\n<<<<<<< SEARCH\n\nDo better"
    said: list[tuple[Kind, str]] = [("prompt", "Go"), ("notice", notice), ("answer", "Better.")]
    assert read("".join(written(*passage) for passage in said)) == said


def test_questions_that_aider_answers_itself_are_no_prompts() -> None:
    assert read(written("prompt", "Add file? (Y)es/(N)o/(A)ll/(S)kip all [Yes]: y")) == []


WORDS = st.text(st.characters(exclude_characters="\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", exclude_categories=["Cs"]))
PLAIN = WORDS.map(lambda text: f"a{text.strip()}b")
ANSWER = st.lists(PLAIN, min_size=1, max_size=4).map("\n\n".join)
PROMPT = st.lists(PLAIN, min_size=1, max_size=3).map("\n".join)


@given(st.lists(st.tuples(PROMPT, ANSWER), max_size=5))
def test_written_passages_are_read(exchanges: list[tuple[str, str]]) -> None:
    markdown, said = START, [("start", "2026-11-19 13:53:33")]
    for prompt, answer in exchanges:
        turn: list[tuple[Kind, str]] = [
            ("prompt", prompt),
            ("answer", answer),
            ("notice", "Tokens: 1 sent, 2 received."),
        ]
        markdown += "".join(written(*passage) for passage in turn)
        said += turn
    assert read(markdown) == said


@given(st.lists(st.sampled_from(["", "> a", "> a  ", "#### p", "#### p  ", "# x", "text", "t  ", START.strip()])))
def test_any_lines_are_read(lines: list[str]) -> None:
    assert all(passage.text or passage.kind in ("prompt", "notice") for passage in passages(lines))
