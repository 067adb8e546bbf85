"""Regular expressions must mean the same on every Python from 3.11.0 on.

Before 3.11.5 a possessive repeat of a group, such as `(?:a|b(?!c))*+`, could add to its match what its last, failed
round had read (https://github.com/python/cpython/issues/106052). An alternative that never matches, `|(?!)`, at the end
of the group sets the round back to its start, so the repeat is right everywhere. Repeats of one character or class
were never wrong.
"""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
REPEATED_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")
END = "|(?!)"


def unsafe_repeats(text: str) -> list[str]:
    return [
        text[max(0, found.start() - 30) : found.end()]
        for found in REPEATED_GROUP.finditer(text)
        if not text[: found.start()].endswith(END)
    ]


def texts_of(path: Path) -> list[str]:
    values = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    return [
        value.decode("latin-1") if isinstance(value, bytes) else value
        for value in values
        if isinstance(value, (bytes, str))
    ]


def test_every_possessive_group_repeat_is_safe_on_old_pythons() -> None:
    texts = [(path.name, text) for path in SOURCE.rglob("*.py") for text in texts_of(path)]
    assert [(name, repeat) for name, text in texts for repeat in unsafe_repeats(text)] == []


@pytest.mark.parametrize("pattern", ["(?:a|b)*+", "(?:ab?c)++", "(ab){2,}+", "(?:a){19,12000}+", "(?:a|b)?+"])
def test_an_unsafe_possessive_repeat_is_detected(pattern: str) -> None:
    assert unsafe_repeats(pattern) == [pattern]
    group, quantifier = pattern.rsplit(")", 1)
    assert unsafe_repeats(f"{group}{END}){quantifier}") == []


@pytest.mark.parametrize(
    ("repeated", "text", "match"),
    [
        pytest.param(r"ab?c", "acabcab", "acabc", id="optional character"),
        pytest.param(r"(?!C).", "ABC", "AB", id="negative lookahead"),
        pytest.param(r"[^\r\n]++|\r(?!\n)|\r?\n[ \t]", "a\r\n b\r\nc", "a\r\n b", id="folded header line"),
        pytest.param(r";\w++(?:=\w++)?", ";a=1;b;", ";a=1;b", id="chunk extension"),
    ],
)
def test_a_safe_possessive_repeat_matches_whole_iterations_only(repeated: str, text: str, match: str) -> None:
    found = re.match(f"(?:{repeated}{END})*+", text)
    assert found
    assert found[0] == match
