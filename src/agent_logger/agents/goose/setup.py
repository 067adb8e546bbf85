"""How Goose is sent through the proxy: it reads the host of each provider from a variable, else from `config.yaml`.

For OpenAI it also reads `OPENAI_BASE_URL`, which is set for every command. A host that somebody chose for it must not
be passed over: then that variable stays as it is.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through

BASE_URL = "OPENAI_BASE_URL"
OPENAI_HOST, ANTHROPIC_HOST = "OPENAI_HOST", "ANTHROPIC_HOST"
DEFAULTS = {ANTHROPIC_HOST: "https://api.anthropic.com"}
PROVIDERS = {OPENAI_HOST: "openai", ANTHROPIC_HOST: "anthropic"}
_ENTRY = re.compile(r"""^(\w+):[ \t]*["']?([^"'\s#]+)""", re.MULTILINE)


class GooseSetup(ChildSetup):
    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        config = _config(child.environment)
        changes: dict[str, str | None] = {}
        for name, provider in PROVIDERS.items():
            chosen = child.environment.get(name) or config.get(name) or DEFAULTS.get(name)
            proxied = through(provider, chosen) if chosen else None
            if proxied:
                changes[name] = proxied
            if is_own and name == OPENAI_HOST and chosen and not child.environment.get(BASE_URL):
                changes[BASE_URL] = None
        return changes


def _config(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of the configuration that have one value."""
    root = environment.get("GOOSE_PATH_ROOT")
    home = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"
    folder = Path(root) / "config" if root else Path(home) / "goose"
    try:
        return dict(_ENTRY.findall((folder / "config.yaml").read_text("utf-8", "replace")))
    except OSError:
        return {}


SETUP = GooseSetup()
