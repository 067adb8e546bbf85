"""Whether a session is live: its agent runs, as far as that can be known.

Evidence, from the most certain to the least:

1. The agent notes which process has a session open (`agents/claude_code/processes`): as long as that process lives, it
   is live. If the note was removed since the last event, or the process was killed, it is not.
2. The agent has said that the session has ended (through a hook), and nothing came after: it is not.
3. A program writes the session into a log of ours, and holds the lock of it: it is live. Once the lock is free, that
   program has closed the log, has ended or was killed: it is not live, unless the agent's own file has grown since.
4. The proxy holds the lock of its log, and a call or a tool was running a short time ago: it is live.
5. For a session that only its agent's files show, the last event in them counts, not when the files were written:
   copies are new files with old events. It is live for `LIVE_SECONDS` after it, for `AT_WORK_SECONDS` in the middle of
   an exchange.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from agent_logger import platform
from agent_logger.catalog.ledger.rows import BIT
from agent_logger.files.parts import part_of, parts_of
from agent_logger.model.not_itemised import AT_WORK_SECONDS
from agent_logger.model.session import Session

LIVE_SECONDS = 300.0  # how long an agent may wait for a person
# By how much a log may be ahead of the agent's own file.
LOG_BEHIND_SECONDS = 5.0
INTERRUPTED = "interrupted"  # the ending of an exchange that has none, in a session that is not live


class SourceState(NamedTuple):
    """A session as one witness has it."""

    agent: str | None  # the agent whose file it is; none for a log of ours
    path: str
    witnesses: int  # bits
    modified: float  # seconds since 1970
    is_closed: bool = False  # no process had the log open when it last changed
    home: str = ""  # the other home that it is in


class SessionState(NamedTuple):
    """The known facts about a session's end."""

    last_event: float | None  # seconds since 1970
    in_flight: bool  # the last exchange has no end
    is_over: bool  # the agent reported the end
    sources: Sequence[SourceState]


def is_live(state: SessionState, now: float, *, runs: bool | None) -> bool:
    """Whether a session is live. `runs`: whether its agent runs, as the agent notes; None if unknown. Checks which logs
    a program has open; logs that are known to be closed are not opened."""
    if runs:
        return True
    if state.is_over:
        return False
    own = [source for source in state.sources if source.agent is None and not source.witnesses & BIT["hook"]]
    if any(_is_open_in_program(source) for source in own):
        return True
    last = state.last_event
    if last is None:
        last = max((source.modified for source in state.sources), default=0.0)
    is_recent = now - last < (AT_WORK_SECONDS if state.in_flight else LIVE_SECONDS)
    if runs is False or not is_recent:
        return False
    if any(source.modified + LOG_BEHIND_SECONDS >= last and not _is_by_proxy(source) for source in own):
        return False
    others = [source for source in state.sources if source not in own]
    return bool(others) or any(_is_open(source) for source in own)


def _is_open_in_program(source: SourceState) -> bool:
    """Whether a program other than the proxy has this log open. A log with a `wire` witness is the proxy's."""
    return not source.witnesses & BIT["wire"] and _is_open(source) and not _is_by_proxy(source)


def _is_open(source: SourceState) -> bool:
    return not source.is_closed and has_writer(source.path)


def _is_by_proxy(source: SourceState) -> bool:
    """Whether the proxy writes this log. As long as nothing was answered, a log has no witness."""
    from agent_logger.logs.log_records import kind_of_log

    if source.witnesses:
        return bool(source.witnesses & BIT["wire"])
    part = part_of(Path(source.path))
    return part is not None and kind_of_log(part.folder, part.name) == "wire"


def has_writer(path: str) -> bool:
    """Whether a process has a part of this log open for writing."""
    log = part_of(Path(path))
    files = [part.path for part in parts_of(log.folder, log.name)] if log else []
    return any(platform.is_locked(file) for file in files)


def in_flight(session: Session) -> bool:
    """Whether the last exchange has no end yet."""
    last = session.exchanges[-1] if session.exchanges else None
    return last is not None and not last.complete and last.end_reason is None


def mark_interrupted(session: Session) -> Session:
    """Mark an exchange without an end as interrupted, in a session that is not live: it will not get one."""
    if not in_flight(session):
        return session
    *before, last = session.exchanges
    return replace(session, exchanges=[*before, replace(last, end_reason=INTERRUPTED)])
