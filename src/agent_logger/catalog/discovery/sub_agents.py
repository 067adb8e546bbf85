"""Sub-agents that have a session of their own on the wire, and do not say there which session started them.

The agent's database knows it. What the proxy recorded of such a sub-agent becomes a thread of that session.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from msgspec.structs import replace

from agent_logger.agents.base import Agent, module
from agent_logger.agents.contracts import DatabaseFiles
from agent_logger.agents.folders import agent_files
from agent_logger.agents.registry import AGENTS
from agent_logger.catalog.discovery.in_archive import files_in_archive
from agent_logger.model.session import AGENT_PREFIX, MAIN, Session, Turn


def below_its_starter(session: Session, home: str = "") -> Session:
    """Return what was recorded of a sub-agent as a thread of the session that started it; any other session as it is.
    `home`: the key of the other home that it was recorded to."""
    for agent in possible_starters(session):
        if root := _root_in_databases(agent, session.id, home):
            return as_thread(session, root)
    return session


def may_be_sub_agent(session: Session) -> bool:
    """Whether the session has the id of a sub-agent, of which only a database says who started it."""
    return any(possible_starters(session))


def possible_starters(session: Session) -> Iterator[Agent]:
    """Yield the agents of which only a database says whether another session started the one with this id."""
    for agent in AGENTS:
        if agent.sub_agent_ids and agent.sub_agent_ids.fullmatch(session.id) and session.agent in (None, agent.name):
            yield agent


def _root_in_databases(agent: Agent, name: str, home: str) -> str | None:
    files = cast("DatabaseFiles", module(agent.files))
    paths = files_in_archive(home, agent) if home else agent_files(agent)
    return next((root for path in paths if (root := files.root_of(path, name))), None)


def as_thread(session: Session, root: str) -> Session:
    """Return a session as a thread of another."""
    thread = f"{AGENT_PREFIX}{session.id}"

    def moved(turns: Sequence[Turn]) -> list[Turn]:
        return [replace(turn, thread=thread) if turn.thread == MAIN else turn for turn in turns]

    exchanges = [replace(exchange, turns=moved(exchange.turns)) for exchange in session.exchanges]
    return replace(session, id=root, exchanges=exchanges)
