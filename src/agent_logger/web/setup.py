"""For who has nothing recorded yet: which agents are here, and the line that has each recorded."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_logger.capture.proxy.state import running
from agent_logger.store.claude_files import session_files
from agent_logger.store.layout import agent_files, claude_roots

PROGRAMS: Mapping[str, tuple[str, str]] = {  # by agent: its program, and how it is started through the proxy
    "claude-code": ("claude", 'eval "$(agent-logger env)" && claude'),
    "gemini-cli": ("gemini", 'eval "$(agent-logger env)" && gemini'),
    "opencode": ("opencode", 'eval "$(agent-logger env)" && opencode'),
    "codex": ("codex", "agent-logger env  # Codex has its base URL in a file: see docs/proxy.md"),
}


@dataclass(frozen=True, slots=True)
class Found:
    agent: str
    is_installed: bool
    sessions: int
    line: str


@dataclass(frozen=True, slots=True)
class Setup:
    agents: list[Found]
    port: int | None  # of a proxy that runs


def look_around(home: Path) -> Setup:
    proxies = running(home)
    found = [
        Found(agent, shutil.which(program) is not None, _sessions(agent), line)
        for agent, (program, line) in PROGRAMS.items()
    ]
    return Setup(sorted(found, key=lambda it: not it.is_installed), proxies[-1].port if proxies else None)


def _sessions(agent: str) -> int:
    if agent == "claude-code":
        return sum(1 for root in claude_roots() for _ in session_files(root))
    return len(agent_files(agent))
