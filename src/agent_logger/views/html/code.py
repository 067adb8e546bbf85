"""Code, coloured by classes: `t-k` is a keyword, `t-s` a string; `style.css` defines how they look."""

from collections.abc import Mapping
from functools import cache

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from agent_logger.views.printable import printable

MOST_COLOURED = 50_000  # characters; colouring takes about a second for a million

# What agents write most, with the suffixes and other names they have for it. No others: some of the 600 languages that
# Pygments knows take quadratic time for a text that is made for it.
_NAMES: Mapping[str, str] = {
    "bash": "sh shell zsh fish console",
    "c": "h",
    "cpp": "cc cxx hpp c++",
    "csharp": "cs c#",
    "css": "",
    "diff": "patch",
    "docker": "dockerfile",
    "go": "golang",
    "graphql": "gql",
    "html": "htm vue",
    "ini": "cfg",
    "java": "",
    "javascript": "js mjs cjs",
    "json": "jsonl jsonc ipynb",
    "jsx": "",
    "kotlin": "kt",
    "lua": "",
    "make": "makefile mk",
    "perl": "pl",
    "php": "",
    "python": "py pyi python3",
    "ruby": "rb",
    "rust": "rs",
    "scala": "",
    "scss": "",
    "sql": "",
    "swift": "",
    "toml": "",
    "tsx": "",
    "typescript": "ts",
    "xml": "svg",
    "yaml": "yml",
}
LANGUAGES = {name: language for language, names in _NAMES.items() for name in (language, *names.split())}

_formatter = HtmlFormatter(nowrap=True, classprefix="t-")


def code_lines(text: str, language: str | None) -> list[Markup]:
    """The lines as HTML, each complete in itself."""
    text = printable(text.replace("\r\n", "\n"), lines=True)
    lexer = _lexer(LANGUAGES.get((language or "").lower(), ""))
    if lexer is None or len(text) > MOST_COLOURED:
        return [escape(line) for line in text.removesuffix("\n").split("\n")]
    coloured: str = highlight(text, lexer, _formatter)
    return [Markup(line) for line in coloured.removesuffix("\n").split("\n")]


@cache
def _lexer(name: str) -> Lexer | None:
    # Nothing is stripped: the lines are the file's, and numbered.
    return get_lexer_by_name(name, stripnl=False) if name else None
