"""Whether a session's sums are too low because its only witness leaves calls out.

Agents call models for titles, summaries and the like, outside the conversation, and most write nothing of it into their
files. The proxy sees every call, and a client's own total includes them all. Where there is neither, their number is
unknown.
"""

from collections.abc import Collection, Iterable

from agent_logger.agents.registry import reader_of
from agent_logger.model.session import ClientTotal, Session, Witness

UNLISTED_CALLS = (
    "not counted: calls beside the conversation (titles, compactions), which the agent's file leaves out; "
    "the proxy records them"
)


def has_unlisted_calls(
    agent: str | None, witnesses: Collection[Witness], totals: Iterable[ClientTotal]
) -> bool:
    """Whether calls may have been made that are in no sum."""
    if "transcript" not in witnesses or "wire" in witnesses:
        return False
    reader = reader_of(agent)
    return bool(reader and not reader.lists_every_call) and not any(map(_is_of_all_calls, totals))


def _is_of_all_calls(total: ClientTotal) -> bool:
    return total.is_whole and not total.is_request


def session_has_unlisted_calls(session: Session) -> bool:
    return has_unlisted_calls(session.agent, session.witnesses, session.totals)
