"""How OpenHands is sent through the proxy: by its variables, which it reads with `--override-with-envs` only.

Without that option, the base URL is that of its settings file.
"""

from collections.abc import Mapping

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door, Through

VARIABLE, MODEL = "LLM_BASE_URL", "LLM_MODEL"
OPTION = "--override-with-envs"
ANTHROPIC = "anthropic/"


class OpenHandsSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        url = child.environment.get(VARIABLE)
        if not url:
            return {}
        provider = "anthropic" if child.environment.get(MODEL, "").startswith(ANTHROPIC) else "openai"
        proxied = through(provider, url)
        return {VARIABLE: proxied} if proxied else {}

    def door(self, child: ChildCommand) -> Door:
        return "base-url" if child.environment.get(VARIABLE) and OPTION in child.argv else "forward"


SETUP = OpenHandsSetup()
