"""Reading the HTML that we write: every tag and attribute in it must be one that we know of."""

import re
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "meta"}
PAGE = {"html", "head", "title", "style", "body", "main", "header", "footer", "article", "section", "nav"}
TEXT = {
    "blockquote",
    "code",
    "div",
    "em",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "small",
    "span",
    "strong",
    "ul",
    "a",
    "time",
}
ALLOWED = VOID | PAGE | TEXT | {"h1", "h2", "h3", "h4", "h5", "h6", "details", "summary", "dl", "dt", "dd"}
ALLOWED |= {"table", "tbody", "td", "th", "thead", "tr"}
ATTRIBUTES = {
    "a": {"class", "href", "rel"},
    "details": {"class", "open"},
    "html": {"lang"},
    "img": {"alt", "class", "src"},
    "meta": {"charset", "content", "http-equiv", "name"},
    "ol": {"class", "start"},
    "pre": {"aria-hidden", "class"},
    "time": {"class", "datetime"},
}
COMMON = {"class", "id"}


class Checked(HTMLParser):
    """Reads HTML, and knows what is in it; fails at what does not balance or is not ours."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self._data: list[str] = []
        self.links: list[str] = []
        self.classes: set[str] = set()
        self.feed(html.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass"))  # a plain text, no Markup
        self.close()
        assert self.open == []

    @property
    def text(self) -> str:
        return "".join(self._data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES.get(tag, COMMON), (tag, attrs)
        given = dict(attrs)
        for name in ("class", "id"):
            assert re.fullmatch(r"[\w -]*", given.get(name) or "")
        if "src" in given:
            assert (given["src"] or "").startswith("data:image/")
        if "href" in given:
            assert re.match(r"(https?|mailto):|#[\w-]+\Z", given["href"] or ""), given["href"]
            self.links.append(given["href"] or "")
        self.classes |= set((given.get("class") or "").split())
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<br />` and `<hr />`, as Markdown's line breaks and rules are written; nothing else ends so."""
        assert tag in VOID, tag
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self._data.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        assert decl == "doctype html"

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)
