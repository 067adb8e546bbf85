"""For who has nothing recorded yet: which agents are here, and the line that has each recorded."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from agent_logger.store.claude_files import session_files
from agent_logger.store.layout import agent_files, claude_roots

PROGRAMS: Mapping[str, tuple[str, str]] = {  # by agent: its program, and how it is started with recording on
    "claude-code": ("claude", "agent-logger run -- claude"),
    "gemini-cli": ("gemini", "agent-logger run -- gemini"),
    "opencode": ("opencode", "agent-logger run -- opencode"),
    "qwen-code": ("qwen", "agent-logger run -- qwen"),
    # In a terminal it has its URL in a file.
    "codex": ("codex", 'agent-logger run -- codex exec --json "PROMPT"'),
}


@dataclass(frozen=True, slots=True)
class Found:
    agent: str
    is_installed: bool
    sessions: int
    line: str


def look_around() -> list[Found]:
    """Those that are here first."""
    found = [
        Found(agent, shutil.which(program) is not None, _sessions(agent), line)
        for agent, (program, line) in PROGRAMS.items()
    ]
    return sorted(found, key=lambda it: not it.is_installed)


def _sessions(agent: str) -> int:
    if agent == "claude-code":
        return sum(1 for root in claude_roots() for _ in session_files(root))
    return len(agent_files(agent))
