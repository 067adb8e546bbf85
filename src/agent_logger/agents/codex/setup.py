"""How Codex is sent through the proxy.

It takes base URLs from its configuration alone, and `-c` in front of all other arguments wins over its files (0.166).
It is given one for OpenAI only if it has an API key: with a ChatGPT login its requests go elsewhere, and a base URL
would break them.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_logger.agents.codex import AGENT
from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through, with_first
from agent_logger.agents.folders import agent_folders

OPENAI = "openai_base_url"
DEFAULT = "https://api.openai.com/v1"
KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
CONFIG_OPTIONS = ("-c", "--config")
_BASE_URL = re.compile(r'(openai_base_url|model_providers\.[^=\s]+\.base_url)\s*=\s*"?([^"]*)"?', re.DOTALL)


class CodexSetup(ChildSetup):
    def arguments(self, child: ChildCommand, through: Through) -> tuple[str, ...]:
        urls = dict(_configured(child.folder))
        if not self.ignores_base_url(child):
            urls.setdefault(OPENAI, DEFAULT)
        else:
            urls.pop(OPENAI, None)
        changes = {key: proxied for key, url in urls.items() if (proxied := through("openai", url))}
        words = [word for key, url in changes.items() for word in ("-c", f"{key}={json.dumps(url)}")]
        return with_first(tuple(_redirected(child.argv, through)), *words)

    def ignores_base_url(self, child: ChildCommand) -> bool:
        if child.environment.get("CODEX_API_KEY"):
            return False
        login = _login()
        if login is not None:
            return not login.get("OPENAI_API_KEY") or login.get("auth_mode") == "chatgpt"
        return not any(child.environment.get(name) for name in KEYS)


def _configured(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the base URLs in the configuration files, the stronger ones last."""
    for file in (*(home / "config.toml" for home in agent_folders(AGENT.location)), folder / ".codex" / "config.toml"):
        settings = _toml(file)
        if isinstance(url := settings.get(OPENAI), str):
            yield OPENAI, url
        providers = settings.get("model_providers")
        for name, provider in (providers if isinstance(providers, dict) else {}).items():
            if isinstance(provider, dict) and isinstance(url := provider.get("base_url"), str):
                yield f"model_providers.{_key(name)}.base_url", url


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _redirected(argv: tuple[str, ...], through: Through) -> Iterator[str]:
    """Yield the arguments; base URLs that the user gives with `-c` lead through the proxy."""
    is_value = False
    for word in argv:
        option, joined, value = word.partition("=")
        if is_value:
            yield _redirected_setting(word, through)
        elif option == "--config" and joined:
            yield f"{option}={_redirected_setting(value, through)}"
        else:
            yield word
        is_value = word in CONFIG_OPTIONS and not is_value


def _redirected_setting(setting: str, through: Through) -> str:
    match = _BASE_URL.fullmatch(setting)
    url = through("openai", match[2]) if match else None
    return f"{match[1]}={json.dumps(url)}" if match and url else setting


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}


def _login() -> dict[str, Any] | None:
    """Return the stored login; `None` if there is none."""
    for folder in agent_folders(AGENT.location):
        try:
            login = json.loads((folder / "auth.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        return login if isinstance(login, dict) else None
    return None


SETUP = CodexSetup()
