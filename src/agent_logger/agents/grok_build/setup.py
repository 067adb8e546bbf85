"""How Grok Build is sent through the proxy: by the variables of its endpoints.

A model in `config.toml` that has a base URL keeps it, whatever the variables say. With an API key, its own models are
asked at xAI's API; with a login, elsewhere, unless a variable names the place.
"""

from collections.abc import Mapping

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door, Through

XAI = "GROK_XAI_API_BASE_URL"
CHOSEN = ("GROK_MODELS_BASE_URL", "GROK_CLI_CHAT_PROXY_BASE_URL", XAI)
KEYS = ("XAI_API_KEY", "GROK_CODE_XAI_API_KEY")
DEFAULT = "https://api.x.ai/v1"


class GrokSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        urls = {name: url for name in CHOSEN if (url := child.environment.get(name))}
        if any(child.environment.get(name) for name in KEYS):
            urls.setdefault(XAI, DEFAULT)
        return {name: proxied for name, url in urls.items() if (proxied := through("openai", url))}

    def door(self, child: ChildCommand) -> Door:
        return "base-url" if any(child.environment.get(name) for name in (*CHOSEN, *KEYS)) else "forward"


SETUP = GrokSetup()
