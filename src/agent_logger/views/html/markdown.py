"""Convert Markdown to HTML that runs nothing and loads nothing, whoever wrote it.

Raw HTML is text. Links lead to the web or to a mail, or are text. Pictures from elsewhere would tell their server who
reads, so a link stands in their place.
"""

from collections.abc import Iterable, Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from agent_logger.views.html.code import code_lines
from agent_logger.views.markdown import is_safe_link
from agent_logger.views.printable import printable

# Characters; a longer text is shown as it is, because a hostile one would take seconds.
LONGEST = 100_000
REL = "noopener noreferrer nofollow"
LOWEST_HEADING = 6
SHIFT = 3  # levels of headings that the page itself uses


def prose_html(text: str) -> Markup:
    text = printable(text, lines=True)
    if len(text) > LONGEST:
        return Markup("<pre>{}</pre>").format(text)
    markdown = _markdown()
    tokens = markdown.parse(text)
    for token in tokens:
        token.attrs.pop("style", None)  # styles of table cells, which the page's policy forbids
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(LOWEST_HEADING, int(token.tag[1:]) + SHIFT)}"
        if token.children:
            token.children = list(_harmless(token.children))
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))


@cache
def _markdown() -> MarkdownIt:
    return _Markdown("commonmark", {"html": False, "highlight": _fence}).enable(["table", "strikethrough"])


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        return is_safe_link(url)


def _fence(code: str, language: str, _attributes: str) -> str:
    lines = Markup("\n").join(code_lines(code, language))
    return Markup('<pre class="code"><code>{}</code></pre>').format(lines)


def _harmless(tokens: Iterable[Token]) -> Iterator[Token]:
    links = 0
    for token in tokens:
        links += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "link_open":
            yield _link(token.attrs.get("href"))
        elif token.type == "image":
            text = Token("text", "", 0, content=f"[{token.content or 'picture'}]")
            yield from ([text] if links else [_link(token.attrs.get("src")), text, Token("link_close", "a", -1)])
        else:
            yield token


def _link(url: str | float | None) -> Token:
    return Token("link_open", "a", 1, attrs={"href": url or "", "rel": REL})
