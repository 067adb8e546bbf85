"""How agents that call models through LiteLLM are sent through the proxy.

LiteLLM reads the base URLs that every command gets, `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`, and other variables for
the same. The hosts of its other providers are replaced by no such variable.
"""

from collections.abc import Mapping

from agent_logger.agents.command_lines import option_value
from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door, Through

# The providers whose base URL is replaced; one without a name follows from the model's.
BY_BASE_URL = ("", "openai", "anthropic", "text-completion-openai")
MODEL_OPTIONS = ("-m", "--model")
# Which of two variables counts: OpenAI's first one, Anthropic's last one.
OPENAI, OTHER_OPENAI = "OPENAI_BASE_URL", "OPENAI_API_BASE"
ANTHROPIC, OTHER_ANTHROPIC = "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"


class LiteLlmSetup(ChildSetup):
    """`model_variable`: the variable that names the model if the command line does not."""

    def __init__(self, model_variable: str) -> None:
        self._model_variable = model_variable

    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        """Follow the base URLs in the other variables. Only this agent is known to read them in this order."""
        chosen, changes = child.environment, dict[str, str | None]()
        if not is_own:
            return changes
        if (url := chosen.get(OTHER_OPENAI)) and not chosen.get(OPENAI) and (proxied := through("openai", url)):
            changes |= {OPENAI: proxied, OTHER_OPENAI: proxied}
        if (url := chosen.get(OTHER_ANTHROPIC)) and (proxied := through("anthropic", url)):
            changes |= {ANTHROPIC: proxied, OTHER_ANTHROPIC: proxied}
        return changes

    def door(self, child: ChildCommand) -> Door:
        model = option_value(child.argv, MODEL_OPTIONS) or child.environment.get(self._model_variable, "")
        provider, slash, _ = model.partition("/")
        return "base-url" if not slash or provider in BY_BASE_URL else "forward"


SETUP = LiteLlmSetup("MSWEA_MODEL_NAME")
