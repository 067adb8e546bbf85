"""A session as Markdown: the same bytes for the same session, and no text in it can break out of its place."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent_logger.catalog.ledger.metrics import exchange_total, metrics_of
from agent_logger.catalog.search.texts import COLOURS
from agent_logger.model.plurals import pluralize
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session
from agent_logger.views.facts import facts_of
from agent_logger.views.figures import (
    between,
    bytes_text,
    moment,
    money,
    seconds_text,
    tokens,
    turn_figures,
)
from agent_logger.views.outline import (
    AgentWork,
    Chapter,
    NumberedTurn,
    Part,
    Thought,
    ToolUse,
    chapters,
    side_turns,
)
from agent_logger.views.pieces import (
    Checklist,
    Code,
    Diff,
    FileList,
    Json,
    Link,
    Matches,
    OutputPiece,
    Picture,
    Piece,
    Prose,
    Terminal,
    json_text,
)
from agent_logger.views.printable import printable

LONGEST = 20_000  # characters of one piece; the log has the rest
SCHEMES = ("http", "https", "mailto")


def session_markdown(session: Session) -> Iterator[str]:
    """The lines, each with its newline."""
    yield from (f"{line}\n" for _, lines in session_sections(session) for line in lines)


def session_sections(session: Session) -> Iterator[tuple[str, Iterator[str]]]:
    """The parts of the document, each with its place in the session and its lines, without newlines."""
    yield "beginning", _beginning(session)
    for chapter in chapters(session):
        yield f"exchange {chapter.exchange.number}", chain([""], _chapter(session, chapter))
    if side := side_turns(session):
        yield "side calls", chain(("", "## Side calls"), chain.from_iterable(map(_turn, side)))


def _beginning(session: Session) -> Iterator[str]:
    yield f"# {_plain(hidden(session.title or session.id))}"
    yield ""
    for name, value in facts_of(session, metrics_of(session)):
        yield f"- {name}: {_plain(value)}"


def _chapter(session: Session, chapter: Chapter) -> Iterator[str]:
    exchange, total = chapter.exchange, exchange_total(session, chapter.exchange)
    parts = [moment(exchange.started), money(total.cost), tokens(total.usage, total.cost), chapter.origin]
    yield f"## {exchange.number}. {_plain(' · '.join(filter(None, parts)))}"
    if chapter.user_input is not None:
        yield ""
        yield from _quote(_markdown(Prose(chapter.user_input)))
    if chapter.output:
        yield ""
        yield from _markdown(chapter.output)
    for turn in chapter.turns:
        yield from _turn(turn)
    for agent in chapter.agents:
        yield from _agent(agent)
    for remark in chapter.remarks:
        yield from ("", f"({_plain(remark)})")


def _turn(turn: NumberedTurn) -> Iterator[str]:
    for event in turn.preceding_events():
        yield from ("", f"*{_plain(event)}*")
    yield ""
    yield f"### {turn.number} · {_plain(turn_figures(turn.turn))}"
    for part in turn.parts():
        yield ""
        yield from _part(part)
    for remark in turn.remarks():
        yield from ("", f"({_plain(remark)})")


def _part(part: Part) -> Iterator[str]:
    match part:
        case Thought(text):
            yield from _quote(["*Thinking*", "", *_markdown(Prose(text))])
        case ToolUse():
            yield from _tool_use(part)
        case _:
            yield from _markdown(part.piece)


def _tool_use(tool_use: ToolUse) -> Iterator[str]:
    seconds = between(tool_use.call.started, tool_use.call.ended)
    states = ["failed"] * tool_use.view.is_error + ["no result"] * (not tool_use.view.is_answered)
    state_text = ", ".join([*states, *([seconds_text(seconds)] if seconds is not None else [])])
    summary = _span(tool_use.view.summary) if tool_use.view.summary else ""
    yield " ".join(
        filter(None, (f"**{_plain(tool_use.view.tool)}**", summary, f"({state_text})" if state_text else ""))
    )
    for piece in tool_use.view.pieces:
        yield ""
        yield from _markdown(piece)
    for agent in tool_use.agents:
        yield from _agent(agent)


def _agent(agent: AgentWork) -> Iterator[str]:
    """The work of a sub-agent, indented because it is a conversation inside another."""
    yield ""
    turns = (line for turn in agent.turns for line in _turn(turn))
    yield from _quote([f"**{_plain(agent.name)}**", *turns])


def _quote(lines: Iterable[str]) -> Iterator[str]:
    return (f"> {line}".rstrip(" ") for line in lines)


# ---------------------------------------------------------------- pieces


_SIGNS = {"+": "+", "-": "-", " ": " ", "@": "@@ "}
_MARKS = {"open": "[ ]", "doing": "[ ] (doing)", "done": "[x]"}


def _markdown(piece: Piece) -> Iterator[str]:
    match piece:
        case Prose():
            text, more = _cut(printable(piece.text, lines=True))
            yield from text.split("\n") if _is_self_contained(text) else _fence(text, "markdown")
            yield from more
        case Code(text, language):
            yield from _block(text, language or "")
        case OutputPiece(text):
            yield from _block(_without_colours(text))
        case Terminal():
            command = f"$ {piece.command}\n" if piece.command else ""
            yield from _block(command + _without_colours(piece.output or ""), "console")
            if piece.exit:
                yield from ("", f"exit code {piece.exit}")
        case Diff():
            yield " ".join(filter(None, (_span(piece.path or ""), _plain(piece.note))))
            yield ""
            yield from _block("\n".join(f"{_SIGNS[line.sign]}{line.text}" for line in piece.lines), "diff")
        case Matches(matches):
            yield from _block("\n".join(f"{match.path}:{match.line}:{match.text}" for match in matches))
        case FileList(paths):
            yield from _block("\n".join(paths))
        case Checklist(items):
            yield from (f"- {_MARKS[item.progress]} {_plain(item.text)}" for item in items)
        case Link(url):
            yield _span(url)
        case Json(value):
            yield from _block(json_text(value), "json")
        case Picture(media_type, data):
            yield f"({_plain(media_type)}, {bytes_text(len(data) * 3 // 4)})"


# ---------------------------------------------------------------- text in its place


def _block(text: str, language: str = "") -> Iterator[str]:
    visible, more = _cut(printable(text.replace("\r\n", "\n"), lines=True))
    yield from _fence(visible.removesuffix("\n"), language)
    yield from more


def _fence(text: str, language: str = "") -> Iterator[str]:
    """The text between fences that are longer than any in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield fence + (language if re.fullmatch(r"[\w+#-]{1,20}", language) else "")
    yield from text.split("\n")
    yield fence


