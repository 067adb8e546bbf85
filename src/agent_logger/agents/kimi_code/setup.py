"""How Kimi Code is sent through the proxy: a model that variables describe, by its base URL.

A provider in `config.toml` that has a base URL keeps it, whatever the variables say.
"""

from collections.abc import Mapping

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door, Through

MODEL, VARIABLE, TYPE = "KIMI_MODEL_NAME", "KIMI_MODEL_BASE_URL", "KIMI_MODEL_PROVIDER_TYPE"
ANTHROPIC = "anthropic"


class KimiSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        url = child.environment.get(VARIABLE)
        if not (url and child.environment.get(MODEL)):
            return {}
        provider = ANTHROPIC if child.environment.get(TYPE, "").lower() == ANTHROPIC else "openai"
        proxied = through(provider, url)
        return {VARIABLE: proxied} if proxied else {}

    def door(self, child: ChildCommand) -> Door:
        return "base-url" if child.environment.get(VARIABLE) and child.environment.get(MODEL) else "forward"


SETUP = KimiSetup()
