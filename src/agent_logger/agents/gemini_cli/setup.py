"""How Gemini CLI is sent through the proxy.

With a base URL and without a choice of API keys in its settings it stops with "Invalid auth method selected." (0.61.0),
and with a Google login it ignores base URLs. So it is given one only if it is set to use a key.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through

VARIABLE = "GOOGLE_GEMINI_BASE_URL"
FOLDER = ".gemini"
WITH_KEY = "gemini-api-key"


class GeminiSetup(ChildSetup):
    def settings_environment(self, child: ChildCommand) -> Mapping[str, str]:
        return from_env_file(child, FOLDER, VARIABLE)

    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        return {VARIABLE: None} if is_own and self.ignores_base_url(child) else {}

    def ignores_base_url(self, child: ChildCommand) -> bool:
        return WITH_KEY not in map(_auth_type, _settings(child))


def _settings(child: ChildCommand) -> Iterator[Any]:
    home = child.environment.get("GEMINI_CLI_HOME") or child.environment.get("HOME", "")
    for folder in (child.folder, Path(home)):
        try:
            yield json.loads((folder / FOLDER / "settings.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            continue


def _auth_type(settings: Any) -> str | None:
    """Return the chosen kind of login, under its name of today or that of older versions."""
    for keys in (("security", "auth", "selectedType"), ("selectedAuthType",)):
        value = settings
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return None


def from_env_file(child: ChildCommand, folder: str, variable: str) -> dict[str, str]:
    """Return the variable as the first `.env` file on the way up has it, then those of the home. The environment itself
    is stronger."""
    if child.environment.get(variable):
        return {}
    home = Path(child.environment.get("HOME", ""))
    for place in (child.folder, *child.folder.parents, home):
        for path in (place / folder / ".env", place / ".env"):
            try:
                text = path.read_text()
            except (OSError, UnicodeDecodeError):
                continue
            match = re.search(rf"^\s*(?:export\s+)?{variable}\s*=\s*['\"]?([^'\"\s#]+)", text, re.MULTILINE)
            return {variable: match[1]} if match else {}
    return {}


SETUP = GeminiSetup()
