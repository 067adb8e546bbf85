"""What a command line says of the agent it starts: which it is, whether it talks to a terminal, prompt and session.

A prompt is told where its place is certain, else not at all: all of the command line is recorded anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class AgentCommand:
    name: str
    package: str  # of npm, that installs it
    headless: tuple[str, ...]  # one of these: it prints and ends, and wants no terminal
    prompt_after: tuple[str, ...] = ()  # options that the prompt follows; none: it is the last argument
    resume: tuple[str, ...] = ()
    go_on: tuple[str, ...] = ()  # with the last session, whichever it is
    flags: tuple[str, ...] = ()  # options without a value
    lists: tuple[str, ...] = ()  # options with many


AGENTS: Mapping[str, AgentCommand] = {
    "claude": AgentCommand(
        "claude-code",
        "@anthropic-ai/claude-code",
        headless=("-p", "--print"),
        prompt_after=("-p", "--print"),
        resume=("-r", "--resume"),
        go_on=("-c", "--continue"),
        flags=("--verbose", "--fork-session", "--include-partial-messages", "--dangerously-skip-permissions"),
        lists=(
            *("--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--tools"),
            *("--add-dir", "--mcp-config", "--betas"),
        ),
    ),
    "codex": AgentCommand(
        "codex",
        "@openai/codex",
        headless=("exec", "e"),
        resume=("resume",),
        go_on=("--last",),
        flags=(
            *("--json", "--skip-git-repo-check", "--full-auto", "--oss", "--ephemeral", "--yolo"),
            "--dangerously-bypass-approvals-and-sandbox",
        ),
        lists=("-i", "--image"),
    ),
    "gemini": AgentCommand(
        "gemini-cli",
        "@google/gemini-cli",
        headless=("-p", "--prompt"),
        prompt_after=("-p", "--prompt"),
        go_on=("-r", "--resume"),
    ),
    "qwen": AgentCommand(
        "qwen-code",
        "@qwen-code/qwen-code",
        headless=("-p", "--prompt"),
        prompt_after=("-p", "--prompt"),
        resume=("-r", "--resume"),
        go_on=("-c", "--continue"),
    ),
    "opencode": AgentCommand(
        "opencode",
        "opencode-ai",
        headless=("run",),
        resume=("-s", "--session"),
        go_on=("-c", "--continue"),
        flags=("--fork", "--share", "--print-logs", "--thinking"),
        lists=("-f", "--file"),
    ),
}


def agent_of(argv: Sequence[str]) -> AgentCommand | None:
    return AGENTS.get(PurePath(argv[0]).name)


def installed_by(command: str) -> str | None:
    """The command that installs an agent's; none for what is no agent's."""
    agent = AGENTS.get(command)
    return f"npm install -g {agent.package}" if agent else None


def is_headless(argv: Sequence[str]) -> bool:
    agent = agent_of(argv)
    return agent is not None and any(word in agent.headless for word in argv[1:])


def prompt_of(argv: Sequence[str]) -> str | None:
    agent = agent_of(argv)
    if agent is None or not is_headless(argv):
        return None
    return _value(argv, agent.prompt_after) or _last_word(agent, argv)


def _last_word(agent: AgentCommand, argv: Sequence[str]) -> str | None:
    """The last argument, unless it is, or may be, the value of an option before it."""
    *before, last = argv[1:]
    if last.startswith("-") or last in (*agent.headless, *agent.resume):
        return None
    options = [at for at, word in enumerate(before) if word.startswith("-")]
    option, values = (before[options[-1]], len(before) - options[-1] - 1) if options else ("", 1)
    if option in (*agent.flags, *agent.headless, *agent.go_on) or "=" in option:
        return last
    return last if values and option not in agent.lists else None


def resumed_by(argv: Sequence[str]) -> str | None:
    """The session that goes on, if it is named."""
    agent = agent_of(argv)
    return _value(argv, agent.resume) if agent else None


def goes_on(argv: Sequence[str]) -> bool:
    agent = agent_of(argv)
    return agent is not None and any(word.partition("=")[0] in (*agent.resume, *agent.go_on) for word in argv)


def starts_new(argv: Sequence[str], agent: str | None) -> bool:
    """Whether the agent of this name, under whatever command, was not told to go on with a session."""
    command = next((command for command, known_agent in AGENTS.items() if known_agent.name == agent), None)
    return command is not None and not goes_on([command, *argv[1:]])


def takes_messages(argv: Sequence[str]) -> bool:
    """On its standard input, a line each."""
    return _value(argv, ("--input-format",)) == "stream-json"


def _value(argv: Sequence[str], options: Sequence[str]) -> str | None:
    for word, after in zip(argv, [*argv[1:], "-"], strict=True):
        option, joined, value = word.partition("=")
        if option in options:
            return value if joined else after if after and not after.startswith("-") else None
    return None
