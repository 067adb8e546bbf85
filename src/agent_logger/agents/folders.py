"""The folders and files of agents on this machine, as the environment says."""

import os
import re
import unicodedata
from pathlib import Path

from agent_logger.agents.locations import AGENT_PLACES, AgentLocation, folders_of, main_files, older_files_in

HISTORY_FILE = "history.jsonl"  # what people typed, in the folders of Claude Code and Codex


def claude_roots() -> list[Path]:
    """Configuration folders of Claude Code: those of `CLAUDE_CONFIG_DIR`, which may be a list, else the usual ones."""
    folders = folders_of(place_of("claude-code"), os.environ, Path.home())
    return [Path(unicodedata.normalize("NFC", os.path.realpath(folder))) for folder in folders]


CLAUDE_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
)


def claude_variables() -> dict[str, str]:
    """What Claude Code tells its children, and is told; no other variable, for those hold secrets."""
    return {name: value for name in CLAUDE_VARIABLES if (value := os.environ.get(name))}


def agent_folders(place: AgentLocation) -> list[Path]:
    """Where an agent keeps its sessions, as the environment says; links on the way are followed, for its owner made
    them."""
    folders = folders_of(place, os.environ, Path.home())
    return list(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))


def provider_root(provider: str) -> Path:
    """Where an adapter for a provider keeps its sessions: `OPENAI_CONFIG_DIR`, or where Claude Code has its own."""
    named = os.environ.get(f"{variable_prefix(provider)}_CONFIG_DIR")
    return Path(named).expanduser().absolute() if named else claude_roots()[0]


def variable_prefix(provider: str) -> str:
    """`openai` has variables like `OPENAI_CONFIG_DIR`."""
    return re.sub(r"[^A-Z0-9]", "_", provider.upper())


def agent_files(agent: str) -> list[Path]:
    """The main files of an agent on this machine, where the environment says they are."""
    return main_files(place_of(agent), os.environ, Path.home())


def older_agent_files(agent: str) -> list[Path]:
    """The same of what it wrote before: a newer version may have taken over what is in them."""
    place = place_of(agent)
    return [path for folder in agent_folders(place) for path in older_files_in(place, folder)]


def place_of(agent: str) -> AgentLocation:
    return next(place for place in AGENT_PLACES if place.agent == agent)
