"""What a view says about a session above the conversation: names and values, in reading order."""

from collections.abc import Callable, Iterator

from agent_logger.agents.registry import resume_command
from agent_logger.catalog.ledger.metrics import Metrics
from agent_logger.catalog.ledger.unlisted import session_has_unlisted_calls
from agent_logger.model.plurals import pluralize
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import MAIN, Session
from agent_logger.views.figures import (
    compaction_text,
    moment,
    money,
    not_itemised_text,
    seconds_text,
    tokens,
)

UNLISTED_TEXT = "side calls (titles, compactions), which the agent's file does not list"


def facts_of(session: Session, metrics: Metrics) -> list[tuple[str, str]]:
    return [(name, value) for name, value in _facts(session, metrics) if value]


def _facts(session: Session, metrics: Metrics) -> Iterator[tuple[str, str]]:
    yield "session", hidden(session.id)
    yield "agent", hidden(session.agent or "")
    yield "project", hidden(session.project or "")
    yield "model", hidden(", ".join(metrics.models))
    yield "started", moment(session.started)
    yield "end reason", hidden(session.end_reason or "")
    yield "took", durations(metrics)
    yield "size", counts_text(metrics)
    yield "tokens", tokens(metrics.usage, metrics.cost)
    yield "cost", money(metrics.cost)
    yield "not included", UNLISTED_TEXT if session_has_unlisted_calls(session) else ""
    yield "not understood", unread_text(session)
    beyond = [remainder for remainder in session.not_itemised if remainder.exchange is None]
    yield "also", "; ".join(not_itemised_text(remainder) for remainder in beyond)
    yield "compacted", "; ".join(_compactions(session))
    yield "context files", context_of(session)
    yield "forked from", hidden(session.parent or "")
    yield "before the fork", inherited_text(session).replace(" before the fork", "", 1)
    yield "missing", "the session's main file" if session.main_missing else ""
    yield "resume", hidden(" ".join(resume_command(session.agent, session.id) or ()))


def unread_text(session: Session) -> str:
    """The text `2 calls to models, kept as bytes, tokens not counted`; empty if there are none."""
    calls = session.unread_calls
    return f"{pluralize(calls, 'call')} to models, kept as bytes, tokens not counted" if calls else ""


def inherited_text(session: Session, shorten: Callable[[str], str] = str) -> str:
    """The text `2 turns before the fork, $0.0015, counted in 1f4ec513`; empty if the session is not a fork."""
    if (inherited := session.inherited) is None:
        return ""
    others = ", ".join(hidden(shorten(name)) for name in inherited.counted_in)
    return f"{pluralize(inherited.turns, 'turn')} before the fork, {money(inherited.cost)}, counted in {others}"


def counts_text(metrics: Metrics) -> str:
    """The text `2 exchanges, 5 turns, 3 tool calls`."""
    calls = sum(tool.calls for tool in metrics.tools)
    counts = ((metrics.exchanges, "exchange"), (metrics.turns, "turn"), (calls, "tool call"))
    return ", ".join(pluralize(count, noun) for count, noun in counts)


def _compactions(session: Session) -> Iterator[str]:
    for compaction in session.compactions:
        where = "" if compaction.thread == MAIN else f" in {hidden(compaction.thread)}"
        sizes = compaction_text(compaction).removeprefix("compacted").strip(" ,")
        yield f"{moment(compaction.at)} {sizes}{where}".strip()


def context_of(session: Session) -> str:
    """The files of instructions and settings that applied when the session began."""
    return ", ".join(hidden(file.path) for file in session.context_files)


def durations(metrics: Metrics) -> str:
    """The time from the first moment to the last, and how much of it the agent was active."""
    if metrics.wall_seconds is None or metrics.active_seconds is None:
        return ""
    wall, active = seconds_text(metrics.wall_seconds), seconds_text(metrics.active_seconds)
    return wall if wall == active else f"{wall}, {active} active"
