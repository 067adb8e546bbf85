"""Whether a session is live: its files have just grown, or an agent is at work in it."""

from agent_logger.session import Session

LIVE_SECONDS = 300.0
AT_WORK_SECONDS = 3600.0  # that a call or a tool may take without a word; longer, and the agent was killed


def is_live(session: Session, modified: float, now: float) -> bool:
    """`modified`: when any of its files was last written to; both in seconds since 1970."""
    silent = now - modified
    return silent < LIVE_SECONDS or (silent < AT_WORK_SECONDS and in_flight(session))


def in_flight(session: Session) -> bool:
    """The last exchange has no end yet."""
    last = session.exchanges[-1] if session.exchanges else None
    return last is not None and not last.complete and last.end_reason is None
