"""What a command line says about the agent it starts: which one it is, whether it needs a terminal, prompt and session.

A prompt is returned only where its place is certain: the whole command line is recorded anyway.
"""

from collections.abc import Sequence
from pathlib import PurePath

from agent_logger.agents.base import Agent, RunSupport
from agent_logger.agents.registry import AGENTS, agent_called


def agent_of(argv: Sequence[str]) -> Agent | None:
    name = PurePath(argv[0]).name
    return next((agent for agent in AGENTS if agent.run and agent.run.executable == name), None)


def _support(argv: Sequence[str]) -> RunSupport | None:
    agent = agent_of(argv)
    return agent.run if agent else None


def installed_by(command: str) -> str | None:
    """Return the command that installs an agent's executable; None if the command is not an agent's."""
    agent = _support([command])
    return f"{agent.installer} {agent.package}" if agent else None


def is_headless(argv: Sequence[str]) -> bool:
    agent = _support(argv)
    return agent is not None and any(word in agent.headless for word in argv[1:])


def prompt_of(argv: Sequence[str]) -> str | None:
    agent = _support(argv)
    if agent is None or not is_headless(argv):
        return None
    return option_value(argv, agent.prompt_after) or _last_word(agent, argv)


def _last_word(agent: RunSupport, argv: Sequence[str]) -> str | None:
    """Return the last argument, unless it is, or may be, the value of an option before it."""
    *before, last = argv[1:]
    if last.startswith("-") or last in (*agent.headless, *agent.resume):
        return None
    options = [at for at, word in enumerate(before) if word.startswith("-")]
    option, values = (before[options[-1]], len(before) - options[-1] - 1) if options else ("", 1)
    if option in (*agent.flags, *agent.headless, *agent.go_on) or "=" in option:
        return last
    return last if values and option not in agent.lists else None


def resumed_by(argv: Sequence[str]) -> str | None:
    """Return the session that is resumed, if it is named."""
    agent = _support(argv)
    return option_value(argv, agent.resume) if agent else None


def goes_on(argv: Sequence[str]) -> bool:
    agent = _support(argv)
    return agent is not None and any(word.partition("=")[0] in (*agent.resume, *agent.go_on) for word in argv)


def starts_new(argv: Sequence[str], agent: str | None) -> bool:
    """Whether the agent of this name, under any command, was not asked to resume a session."""
    named = agent_called(agent)
    run = named.run if named else None
    return run is not None and not goes_on([run.executable, *argv[1:]])


def takes_messages(argv: Sequence[str]) -> bool:
    """Whether the command reads messages from its standard input, one per line."""
    return option_value(argv, ("--input-format",)) == "stream-json"


def option_value(argv: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the value of the first of these options that has one."""
    for word, after in zip(argv, [*argv[1:], "-"], strict=True):
        option, joined, value = word.partition("=")
        if option in options:
            return value if joined else after if after and not after.startswith("-") else None
    return None
