"""What a person types to search, and what the index is asked then.

Words must all be there; `"in quotes"` one behind the other; `begin*` as beginnings. `tool:Bash`, `file:login.py`,
`project:`, `agent:` and `is:error` say where. Everything else is a word, whatever it would mean to a database.
"""

import re
from dataclasses import dataclass, field

MOST_WORDS = 64
FIELDS = ("tool", "file", "project", "agent", "is")

_PIECE = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))(?P<star>\*)?')
_WORD = re.compile(r"[^\W]+")  # what the index takes for one, near enough: letters, digits, `_`
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
    query = Query()
    for piece in list(_PIECE.finditer(_NO_TEXT.sub(" ", typed)))[:MOST_WORDS]:
        name, text = piece["field"], piece["phrase"] if piece["phrase"] is not None else piece["word"]
        star = bool(piece["star"])
        if name and name not in FIELDS:
            name, text = None, piece[0].removesuffix("*") if star else piece[0]
        if text.endswith("*"):
            text, star = text[:-1], True
        _take(query, name, text, star)
    return query


def _take(query: Query, name: str | None, text: str, star: bool) -> None:
    if name == "project":
        query.project = text
    elif name == "agent":
        query.agent = text
    elif name == "is":
        query.error = query.error or text == "error"
    elif words := _WORD.findall(text):
        phrase = f'"{" ".join(words)}"' + ("*" if star else "")
        query.match.append(f"{name} : {phrase}" if name else phrase)
        if name is None:
            inner = r"\W+".join(map(re.escape, words))
            query.words.append(rf"\b{inner}" + (r"\w*" if star else r"\b"))
