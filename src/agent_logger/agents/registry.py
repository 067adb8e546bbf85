"""The known agents. Each is a row here and a package beside this module.

Its recordings are in `tests/data/<name>/`; those of Claude Code are in `tests/data/claude-cli/`.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, cast

from agent_logger.agents import (
    aider,
    claude_code,
    cline,
    codex,
    continue_cli,
    copilot_cli,
    droid,
    gemini_cli,
    goose,
    gptme,
    grok_build,
    hermes,
    kilo,
    kimi_code,
    mini_swe_agent,
    mistral_vibe,
    omp,
    openclaw,
    opencode,
    openhands,
    pi,
    prime_agent,
    qwen_code,
)
from agent_logger.agents.base import Agent, AgentLocation, WireIdentity, module

if TYPE_CHECKING:
    from agent_logger.agents.contracts import CallShapes, ChildSetup
    from agent_logger.files.sources import Source

AGENTS: tuple[Agent, ...] = (
    claude_code.AGENT,
    codex.AGENT,
    gemini_cli.AGENT,
    opencode.AGENT,
    kilo.AGENT,
    goose.AGENT,
    gptme.AGENT,
    qwen_code.AGENT,
    pi.AGENT,
    copilot_cli.AGENT,
    kimi_code.AGENT,
    grok_build.AGENT,
    omp.AGENT,
    prime_agent.AGENT,
    openclaw.AGENT,
    continue_cli.AGENT,  # before Cline, which looks at names in the beginning
    cline.AGENT,
    droid.AGENT,
    hermes.AGENT,
    openhands.AGENT,
    mistral_vibe.AGENT,
    mini_swe_agent.AGENT,
    aider.AGENT,
)

_LOG_NAME = re.compile(r"\d{8}([_-])\d{6}\1")  # the form of our own logs' names
_NOTHING_KNOWN = WireIdentity()


def agent_called(name: str | None) -> Agent | None:
    return next((agent for agent in AGENTS if agent.name == name), None)


def canonical_name(name: str) -> str:
    """Return the name of the agent that people call so; any other name as it is."""
    given = name.strip().lower()
    return next((agent.name for agent in AGENTS if given in (agent.name, *agent.aliases)), name)


def names_text() -> str:
    """Return the names of all agents, each with its other names: `claude-code (claude), codex`."""
    return ", ".join(agent.name + (f" ({', '.join(agent.aliases)})" if agent.aliases else "") for agent in AGENTS)


def block_limited_agent() -> str:
    """Return the agent whose plans limit what is used in blocks of five hours."""
    return next(agent.name for agent in AGENTS if agent.is_limited_by_block)


def readable_agent(name: str | None) -> Agent | None:
    """Return the agent of that name, if its files can be read."""
    agent = agent_called(name)
    return agent if agent and agent.reader else None


def located() -> Iterator[tuple[Agent, AgentLocation]]:
    """Yield the agents that have files."""
    return ((agent, agent.location) for agent in AGENTS if agent.location)


def recognise(path: str, first: bytes) -> Agent | None:
    """Return the agent whose main file this is, by its first bytes, or, if many files begin like that, also by the end
    of its path; None if it is no agent's, or a sub-agent's."""
    by_content = (agent for agent in AGENTS if agent.recognises(first))
    by_name = (agent for agent in AGENTS if agent.is_main_file(path, first))
    return next(by_content, None) or next(by_name, None)


def wire_of(name: str | None) -> WireIdentity:
    agent = agent_called(name)
    return agent.wire if agent else _NOTHING_KNOWN


@cache
def call_shapes_of(name: str | None) -> "CallShapes | None":
    """Return the shapes of an agent's calls; None if nothing is known of them."""
    calls = wire_of(name).calls
    return cast("CallShapes", module(calls).CALLS) if calls else None


def child_setups() -> "Iterator[tuple[Agent, ChildSetup]]":
    """Yield the agents that need more than variables to be sent through the proxy."""
    for agent in AGENTS:
        if agent.setup and agent.setup.child:
            yield agent, cast("ChildSetup", module(agent.setup.child).SETUP)


def resume_command(name: str | None, session: str) -> list[str] | None:
    """Return the command that resumes a session; None for an agent that cannot, or that gave the session no name."""
    agent = agent_called(name)
    if agent is None or agent.run is None or not agent.run.resume_option:
        return None
    if given_id(agent.name, session) != session:
        return None  # the agent has another session of that id
    if _LOG_NAME.match(session) and not _is_id_of(agent, session):
        return None
    return [agent.run.executable, *agent.run.resume_option.split(), session]


def repeats(name: str | None, session: str) -> bool:
    """Whether other sessions may have this id, too. `name`: the agent; none if only its form tells it."""
    forms = (agent.repeating_ids for agent in AGENTS if name in (None, agent.name))
    return any(form and form.fullmatch(session) for form in forms)


def identity_of(source: "Source") -> str:
    """Return what tells a session from all others of its agent: its name, and the time it was created if its agent
    gives ids again."""
    begun = source.stamp.partition(";")[0] if repeats(source.agent, source.name) else ""
    return f"{source.name};{begun}" if begun else source.name


def given_id(name: str | None, session: str) -> str:
    """Return the id that the agent gave a session, of one that has a mark behind it because others have the same."""
    agent, marked = agent_called(name), id_and_mark(session)
    return marked[0] if agent and marked and repeats(agent.name, marked[0]) else session


def id_and_mark(session: str) -> tuple[str, str] | None:
    """Return the parts of an id that has a mark behind it, because other sessions have the same; None for any other."""
    plain, _, mark = session.rpartition("-")
    return (plain, mark) if repeats(None, plain) else None


def _is_id_of(agent: Agent, session: str) -> bool:
    return bool(agent.session_ids and agent.session_ids.fullmatch(session))


def names_sessions_on_wire(name: str | None) -> bool:
    agent = agent_called(name)
    return agent is not None and agent.names_sessions_on_wire
