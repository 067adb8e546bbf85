"""What a list shows of a session, and the filter for sessions.

These are not dataclasses: every command imports them, and dataclasses take long to create.
"""

from datetime import date, datetime
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
    side_models: tuple[str, ...] = ()  # models that answered only outside the conversation
    started: datetime | None
    ended: datetime | None
    exchanges: int  # for a fork, exchanges, turns, usage and cost are those after it
    turns: int
    tool_calls: int
    errors: int  # tool calls that failed
    active_seconds: float | None  # time that the agent worked
    usage: Usage
    cost: Cost
    reported_cost_usd: float | None  # the cost that the client reported, if it did
    context_tokens: int | None
    peak_context_tokens: int | None
    witnesses: frozenset[Witness]
    parent: str | None  # the session it was forked from
    live: bool  # whether the agent is running, as far as that can be known
    # The end of the last exchange: `result`, `failed`, `cut`, `exit code 1`, `interrupted`, ...
    ending: str | None = None
    paths: tuple[Path, ...]  # paths of the files that it was derived from
    prompts_only: bool = False  # the agent's file is gone; its history has what was typed
    main_missing: bool = False  # the main file is gone; the files of its sub-agents are left
    inherited_exchanges: int | None = 0  # for a fork, exchanges before it; none: its files do not have them
    damaged_lines: int = 0  # lines of its files that cannot be read, and are left out
    unlisted_calls: bool = False  # calls may be in no sum: for titles and the like, which its agent's file leaves out
    labels: tuple[str, ...] = ()  # this, pinned and note: what people say of it
    pinned: bool = False
    note: str | None = None
    imported: tuple[str, ...] = ()  # names of the imports that it is in; none: this machine has it
    machines: tuple[str, ...] = ()  # whose homes have it, that of the own home first
    people: tuple[str, ...] = ()  # whose machines these are, on a hub

    @property
    def wall_seconds(self) -> float | None:
        """The seconds from the first moment to the last; not below 0, because clocks are set back."""
        if self.started is None or self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())

    @property
    def knows_tokens(self) -> bool:
        """Whether the sum of tokens says anything: it is no 0 that only unknown numbers add up to."""
        return not self.cost.unpriced or self.usage != Usage()


class SessionHeading(msgspec.Struct, frozen=True, kw_only=True):
    """What a person knows a session by."""

    title: str | None
    project: str | None
    agent: str | None
    ended: datetime | None


class SessionChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The values that sessions have, for pick lists."""

    agents: tuple[str, ...]
    projects: tuple[str, ...]
    models: tuple[str, ...]
    labels: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """A person's sessions: those in homes of theirs alone, and of those that homes of others have too, the ones
    that the person had first."""

    homes: frozenset[str]  # keys
    shared: frozenset[str] = frozenset()  # ids


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that must all hold. Texts are searched for in the field, ignoring case."""

    agent: str | None = None  # the whole name, or another one that people use, such as "claude"
    project: str | None = None  # the whole path of a project, or a part of paths
    model: str | None = None  # the whole name of a model, or a part of names
    title: str | None = None
    since: date | None = None  # this day or moment, and what follows
    until: date | None = None  # up to this day, which is included, or up to this moment
    min_cost_usd: float | None = None
    witness: Witness | None = None
    live: bool = False
    label: str | None = None  # the whole label, in any case
    pinned: bool = False
    machine: str | None = None  # the whole name, in any case
    person: str | None = None  # the whole name, in any case
    sessions: frozenset[str] | None = None  # only these
    homes: frozenset[str] | None = None  # keys of homes; a catalog sets them to those of the machine and the person
    owner: Ownership | None = None


UncountedReason = Literal[
    "copy", "synthetic", "error_status", "error_event", "no_answer", "in_flight", "free", "unlisted"
]


class Uncounted(msgspec.Struct, frozen=True, kw_only=True):
    """A response or a call of a session that is in no sum; for calls that are never billed, all of a kind."""

    at: datetime | None = None
    thread: str = MAIN
    model: str | None = None
    message_id: str | None = None
    status: int | None = None  # the status of the API's answer
    count: int = 1
    reason: UncountedReason
    why: str


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """Where words were found: the place to open, and a piece of the text around them."""

    session: str
    title: str | None
    exchange: int  # its number
    turn: int | None  # its place in `Session.turns`; none for what a person typed
    answer: int | None = None  # for what a person typed, the turn that answers it
    kind: str  # of the block, or `input`; `note` or `label` of the session
    at: datetime | None
    snippet: str  # redacted
    marks: tuple[tuple[int, int], ...]  # start and end of each match in the snippet
    forks: tuple[str, ...]  # forks of the session that begin with a copy of this text
