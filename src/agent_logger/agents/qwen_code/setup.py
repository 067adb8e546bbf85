"""How Qwen Code is sent through the proxy.

Its key may be of any provider, so it is given a base URL only where it has one: in the environment or in an `.env`
file.
"""

from collections.abc import Mapping

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through
from agent_logger.agents.gemini_cli.setup import from_env_file

VARIABLE = "OPENAI_BASE_URL"
FOLDER = ".qwen"


class QwenSetup(ChildSetup):
    def settings_environment(self, child: ChildCommand) -> Mapping[str, str]:
        return from_env_file(child, FOLDER, VARIABLE)

    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        return {VARIABLE: None} if is_own and not child.environment.get(VARIABLE) else {}


SETUP = QwenSetup()
