"""Whether a session's sums are too low because its only witness leaves calls out.

Agents call models for titles, summaries and the like, outside the conversation, and most write nothing of it into their
files. The proxy sees every call, and a client's own total includes them all. Where there is neither, their number is
unknown.
"""

from collections.abc import Collection, Iterable

from agent_logger.agents.registry import readable_agent
from agent_logger.model.session import ClientTotal, Session, Witness

UNLISTED_CALLS = (
    "not counted: side calls (titles, compactions), which are not in the agent's file; the proxy records them"
)


def has_unlisted_calls(agent: str | None, witnesses: Collection[Witness], totals: Iterable[ClientTotal]) -> bool:
    """Whether calls may have been made that are in no sum."""
    if "transcript" not in witnesses or "wire" in witnesses:
        return False
    reader = readable_agent(agent)
    return bool(reader and not reader.lists_every_call) and not any(
        total.is_whole and not total.is_request for total in totals
    )


def session_has_unlisted_calls(session: Session) -> bool:
    return has_unlisted_calls(session.agent, session.witnesses, session.totals)
