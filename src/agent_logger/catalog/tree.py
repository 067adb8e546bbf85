"""A session with its sub-agents, among the sessions that were forked from it and those it was forked from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.catalog.ledger.totals import total
from agent_logger.catalog.summary import SessionSummary
from agent_logger.logs.branches import lineage_of
from agent_logger.model.session import AGENT_PREFIX, MAIN, Session, SubAgent


class AgentNode(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent, with those that it started."""

    thread: str
    kind: str | None  # the client's word for its specialty
    description: str | None
    tool_use_id: str | None  # the call that started it
    turns: int
    output_tokens: int
    cost_usd: float | None
    agents: Sequence["AgentNode"] = ()


class BranchNode(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session was continued from an earlier point: a log of the proxy that continues another."""

    log: str
    parent: str  # the log that it continues
    from_call: int  # the call after which it continues


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
    is_selected: bool = msgspec.field(name="asked")  # the session that the tree was made for
    agents: Sequence[AgentNode] = ()
    branches: Sequence[BranchNode] = ()
    forks: Sequence["SessionNode"] = ()


@dataclass(frozen=True, slots=True)
class TreeDetails:
    """Callables that return more of a session, by its id: only the sessions of the tree are read."""

    summary: Callable[[str], SessionSummary | None]
    session: Callable[[str], Session | None]
    branches: Callable[[str], Sequence[BranchNode]]


def tree(given: str, parents: Mapping[str, str | None], details: TreeDetails) -> SessionNode | None:
    """Return the tree from the session that all others come from. `parents`: the session that each existing session was
    forked from. None if the given session does not exist."""
    if given not in parents:
        return None
    forks: dict[str, list[str]] = {}
    for name, parent in parents.items():
        if parent and parent != name:
            forks.setdefault(parent, []).append(name)
    return _node(_root(given, parents), forks, given, details, set())


def _root(session: str, parents: Mapping[str, str | None]) -> str:
    """Return the first ancestor. Files may name each other as parents: a session that occurs again ends the search."""
    visited: set[str] = set()
    while session not in visited:
        visited.add(session)
        parent = parents[session]
        session = parent if parent and parent in parents and parent not in visited else session
    return session


def _node(
    name: str, forks: Mapping[str, list[str]], root: str, details: TreeDetails, visited: set[str]
) -> SessionNode | None:
    """Return the session's node; None if it was deleted meanwhile."""
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
    """Return those of a session's logs that continue another of them."""
    own = sorted(set(logs))
    branches = []
    for log in own:
        parent, last = [("", None), *lineage_of(log.parent, log.stem)][-2]
        if last and log.with_stem(parent) in own:
            branches.append(BranchNode(log=log.stem, parent=parent, from_call=last))
    return branches


def _age(node: SessionNode) -> tuple[bool, float]:
    """Return a key that sorts by age. Forks begin with a copy, so most forks of a session began at the same time: they
    stay in the given order."""
    return node.started is None, node.started.timestamp() if node.started else 0.0


# ---------------------------------------------------------------- sub-agents


def agents_of(session: Session) -> list[AgentNode]:
    """Return the sub-agents, also those that only their turns show."""
    ledger = Ledger()
    ledger.add(responses_of_session(session))
    rows: dict[str, list[LedgerRow]] = {}
    for row in ledger.rows():
        rows.setdefault(row.thread, []).append(row)
    by_thread = {agent.thread: agent for agent in session.agents}
    threads = dict.fromkeys([*(thread for thread in session.threads if thread.startswith(AGENT_PREFIX)), *by_thread])
    agents = [by_thread.get(thread) or SubAgent(thread=thread) for thread in threads]
    parents = {agent.thread: agent.parent_thread if agent.parent_thread in threads else MAIN for agent in agents}
    return _agents_below(MAIN, agents, parents, rows, set())


def _agents_below(
    parent: str,
    agents: Sequence[SubAgent],
    parents: Mapping[str, str],
    rows: Mapping[str, list[LedgerRow]],
    visited: set[str],
) -> list[AgentNode]:
    own = [agent for agent in agents if agent.thread not in visited and _belongs_to(agent.thread, parent, parents)]
    visited.update(agent.thread for agent in own)
    return [_agent(agent, rows, _agents_below(agent.thread, agents, parents, rows, visited)) for agent in own]


def _belongs_to(thread: str, parent: str, parents: Mapping[str, str]) -> bool:
    """Whether a sub-agent belongs under this parent. Those that started each other all belong to the session itself."""
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
