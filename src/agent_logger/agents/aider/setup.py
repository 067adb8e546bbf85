"""How aider is sent through the proxy. It calls models through LiteLLM, and has names of its own for a base URL."""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_logger.agents.command_lines import option_value
from agent_logger.agents.contracts import ChildCommand, Through
from agent_logger.agents.mini_swe_agent.setup import OPENAI, OTHER_OPENAI, LiteLlmSetup

OPTION, VARIABLE, SETTINGS = "--openai-api-base", "AIDER_OPENAI_API_BASE", ".aider.conf.yml"
_IN_SETTINGS = re.compile(r"""^openai-api-base\s*:\s*["']?([^\s"'#]+)""", re.MULTILINE)


class AiderSetup(LiteLlmSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        """Replace the base URL that aider is given. It keeps it in the variable that LiteLLM reads last."""
        changes = dict(super().variables(child, through, is_own=is_own))
        url = option_value(child.argv, (OPTION,)) or child.environment.get(VARIABLE) or _configured(child)
        if is_own and url and (proxied := through("openai", url)):
            changes |= {OPENAI: proxied, OTHER_OPENAI: proxied}
        return changes


def _configured(child: ChildCommand) -> str | None:
    """Return the base URL in the settings: those of the working folder win over those of the home."""
    for folder in (child.folder, Path(child.environment.get("HOME", ""))):
        try:
            match = _IN_SETTINGS.search((folder / SETTINGS).read_text("utf-8", "replace"))
        except OSError:
            continue
        if match:
            return match[1]
    return None


SETUP = AiderSetup("AIDER_MODEL")
