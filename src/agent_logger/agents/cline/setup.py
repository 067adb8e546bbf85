"""Sends one process of Cline through the proxy.

The base URLs of providers are in its settings file. Only Cline's own provider, the default, takes it from a variable.
"""

from collections.abc import Mapping

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through

VARIABLE = "CLINE_API_BASE_URL"
VENDOR = "https://api.cline.bot"
PROVIDER = "openai"  # the API that it speaks
BACKEND = "CLINE_SESSION_BACKEND_MODE"


class ClineSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        """Return the base URL of Cline's own provider. The session runs in the process itself, because a hub that is
        running already has other variables."""
        if not is_own or not (url := through(PROVIDER, child.environment.get(VARIABLE) or VENDOR)):
            return {}
        backend = {} if child.environment.get(BACKEND) else {BACKEND: "local"}
        return {VARIABLE: url, **backend}


SETUP = ClineSetup()
