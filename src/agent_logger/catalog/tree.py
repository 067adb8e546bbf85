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
    is_selected: bool = msgspec.field(name="asked")  # the session that the tree was asked for
    agents: Sequence[AgentNode] = ()
    branches: Sequence[BranchNode] = ()
    forks: Sequence["SessionNode"] = ()


@dataclass(frozen=True, slots=True)
class TreeDetails:
    """How more of a session is had, by its id: only those of the tree are asked for."""

    summary: Callable[[str], SessionSummary | None]
    session: Callable[[str], Session | None]
    branches: Callable[[str], Sequence[BranchNode]]


def tree(given: str, parents: Mapping[str, str | None], details: TreeDetails) -> SessionNode | None:
    """From the session that all of them come from. `parents`: of every session there is the one it was forked from.
    None if the one that is asked for is not there."""
    if given not in parents:
        return None
    forks: dict[str, list[str]] = {}
    for name, parent in parents.items():
        if parent and parent != name:
            forks.setdefault(parent, []).append(name)
    return _node(_root(given, parents), forks, given, details, set())


def _root(session: str, parents: Mapping[str, str | None]) -> str:
    """Files may say of each other that they come from each other: whoever is seen again is the end."""
    visited: set[str] = set()
    while session not in visited:
        visited.add(session)
        parent = parents[session]
        session = parent if parent and parent in parents and parent not in visited else session
    return session


def _node(
    name: str, forks: Mapping[str, list[str]], root: str, details: TreeDetails, visited: set[str]
) -> SessionNode | None:
    """None if it is gone meanwhile."""
    visited.add(name)
    summary, session = details.summary(name), details.session(name)
    own = [_node(fork, forks, root, details, visited) for fork in forks.get(name, ()) if fork not in visited]
    if summary is None:
        return None
    return SessionNode(
        id=summary.id,
        title=summary.title,
        agent=summary.agent,
        started=summary.started,
        exchanges=summary.exchanges,
        turns=summary.turns,
        output_tokens=summary.usage.output_tokens,
        cost_usd=summary.cost.usd,
        live=summary.live,
        witnesses=sorted(summary.witnesses),
        is_selected=summary.id == root,
        agents=agents_of(session) if session else (),
        branches=details.branches(summary.id),
        forks=sorted((fork for fork in own if fork), key=_age),
    )


def branches_of(logs: Iterable[Path]) -> list[BranchNode]:
    """Of a session's logs those that go on from another of them."""
    own = sorted(set(logs))
    branches = []
    for log in own:
        parent, last = [("", None), *lineage_of(log.parent, log.stem)][-2]
        if last and log.with_stem(parent) in own:
            branches.append(BranchNode(log=log.stem, parent=parent, from_call=last))
    return branches


def _age(node: SessionNode) -> tuple[bool, float]:
    """Forks begin with a copy, so most of one session began at the same time: they stay in the order they came in."""
    return node.started is None, node.started.timestamp() if node.started else 0.0


# ---------------------------------------------------------------- sub-agents


def agents_of(session: Session) -> list[AgentNode]:
    """Also those that only their turns tell of."""
    ledger = Ledger()
    ledger.add(responses_of_session(session))
    rows: dict[str, list[LedgerRow]] = {}
    for row in ledger.rows():
        rows.setdefault(row.thread, []).append(row)
    by_thread = {agent.thread: agent for agent in session.agents}
    threads = dict.fromkeys([*(thread for thread in session.threads if thread.startswith(AGENT)), *by_thread])
    agents = [by_thread.get(thread) or SubAgent(thread=thread) for thread in threads]
    parents = {
        agent.thread: agent.parent_thread if agent.parent_thread in threads else MAIN for agent in agents
    }
    return _agents_below(MAIN, agents, parents, rows, set())


def _agents_below(
    parent: str,
    agents: Sequence[SubAgent],
    parents: Mapping[str, str],
    rows: Mapping[str, list[LedgerRow]],
    visited: set[str],
) -> list[AgentNode]:
    own = [
        agent
        for agent in agents
        if agent.thread not in visited and _belongs_to(agent.thread, parent, parents)
    ]
    visited.update(agent.thread for agent in own)
    return [_agent(agent, rows, _agents_below(agent.thread, agents, parents, rows, visited)) for agent in own]


def _belongs_to(thread: str, parent: str, parents: Mapping[str, str]) -> bool:
    """Those that started each other are all the session's own."""
    if parents[thread] == parent:
        return True
    above, visited = thread, set[str]()
    while above != MAIN and above not in visited:
        visited.add(above)
        above = parents[above]
    return parent == MAIN and above != MAIN


def _agent(agent: SubAgent, rows: Mapping[str, list[LedgerRow]], agents: Sequence[AgentNode]) -> AgentNode:
    billed = total(rows.get(agent.thread, ()))
    return AgentNode(
        thread=agent.thread,
        kind=agent.kind,
        description=agent.description,
        tool_use_id=agent.tool_use_id,
        turns=billed.responses,
        output_tokens=billed.usage.output_tokens,
        cost_usd=billed.cost.usd,
        agents=agents,
    )
