"""A session with its sub-agents, among the sessions that were forked from it and those it was forked from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from agent_logger.catalog.ledger.ledger import Ledger, LedgerRow
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.catalog.ledger.totals import total
from agent_logger.catalog.summary import SessionSummary
from agent_logger.logs.reader import lineage_of
from agent_logger.model.session import AGENT, MAIN, Session, SubAgent


class AgentNode(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent, with those that it started."""

    thread: str
    kind: str | None  # the client's word for what it is good at
    description: str | None
    tool_use_id: str | None  # the call that started it
    turns: int
    output_tokens: int
    cost_usd: float | None
    agents: Sequence["AgentNode"] = ()


class BranchNode(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session was taken up again at an earlier point: a log of the proxy that goes on from another."""

    log: str
    parent: str  # the log that it goes on from
    from_call: int  # after this one


class SessionNode(msgspec.Struct, frozen=True, kw_only=True):
    """A session, with its sub-agents and what was forked from it."""

    id: str
    title: str | None
    agent: str | None
    started: datetime | None
    exchanges: int
    turns: int
    output_tokens: int
    cost_usd: float | None
    live: bool
    witnesses: Sequence[str]
    asked: bool  # it is the one that was asked for
    agents: Sequence[AgentNode] = ()
    branches: Sequence[BranchNode] = ()
    forks: Sequence["SessionNode"] = ()


@dataclass(frozen=True, slots=True)
class Details:
    """How more of a session is had, by its id: only those of the tree are asked for."""

    summary: Callable[[str], SessionSummary | None]
    session: Callable[[str], Session | None]
    branches: Callable[[str], Sequence[BranchNode]]


def tree(asked: str, parents: Mapping[str, str | None], details: Details) -> SessionNode | None:
    """From the session that all of them come from. `parents`: of every session there is the one it was forked from.
    None if the one that is asked for is not there."""
    if asked not in parents:
        return None
    forks: dict[str, list[str]] = {}
    for name, parent in parents.items():
        if parent and parent != name:
            forks.setdefault(parent, []).append(name)
    return _node(_root(asked, parents), forks, asked, details, set())


def _root(session: str, parents: Mapping[str, str | None]) -> str:
    """Files may say of each other that they come from each other: whoever is seen again is the end."""
    seen: set[str] = set()
    while session not in seen:
        seen.add(session)
        parent = parents[session]
        session = parent if parent and parent in parents and parent not in seen else session
    return session


def _node(
    name: str, forks: Mapping[str, list[str]], asked: str, details: Details, seen: set[str]
) -> SessionNode | None:
    """None if it is gone meanwhile."""
    seen.add(name)
    it, session = details.summary(name), details.session(name)
    own = [_node(fork, forks, asked, details, seen) for fork in forks.get(name, ()) if fork not in seen]
    if it is None:
        return None
    return SessionNode(
        id=it.id,
        title=it.title,
        agent=it.agent,
        started=it.started,
        exchanges=it.exchanges,
        turns=it.turns,
        output_tokens=it.usage.output_tokens,
        cost_usd=it.cost.usd,
        live=it.live,
        witnesses=sorted(it.witnesses),
        asked=it.id == asked,
        agents=agents_of(session) if session else (),
        branches=details.branches(it.id),
        forks=sorted((fork for fork in own if fork), key=_age),
    )


def branches_of(logs: Iterable[Path]) -> list[BranchNode]:
    """Of a session's logs those that go on from another of them."""
    own = sorted(set(logs))
    found = []
    for log in own:
        parent, last = [("", None), *lineage_of(log.parent, log.stem)][-2]
        if last and log.with_stem(parent) in own:
            found.append(BranchNode(log=log.stem, parent=parent, from_call=last))
    return found


def _age(it: SessionNode) -> tuple[bool, float]:
    """Forks begin with a copy, so most of one session began at the same time: they stay in the order they came in."""
    return it.started is None, it.started.timestamp() if it.started else 0.0


# ---------------------------------------------------------------- sub-agents


def agents_of(session: Session) -> list[AgentNode]:
    """Also those that only their turns tell of."""
    ledger = Ledger()
    ledger.add(responses_of_session(session))
    rows: dict[str, list[LedgerRow]] = {}
    for row in ledger.rows():
        rows.setdefault(row.thread, []).append(row)
    told = {it.thread: it for it in session.agents}
    threads = dict.fromkeys([*(it for it in session.threads if it.startswith(AGENT)), *told])
    agents = [told.get(thread) or SubAgent(thread=thread) for thread in threads]
    parents = {it.thread: it.parent_thread if it.parent_thread in threads else MAIN for it in agents}
    return _started_by(MAIN, agents, parents, rows, set())


def _started_by(
    parent: str,
    agents: Sequence[SubAgent],
    parents: Mapping[str, str],
    rows: Mapping[str, list[LedgerRow]],
    seen: set[str],
) -> list[AgentNode]:
    own = [it for it in agents if it.thread not in seen and _belongs(it.thread, parent, parents)]
    seen.update(it.thread for it in own)
    return [_agent(it, rows, _started_by(it.thread, agents, parents, rows, seen)) for it in own]


def _belongs(thread: str, parent: str, parents: Mapping[str, str]) -> bool:
    """Those that started each other are all the session's own."""
    if parents[thread] == parent:
        return True
    above, seen = thread, set[str]()
    while above != MAIN and above not in seen:
        seen.add(above)
        above = parents[above]
    return parent == MAIN and above != MAIN


def _agent(it: SubAgent, rows: Mapping[str, list[LedgerRow]], agents: Sequence[AgentNode]) -> AgentNode:
    billed = total(rows.get(it.thread, ()))
    return AgentNode(
        thread=it.thread,
        kind=it.kind,
        description=it.description,
        tool_use_id=it.tool_use_id,
        turns=billed.responses,
        output_tokens=billed.usage.output_tokens,
        cost_usd=billed.cost.usd,
        agents=agents,
    )
