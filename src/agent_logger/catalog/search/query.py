"""What a person types to search, and the query that the index gets for it.

Words must all be there; `"in quotes"` one after the other, to the end if the quote is not closed; `begin*` as
beginnings. `tool:Bash`, `file:login.py`, `project:`, `agent:`, `machine:`, `person:`, `label:`, `is:error` and
`is:pinned` say where.
Everything else is a word, whatever it would mean to a database.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_logger.agents.registry import AGENTS, canonical_name
from agent_logger.catalog.search.tokenizer import BEGIN, END, UNSPACED, space_words

MOST_WORDS = 64
# By field.
EXAMPLES = {
    "tool": "Bash",
    "file": "login.py",
    "project": "shop",
    "agent": AGENTS[0].name,
    "machine": "laptop",
    "person": "ann",
    "label": "todo",
    "is": "error",
}

_PIECE = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))(?P<star>\*)?')
_BARE = re.compile(rf"({'|'.join(EXAMPLES)}):")
_WORD = re.compile(r"[^\W]+")  # a word, nearly as the index splits them: letters, digits, `_`
_NO_TEXT = re.compile("[\x00-\x1f\ud800-\udfff]")


class Term(NamedTuple):
    """Words that a text has one after the other, in any of its fields or in one of them."""

    words: tuple[str, ...]
    field: str | None = None  # tool or file
    is_beginning: bool = False  # the last word may be the beginning of one


@dataclass(slots=True)
class Query:
    match: list[Term] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # regular expressions of the words to mark in a snippet
    project: str | None = None
    agent: str | None = None
    machine: str | None = None
    person: str | None = None
    label: str | None = None
    pinned: bool = False
    error: bool = False
    since: int | None = None  # milliseconds since 1970
    until: int | None = None  # the same, and no longer included

    @property
    def is_empty(self) -> bool:
        return not self.match

    @property
    def can_match_marks(self) -> bool:
        """Whether what people say of sessions is searched too: not for what tools did."""
        return len(self.match) == len(self.words) and not self.error


def read(typed: str) -> Query:
    """Read a query. Raises `ValueError`, with a line for a person, if a field has no value."""
    query = Query()
    for piece in list(_PIECE.finditer(_NO_TEXT.sub(" ", typed)))[:MOST_WORDS]:
        name, text = piece["field"], piece["phrase"] if piece["phrase"] is not None else piece["word"]
        star = bool(piece["star"])
        if bare := _BARE.fullmatch(piece[0]):
            raise _lacking(bare[1])
        if name and name not in EXAMPLES:
            name, text = None, piece[0].removesuffix("*") if star else piece[0]
        if text.endswith("*"):
            text, star = text[:-1], True
        _take(query, name, text, star)
    return query


def _lacking(name: str) -> ValueError:
    return ValueError(f"{name}: needs a value, for example {name}:{EXAMPLES[name]}")


def _take(query: Query, name: str | None, text: str, star: bool) -> None:
    words = _WORD.findall(space_words(text))
    if name and not (words or (text and name in ("project", "agent", "machine", "person", "label"))):
        raise _lacking(name)
    if name == "project":
        query.project = text
    elif name == "agent":
        query.agent = canonical_name(text)
    elif name == "machine":
        query.machine = text
    elif name == "person":
        query.person = text
    elif name == "label":
        query.label = text
    elif name == "is" and text == "pinned":
        query.pinned = True
    elif name == "is":
        if text != "error":
            raise ValueError(f"unknown filter is:{text}; is:error finds failed tool calls, is:pinned pinned sessions")
        query.error = True
    elif words:
        _take_words(query, name, words, star)


def _take_words(query: Query, name: str | None, words: list[str], star: bool) -> None:
    query.match.append(Term(tuple(words), name, star))
    if name is None:
        query.words.append(_pattern(words, star=star))


def _pattern(words: list[str], *, star: bool) -> str:
    """Return a pattern for the same words in a text. Where words are not spaced, a word has no edge."""
    pattern, before = "", ""
    for word in words:
        apart = r"\W*" if UNSPACED.search(before[-1:] + word[0]) else r"\W+"
        pattern += (apart if before else "" if UNSPACED.match(word) else BEGIN) + re.escape(word)
        before = word
    return pattern + ("" if UNSPACED.match(before) else r"\w*" if star else END)
