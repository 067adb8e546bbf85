"""The sessions that are open now, as far as agents note it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, cast

from agent_logger.agents.base import module
from agent_logger.agents.folders import agent_folders
from agent_logger.agents.registry import AGENTS

SLACK_SECONDS = 1.0  # between the time in the last line of a session and the one that its client ends at


class NotedSessions(NamedTuple):
    """The sessions in the notes of an agent, over all of its folders."""

    running: frozenset[str]  # ids of sessions that a process has open
    killed: frozenset[str]  # sessions whose process left its note behind
    changed: float | None  # when a note was last written or removed, in seconds since 1970; none: never

    def runs(self, session: str, last_event: float | None) -> bool | None:
        """Whether a process has the session open; None if that is unknown. A client that ends removes its note, so
        where that happened after the last event of a session without a note, its client has ended."""
        if session in self.running:
            return True
        ended = self.changed is not None and last_event is not None and self.changed >= last_event - SLACK_SECONDS
        return False if ended or session in self.killed else None


def noted_sessions() -> dict[str, NotedSessions]:
    """Return the notes by agent, for the agents that write them."""
    return {
        agent.name: cast("Noted", module(agent.processes).noted_sessions)(agent_folders(agent.location))
        for agent in AGENTS
        if agent.processes
    }


Noted = Callable[[Iterable[Path]], NotedSessions]


def running_sessions() -> frozenset[str]:
    """Return the ids of sessions that a process has open."""
    return frozenset().union(*(noted.running for noted in noted_sessions().values()))
