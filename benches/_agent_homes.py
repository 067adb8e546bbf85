"""The same sessions in the files of several agents: those of `_claude_corpus`, translated.

Each writer takes conversations and makes of them what the real client makes, as the recordings in tests/data have it.
"""

from collections.abc import Callable
from pathlib import Path

from _agent_databases import write_goose, write_hermes, write_kilo, write_openclaw, write_opencode
from _agent_documents import write_cline, write_continue, write_mini, write_openhands, write_vibe
from _agent_lines import (
    write_aider,
    write_codex,
    write_copilot,
    write_droid,
    write_gptme,
    write_grok,
    write_kimi,
    write_pi,
    write_vibe_2,
)
from _conversations import Conversation

WRITERS: dict[str, Callable[[Path, list[Conversation]], None]] = {
    "opencode": write_opencode,
    "kilo": write_kilo,
    "goose": write_goose,
    "kimi-code": write_kimi,
    "grok-build": write_grok,
    "cline": write_cline,
    "pi": write_pi,
    "codex": write_codex,
    "copilot-cli": write_copilot,
    "droid": write_droid,
    "openhands": write_openhands,
    "mistral-vibe": write_vibe,
    "mistral-vibe-2": write_vibe_2,
    "openclaw": write_openclaw,
    "hermes": write_hermes,
    "continue-cli": write_continue,
    "gptme": write_gptme,
    "aider": write_aider,
    "mini-swe-agent": write_mini,
}
