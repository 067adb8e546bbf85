"""How Copilot CLI is sent through the proxy: by the base URL of the user's own provider, if one is set.

Without it, Copilot uses a GitHub login, and asks GitHub where its models are. A base URL would take the login's models
away.
"""

from collections.abc import Mapping

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through

VARIABLE = "COPILOT_PROVIDER_BASE_URL"
TYPE = "COPILOT_PROVIDER_TYPE"


class CopilotSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        url = child.environment.get(VARIABLE)
        provider = "anthropic" if child.environment.get(TYPE, "").lower() == "anthropic" else "openai"
        proxied = through(provider, url) if url else None
        return {VARIABLE: proxied} if proxied else {}

    def ignores_base_url(self, child: ChildCommand) -> bool:
        return not child.environment.get(VARIABLE)


SETUP = CopilotSetup()
