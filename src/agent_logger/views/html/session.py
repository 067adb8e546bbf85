"""A session as one HTML file that needs no other: no script, nothing loaded, safe whatever is in it."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from textwrap import shorten

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from agent_logger.catalog.ledger.metrics import exchange_total, metrics_of
from agent_logger.model.plurals import pluralize
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session, ToolCall
from agent_logger.views.facts import facts_of
from agent_logger.views.figures import between, moment, money, seconds_text, tokens, turn_figures
from agent_logger.views.html.pieces import html_of
from agent_logger.views.outline import Part, Thought, ToolUse, chapters, side_turns
from agent_logger.views.pieces import Prose
from agent_logger.views.printable import printable

FIRST_LINE = 100  # characters of a text that stands for the whole
OPEN_KINDS = ("write", "edit", "shell")  # kinds of tools whose calls are read without a click
OPEN_TOOLS = ("todowrite", "update_plan", "exitplanmode", "askuserquestion")


def session_html(session: Session) -> Iterator[str]:
    """The file in portions, for a long session makes a long file."""
    style = f"{style_sheet('style.css')}{style_sheet('file.css')}"
    template = environment().get_template("session.html")
    return template.generate(
        title=printable(hidden(session.title or session.id)),
        policy=_policy(style),
        style=Markup(style),
        facts=facts_of(session, metrics_of(session)),
        contents=[(exchange.number, hidden(exchange.user_input or "(no input)")) for exchange in session.exchanges],
        chapters=((chapter, exchange_total(session, chapter.exchange)) for chapter in chapters(session)),
        side_turns=side_turns(session),
        witnesses=", ".join(sorted(session.witnesses)) or "its log",
    )


def _policy(style: str) -> str:
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


@cache
def style_sheet(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def environment() -> Environment:
    """The templates of a conversation, with the filters and tests they use. The page adds its own."""
    templates = Environment(
        loader=PackageLoader("agent_logger.views.html"),
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        first_line=lambda text: printable(shorten(text, FIRST_LINE, placeholder=" ...")) or "(nothing)",
        moment=moment,
        money=money,
        piece_html=html_of,
        pluralize=pluralize,
        prose=lambda text: html_of(Prose(text)),
        tokens=tokens,
        call_duration=_call_duration,
        turn_figures=turn_figures,
        visible=printable,
    )
    templates.tests.update(
        open=_is_open,
        thought=lambda part: isinstance(part, Thought),
        tool_use=lambda part: isinstance(part, ToolUse),
    )
    return templates


def _call_duration(call: ToolCall) -> str:
    seconds = between(call.started, call.ended)
    return "" if seconds is None else seconds_text(seconds)


def _is_open(part: Part) -> bool:
    return isinstance(part, ToolUse) and (
        part.view.is_error or part.call.kind in OPEN_KINDS or (part.call.name or "").lower() in OPEN_TOOLS
    )
