"""How opencode is sent through the proxy: by configuration in a variable, which is merged over that of its files.

A base URL in a file is followed. If a file has one and cannot be read, nothing is changed. `ConfigSetup` does the same
for programs that continue opencode's code.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_logger.agents.contracts import ChildCommand, ChildSetup, Through

DEFAULTS = {"anthropic": "https://api.anthropic.com/v1"}
ANTHROPIC_PACKAGE = "anthropic"
VARIABLE = "OPENCODE_CONFIG_CONTENT"


class ConfigSetup(ChildSetup):
    """The set-up of one program. `name`: of its folder and files; `variables_begin`: its variables begin so."""

    def __init__(self, name: str, variables_begin: str) -> None:
        self._name, self._file_names = name, (f"{name}.json", f"{name}.jsonc")
        self._content_variable = f"{variables_begin}_CONFIG_CONTENT"
        self._file_variable = f"{variables_begin}_CONFIG"

    def variables(self, child: ChildCommand, through: Through, *, is_own: bool) -> Mapping[str, str | None]:
        own = _object(child.environment.get(self._content_variable) or "{}")
        files = [_config(path) for path in self._files(child)]
        if own is None or None in files:
            return {"ANTHROPIC_BASE_URL": None} if is_own else {}  # it needs another path than the SDKs
        configs = [*filter(None, files), own]
        urls = {**_defaults(child.environment), **{name: url for config in configs for name, url in _base_urls(config)}}
        packages = {name: package for config in configs for name, package in _packages(config)}
        changes = {
            name: proxied for name, url in urls.items() if (proxied := through(_api(packages.get(name, name)), url))
        }
        return {self._content_variable: json.dumps(_merged(own, changes), separators=(",", ":"))} if changes else {}

    def _files(self, child: ChildCommand) -> Iterator[Path]:
        """Yield the configuration files, the weakest first."""
        variables, names = child.environment, self._file_names
        home = variables.get("XDG_CONFIG_HOME") or f"{variables.get('HOME', '')}/.config"
        yield from (Path(home) / self._name / name for name in ("config.json", *names))
        if named := variables.get(self._file_variable):
            yield Path(named)
        yield from (folder / name for folder in reversed([child.folder, *child.folder.parents]) for name in names)


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """The providers that are sent through the proxy although no file names them. opencode does not read
    `ANTHROPIC_BASE_URL`, but a person who has set it wants that address."""
    chosen = environment.get("ANTHROPIC_BASE_URL")
    return {} if chosen and "/anthropic/api.anthropic.com" not in chosen else dict(DEFAULTS)


def _api(package: str) -> str:
    return "anthropic" if ANTHROPIC_PACKAGE in package else "gemini" if "google" in package else "openai"


def _config(path: Path) -> dict[str, Any] | None:
    """Read a file; `None` if it may have a base URL and cannot be understood."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return {}
    config = _object(text)
    return None if config is None and "baseURL" in text else config or {}


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _providers(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    providers = config.get("provider")
    for name, provider in (providers if isinstance(providers, dict) else {}).items():
        if isinstance(provider, dict):
            yield name, provider


def _base_urls(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, provider in _providers(config):
        options = provider.get("options")
        url = options.get("baseURL") if isinstance(options, dict) else None
        if isinstance(url, str):
            yield name, url


def _packages(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, provider in _providers(config):
        if isinstance(package := provider.get("npm"), str):
            yield name, package


def _merged(config: Mapping[str, Any], urls: Mapping[str, str]) -> dict[str, Any]:
    providers = dict(_providers(config))
    for name, url in urls.items():
        provider = providers.get(name, {})
        options = provider.get("options")
        providers[name] = {**provider, "options": {**(options if isinstance(options, dict) else {}), "baseURL": url}}
    return {**config, "provider": providers}


SETUP = ConfigSetup("opencode", "OPENCODE")
