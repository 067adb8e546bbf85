"""The configuration folders of Claude Code, and the variables that it sets for its children."""

import os
import re
import unicodedata
from pathlib import Path

from agent_logger.agents.claude_code import AGENT
from agent_logger.agents.folders import agent_folders, variables

CLAUDE_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
)


def claude_roots() -> list[Path]:
    """Return the folders of `CLAUDE_CONFIG_DIR`, which may be a list, else the usual ones."""
    return [Path(unicodedata.normalize("NFC", os.fspath(folder))) for folder in agent_folders(AGENT.location)]


def claude_variables() -> dict[str, str]:
    return variables(CLAUDE_VARIABLES)


def provider_root(provider: str) -> Path:
    """Return where an adapter for a provider keeps its sessions: `OPENAI_CONFIG_DIR`, or Claude Code's own folder."""
    name = f"{variable_prefix(provider)}_CONFIG_DIR"
    named = variables([name]).get(name)
    return Path(named).expanduser().absolute() if named else claude_roots()[0]


def variable_prefix(provider: str) -> str:
    """Return the prefix of a provider's variables: `openai` has variables like `OPENAI_CONFIG_DIR`."""
    return re.sub(r"[^A-Z0-9]", "_", provider.upper())
