"""What a list shows of a session, and the filter for sessions.

These are not dataclasses: every command imports them, and dataclasses take long to create.
"""

from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from agent_logger.model.session import MAIN, Cost, Usage, Witness


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session in short, as a list of sessions shows it."""

    id: str  # the client's, else the name of our log
    agent: str | None
    project: str | None
    title: str | None
    models: tuple[str, ...]  # the one that answered most in the main thread first
    side_models: tuple[str, ...] = ()  # those among them that answered only outside the conversation
    started: datetime | None
    ended: datetime | None
    exchanges: int  # this, turns, usage and cost: for a fork, what came after it
    turns: int
    tool_calls: int
    errors: int  # tool calls that failed
    active_seconds: float | None  # that the agent worked
    usage: Usage
    cost: Cost
    reported_cost_usd: float | None  # what the client reported, where it did
    context_tokens: int | None
    peak_context_tokens: int | None
    witnesses: frozenset[Witness]
    parent: str | None  # the session it was forked from
    live: bool  # its agent runs, as far as that can be known
    ending: str | None = (
        None  # how its last exchange ended: `result`, `failed`, `cut`, `exit code 1`, `interrupted`, ...
    )
    paths: tuple[Path, ...]  # of the files it was derived from
    prompts_only: bool = False  # the agent's file is gone; its history has what was typed
    main_missing: bool = False  # so is its main file, but those of its sub-agents are left
    inherited_exchanges: int | None = 0  # for a fork, what came before it; none: its files do not have it
    damaged_lines: int = 0  # lines of its files that cannot be read, and are left out
    unlisted_calls: bool = (
        False  # calls may be in no sum: for titles and the like, which its agent's file leaves out
    )

    @property
    def wall_seconds(self) -> float | None:
        """The seconds from the first moment to the last; not below 0, because clocks are set back."""
        if self.started is None or self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that must all hold. Texts are searched for in the field, ignoring case."""

    agent: str | None = None  # the whole name
    project: str | None = None
    model: str | None = None
    title: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_cost_usd: float | None = None
    witness: Witness | None = None
    live: bool = False


UncountedReason = Literal[
    "copy", "synthetic", "error_status", "error_event", "no_answer", "in_flight", "free", "unlisted"
]


class Uncounted(msgspec.Struct, frozen=True, kw_only=True):
    """A response or a call of a session that is in no sum; for calls that are never billed, all of a kind."""

    at: datetime | None = None
    thread: str = MAIN
    model: str | None = None
    message_id: str | None = None
    status: int | None = None  # of the API's answer
    count: int = 1
    reason: UncountedReason
    why: str


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """Where words were found: the place to open, and a piece of the text around them."""

    session: str
    title: str | None
    exchange: int  # its number
    turn: int | None  # its place in `Session.turns`; none for what a person typed
    kind: str  # of the block, or `input`
    at: datetime | None
    snippet: str  # redacted
    marks: tuple[tuple[int, int], ...]  # start and end of each match in the snippet
    forks: tuple[str, ...]  # of the session, that begin with a copy of this
