"""For who has nothing recorded yet: which agents are here, and the line that has each recorded."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from agent_logger.agents.claude_code.files import session_files
from agent_logger.agents.folders import agent_files, claude_roots, older_agent_files
from agent_logger.agents.opencode.database import session_ids
from agent_logger.agents.opencode.older_files import started_by
from agent_logger.errors import SourceError

PROGRAMS: Mapping[str, tuple[str, str]] = {  # by agent: its program, and how it is started with recording on
    "claude-code": ("claude", "agent-logger run -- claude"),
    "gemini-cli": ("gemini", "agent-logger run -- gemini"),
    "opencode": ("opencode", "agent-logger run -- opencode"),
    "qwen-code": ("qwen", "agent-logger run -- qwen"),
    # In a terminal it has its URL in a file.
    "codex": ("codex", 'agent-logger run -- codex exec --json "PROMPT"'),
}


@dataclass(frozen=True, slots=True)
class AgentSetup:
    agent: str
    is_installed: bool
    sessions: int
    line: str


def agent_setups() -> list[AgentSetup]:
    """Those that are here first."""
    setups = [
        AgentSetup(agent, shutil.which(program) is not None, _sessions(agent), line)
        for agent, (program, line) in PROGRAMS.items()
    ]
    return sorted(setups, key=lambda setup: not setup.is_installed)


def _sessions(agent: str) -> int:
    if agent == "claude-code":
        return sum(1 for root in claude_roots() for _ in session_files(root))
    if agent == "opencode":
        return len(_opencode_sessions())
    return len(agent_files(agent))


def _opencode_sessions() -> set[str]:
    """Of those in files some may be in a database, too: a newer version has copied them."""
    names = {path.stem for path in older_agent_files("opencode") if started_by(path) is None}
    for path in agent_files("opencode"):
        with suppress(SourceError, OSError):
            names.update(session_ids(path))
    return names
