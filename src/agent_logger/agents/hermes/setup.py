"""How Hermes is sent through the proxy: a provider of the user's own by `CUSTOM_BASE_URL`, OpenRouter by its variable.

Both are stronger than the base URL in `config.yaml`, which is followed; a variable in Hermes' own `.env` is stronger
still. Any other provider keeps its own base URL: its calls go through the forward door.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door, Through

CUSTOM, OPENROUTER = "CUSTOM_BASE_URL", "OPENROUTER_BASE_URL"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
ANTHROPIC_MODE = "anthropic_messages"
# Lines of the block `model` in `config.yaml`, and variables in `.env`.
_MODEL = re.compile(r"^model:[ \t]*(?:#.*)?\n((?:[ \t]+.*\n|[ \t]*(?:#.*)?\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"""^[ \t]+(\w+):[ \t]*["']?([^"'\s#]+)""", re.MULTILINE)
_VARIABLE = re.compile(r"^(?:export[ \t]+)?(\w+)[ \t]*=", re.MULTILINE)


class HermesSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        if (base_url := _base_url(child)) is None:
            return {}
        variable, provider, url = base_url
        proxied = through(provider, url)
        return {variable: proxied} if proxied else {}

    def door(self, child: ChildCommand) -> Door:
        return "base-url" if _base_url(child) else "forward"


def _base_url(child: ChildCommand) -> tuple[str, str, str] | None:
    """Return the variable for the base URL of the provider in use, its API, and the URL; None if it takes none."""
    folder = _folder(child.environment)
    fixed = set(_VARIABLE.findall(_text(folder / ".env")))
    block = _MODEL.search(_text(folder / "config.yaml") + "\n")
    model = dict(_ENTRY.findall(block[1])) if block else {}
    provider, chosen = model.get("provider") or "auto", model.get("base_url")
    if provider == "openrouter" and OPENROUTER not in fixed:
        return OPENROUTER, "openai", child.environment.get(OPENROUTER) or OPENROUTER_URL
    url = child.environment.get(CUSTOM) or chosen
    if provider in ("custom", "auto") and url and CUSTOM not in fixed:
        return CUSTOM, "anthropic" if model.get("api_mode") == ANTHROPIC_MODE else "openai", url
    return None


def _folder(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HERMES_HOME") or f"{environment.get('HOME', '')}/.hermes")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


SETUP = HermesSetup()
