"""Whether a session is live: its files have just grown, or an agent is at work in it."""

from agent_logger.session import Session

LIVE_SECONDS = 300.0
AT_WORK_SECONDS = 3600.0  # that a call or a tool may take without a word; longer, and the agent was killed


def is_live(modified: float, now: float, *, in_flight: bool) -> bool:
    """`modified`: when any of its files was last written to; both in seconds since 1970."""
    return now - modified < (AT_WORK_SECONDS if in_flight else LIVE_SECONDS)


def in_flight(session: Session) -> bool:
    """The last exchange has no end yet."""
    last = session.exchanges[-1] if session.exchanges else None
    return last is not None and not last.complete and last.end_reason is None
