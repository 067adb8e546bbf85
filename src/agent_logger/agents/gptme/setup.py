"""How gptme is sent through the proxy: the APIs of OpenAI and Anthropic by the base URLs that every command gets. Its
other providers have addresses that no variable replaces."""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_logger.agents.command_lines import option_value
from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door

BY_BASE_URL = ("openai", "anthropic", "local")
_MODEL = re.compile(r"""^\s*MODEL\s*=\s*["']([^"'\n]+)["']""", re.MULTILINE)


class GptmeSetup(ChildSetup):
    def door(self, child: ChildCommand) -> Door:
        model = (
            option_value(child.argv, ("-m", "--model"))
            or child.environment.get("MODEL")
            or _configured(child.environment)
        )
        provider = model.partition("/")[0]
        return "base-url" if not provider or provider in BY_BASE_URL else "forward"


def _configured(environment: Mapping[str, str]) -> str:
    home = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"
    try:
        match = _MODEL.search(Path(home, "gptme", "config.toml").read_text("utf-8", "replace"))
    except OSError:
        return ""
    return match[1] if match else ""


SETUP = GptmeSetup()
