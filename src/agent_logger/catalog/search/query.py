"""What a person types to search, and the query that the index gets for it.

Words must all be there; `"in quotes"` one after the other, to the end if the quote is not closed; `begin*` as
beginnings. `tool:Bash`, `file:login.py`, `project:`, `agent:` and `is:error` say where. Everything else is a word,
whatever it would mean to a database.
"""

import re
from dataclasses import dataclass, field

from agent_logger.agents.registry import AGENTS
from agent_logger.catalog.search.tokenizer import BEGIN, END, UNSPACED, space_words

MOST_WORDS = 64
EXAMPLES = {
    "tool": "Bash",
    "file": "login.py",
    "project": "shop",
    "agent": AGENTS[0].name,
    "is": "error",
}  # by field

_PIECE = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))(?P<star>\*)?')
_BARE = re.compile(rf"({'|'.join(EXAMPLES)}):")
_WORD = re.compile(r"[^\W]+")  # what the index takes for a word, nearly: letters, digits, `_`
_NO_TEXT = re.compile("[\x00-\x1f\ud800-\udfff]")


@dataclass(slots=True)
class Query:
    match: list[str] = field(default_factory=list)  # in the index's language
    words: list[str] = field(default_factory=list)  # to be marked in a snippet: regular expressions
    project: str | None = None
    agent: str | None = None
    error: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.match


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
    return ValueError(f"{name}: lacks what it should be, as in {name}:{EXAMPLES[name]}")


def _take(query: Query, name: str | None, text: str, star: bool) -> None:
    words = _WORD.findall(space_words(text))
    if name and not (words or (text and name in ("project", "agent"))):
        raise _lacking(name)
    if name == "project":
        query.project = text
    elif name == "agent":
        query.agent = text
    elif name == "is":
        if text != "error":
            raise ValueError(f"is:{text} is not known; is:error finds tool calls that failed")
        query.error = True
    elif words:
        _take_words(query, name, words, star)


def _take_words(query: Query, name: str | None, words: list[str], star: bool) -> None:
    phrase = f'"{" ".join(words)}"' + ("*" if star else "")
    query.match.append(f"{name} : {phrase}" if name else phrase)
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
