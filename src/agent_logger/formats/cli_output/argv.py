"""What a command line says of the agent it starts: which it is, whether it talks to a terminal, prompt and session.

A prompt is told where its place is certain, else not at all: all of the command line is recorded anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    headless: tuple[str, ...]  # one of these: it prints and ends, and wants no terminal
    prompt_after: tuple[str, ...] = ()  # options that the prompt follows; none: it is the last argument
    resume: tuple[str, ...] = ()
    go_on: tuple[str, ...] = ()  # with the last session, whichever it is


AGENTS: Mapping[str, Agent] = {
    "claude": Agent(
        "claude-code", ("-p", "--print"), ("-p", "--print"), ("-r", "--resume"), ("-c", "--continue")
    ),
    "codex": Agent("codex", ("exec", "e"), (), ("resume",), ("--last",)),
    "gemini": Agent("gemini-cli", ("-p", "--prompt"), ("-p", "--prompt"), (), ("-r", "--resume")),
    "opencode": Agent("opencode", ("run",), (), ("-s", "--session"), ("-c", "--continue")),
}


def agent_of(argv: Sequence[str]) -> Agent | None:
    return AGENTS.get(PurePath(argv[0]).name)


def is_headless(argv: Sequence[str]) -> bool:
    agent = agent_of(argv)
    return agent is not None and any(word in agent.headless for word in argv[1:])


def prompt_of(argv: Sequence[str]) -> str | None:
    agent = agent_of(argv)
    if agent is None or not is_headless(argv):
        return None
    if agent.prompt_after:
        return _value(argv, agent.prompt_after)
    before, last = argv[-2], argv[-1]
    is_word = not last.startswith("-") and not before.startswith("-")
    return last if is_word and last not in (*agent.headless, *agent.resume) else None


def resumed_by(argv: Sequence[str]) -> str | None:
    """The session that goes on, if it is named."""
    agent = agent_of(argv)
    return _value(argv, agent.resume) if agent else None


def goes_on(argv: Sequence[str]) -> bool:
    agent = agent_of(argv)
    return agent is not None and any(word.partition("=")[0] in (*agent.resume, *agent.go_on) for word in argv)


def takes_messages(argv: Sequence[str]) -> bool:
    """On its standard input, a line each."""
    return _value(argv, ("--input-format",)) == "stream-json"


def _value(argv: Sequence[str], options: Sequence[str]) -> str | None:
    for word, after in zip(argv, [*argv[1:], "-"], strict=True):
        option, joined, value = word.partition("=")
        if option in options:
            return value if joined else after if after and not after.startswith("-") else None
    return None
