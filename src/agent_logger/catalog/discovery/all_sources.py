"""Every session there is, as each witness has it: our logs, what hooks were told, agents' files, and copies of them."""

from collections.abc import Iterator
from pathlib import Path

from agent_logger.catalog.discovery.agent_files import agent_sessions
from agent_logger.catalog.discovery.archived import archived_sessions
from agent_logger.catalog.discovery.own_logs import folders_of_logs, hooked_sessions, logs_in
from agent_logger.catalog.discovery.source import Found, Remembered


def found(home: Path, remembered: Remembered) -> Iterator[Found]:
    for folder in folders_of_logs(home):
        yield from logs_in(str(folder), remembered)
    yield from hooked_sessions(home, remembered)
    of_agents = list(agent_sessions(remembered))
    whole = [it for it in of_agents if not it.prompts_only]
    present = [(it.agent, it.name) for it in whole if not it.main_missing]
    archived = list(archived_sessions(home, present, remembered))
    yield from whole
    yield from archived
    if typed := [it for it in of_agents if it.prompts_only]:
        known = remembered.passed_over.union((it.agent, it.name) for it in archived)
        yield from (it for it in typed if (it.agent, it.name) not in known)