def _cut(text: str) -> tuple[str, list[str]]:
    more = len(text) - LONGEST
    return (text[:LONGEST], ["", f"({pluralize(more, 'character')} more in the log)"]) if more > 0 else (text, [])


def _plain(text: str) -> str:
    """The text as one line, escaped so that it means nothing to Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~$])", r"\\\1", " ".join(printable(text, lines=True).split()))


def _span(text: str) -> str:
    line = " ".join(printable(text, lines=True).split())
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{ticks} {line} {ticks}" if line[:1] == "`" or line[-1:] == "`" else f"{ticks}{line}{ticks}"


def _without_colours(text: str) -> str:
    return COLOURS.sub("", text)


_AFTER = "after"


def _is_self_contained(text: str) -> bool:
    """Whether a text is Markdown that ends where the text ends, and contains no HTML, no pictures from elsewhere, no
    links except to the web, and no link names that other texts could use."""
    env: dict[str, Any] = {}
    tokens = _parser().parse(f"{text}\n\n{_AFTER}", env)
    ends = len(tokens) > 1 and tokens[-2].content == _AFTER and tokens[-2].level == 1
    return ends and not env.get("references") and all(map(_is_harmless, tokens))


def _is_harmless(token: Token) -> bool:
    if token.type in ("html_block", "html_inline", "image"):
        return False
    if token.type == "link_open" and not is_safe_link(str(token.attrs.get("href"))):
        return False
    return all(map(_is_harmless, token.children or ()))


def is_safe_link(url: str) -> bool:
    try:
        return urlsplit(url).scheme in SCHEMES
    except ValueError:
        return False


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802, ARG002
        return True  # whatever another program might take for a link


@cache
def _parser() -> MarkdownIt:
    return _Parser("commonmark", {"html": True}).enable(["table", "strikethrough"])
