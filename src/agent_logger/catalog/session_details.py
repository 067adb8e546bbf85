"""The details of a session, which only the whole of it shows: its title, exchanges and tools."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from operator import add, sub
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from agent_logger.catalog.database import json_list
from agent_logger.catalog.ledger.metrics import active_seconds, count_tool_calls
from agent_logger.catalog.ledger.rows import NEVER, micros_of
from agent_logger.catalog.live.liveness import in_flight
from agent_logger.files.projects import project_of
from agent_logger.files.stored_text import hashed, storable
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session

LONGEST_TITLE = 500  # characters; a first prompt may be very long


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """The counts that are summed over a session."""

    tool_calls: int = 0
    errors: int = 0
    active_micros: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*map(sub, astuple(self), astuple(other)))


def counts_of(session: Session) -> Counts:
    calls, errors = count_tool_calls(session)
    return Counts(calls, errors, round((active_seconds(session) or 0.0) * 1e6))


class SessionDetails(NamedTuple):
    columns: dict[str, object]  # columns of the table `sessions`
    tools: list[tuple[int, str | None]]  # the tools that each response called, if any


def details_of(session: Session, counts: Counts | None = None) -> SessionDetails:
    """Return the details of a session. `counts`: those of all of it, if this is only its end."""
    return SessionDetails(_columns(session, counts or counts_of(session)), list(_tools(session)))


def _columns(session: Session, counts: Counts) -> dict[str, object]:
    title = storable(hidden(session.title)[:LONGEST_TITLE]) if session.title else None
    return {
        "title": title,
        "agent": storable(session.agent) if session.agent else None,  # responses name it, where there are any
        "project": storable(project_of(session.project)) if session.project else None,
        "started": micros_or_none(session.started),
        "ended": micros_or_none(session.ended),
        "exchanges": len(session.exchanges) - (session.inherited.exchanges if session.inherited else 0),
        "inherited_exchanges": _inherited_exchanges(session),
        "turns": len(session.own_turns),
        "tool_calls": counts.tool_calls,
        "errors": counts.errors,
        "active_seconds": counts.active_micros / 1e6 if session.started or counts.active_micros else None,
        "reported": session.reported_cost_usd,
        "in_flight": in_flight(session),
        "ending": _ending(session),
        "is_over": session.end_reason is not None,
    }


def _inherited_exchanges(session: Session) -> int | None:
    """Return how many exchanges a fork inherited; None for a fork whose files do not contain what came before."""
    if session.inherited:
        return session.inherited.exchanges
    return None if session.parent else 0


def _ending(session: Session) -> str | None:
    reason = session.exchanges[-1].end_reason if session.exchanges else None
    return storable(reason) if reason else None


def micros_or_none(at: datetime | None) -> int | None:
    micros = micros_of(at)
    return None if micros == NEVER else micros


def _tools(session: Session) -> Iterator[tuple[int, str | None]]:
    for turn in session.turns:
        uses = tuple(block.name for block in turn.blocks if block.kind == "tool_use" and block.name)
        if turn.message_id:
            yield hashed(turn.message_id), _encode_counts(uses) if uses else None


@lru_cache  # nearly every turn calls one tool once
def _encode_counts(uses: tuple[str, ...]) -> str:
    return json_list(sorted(Counter(uses).items()))
