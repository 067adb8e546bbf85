"""How Claude Code is sent through the proxy.

It reads its base URL from the environment, but the `env` of its settings files wins over that. `--settings` wins over
the files, except for managed settings. Measured with 1.0.3 to 2.1.325: of two `--settings` one alone counts, so that of
the user is merged into ours; before 1.0.65 there is no such option.

Where a base URL cannot be replaced, the forward door is used. 1.0.3 asks its proxy for a tunnel to any base URL, also
to one that is plain HTTP or on this machine.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agent_logger.agents.claude_code.context import read_context
from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door, Through, with_first

BASE_URL = "ANTHROPIC_BASE_URL"
OPTION = "--settings"
HAS_OPTION_SINCE = (1, 0, 65)
VERSION_SECONDS = 10.0
# Replaced by the settings, these decide how the agent reaches the proxy, and the proxy the upstream.
NETWORK = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS")
MANAGED = {
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
    "linux": Path("/etc/claude-code/managed-settings.json"),
}


class ClaudeCodeSetup(ChildSetup):
    def settings_environment(self, child: ChildCommand) -> Mapping[str, str]:
        return {**_from_files(child.folder), **_environment(_given(child.argv)[0]), **_managed()}

    def arguments(self, child: ChildCommand, through: Through) -> tuple[str, ...]:
        replaced = self.settings_environment(child)
        if BASE_URL not in replaced or BASE_URL in _managed():
            return child.argv
        url = through("anthropic", replaced[BASE_URL])
        if url is None:
            return child.argv
        no_proxy = {"NO_PROXY": child.environment.get("NO_PROXY", "")} if _is_proxied(replaced) else {}
        return _with_environment(child, {BASE_URL: url, **no_proxy})

    def door(self, child: ChildCommand) -> Door:
        if BASE_URL not in self.settings_environment(child):
            return "base-url"
        return "base-url" if BASE_URL not in _managed() and _takes_settings(child) else "forward"

    def forward_arguments(self, child: ChildCommand, variables: Mapping[str, str]) -> tuple[str, ...]:
        replaced = self.settings_environment(child)
        changes = {name: value for name, value in variables.items() if name in replaced}
        return _with_environment(child, changes) if changes else child.argv


def _with_environment(child: ChildCommand, changes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command line with which these variables win over those of the settings files."""
    settings, rest = _given(child.argv)
    if settings is None or not _takes_settings(child):
        return child.argv
    merged = {**settings, "env": {**_environment(settings), **changes}}
    return with_first(rest, OPTION, json.dumps(merged, separators=(",", ":")))


def _is_proxied(replaced: Mapping[str, str]) -> bool:
    return any(name in replaced for name in NETWORK)


def _from_files(folder: Path) -> dict[str, str]:
    variables: dict[str, str] = {}
    for file in read_context(folder, lambda _: "").settings_files:
        if file.applies and file.settings:
            variables |= _environment(file.settings.rest)
    return variables


def _managed() -> dict[str, str]:
    path = MANAGED.get(sys.platform)
    return _environment(_object_in(path)) if path else {}


def _environment(settings: Mapping[str, Any] | None) -> dict[str, str]:
    variables = settings.get("env") if settings else None
    return {name: str(value) for name, value in variables.items()} if isinstance(variables, dict) else {}


def _given(argv: tuple[str, ...]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the settings that the command line gives, and the command line without them; `None` for settings that
    cannot be read."""
    given: dict[str, Any] | None = {}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        option, joined, value = word.partition("=")
        if option == OPTION:
            given = _settings_in(value if joined else next(words, ""))
        else:
            rest.append(word)
    return given, tuple(rest)


def _settings_in(text: str) -> dict[str, Any] | None:
    """Read the value of the option: JSON, or the path of a file."""
    return _object(text) if text.lstrip().startswith("{") else _object_in(Path(text))


def _object_in(path: Path) -> dict[str, Any] | None:
    try:
        return _object(path.read_text())
    except (OSError, UnicodeDecodeError):
        return None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _takes_settings(child: ChildCommand) -> bool:
    """Whether the command takes settings as an argument: its version has the option, which otherwise would end it, and
    what the user gives can be merged with ours."""
    name = child.argv[0]
    path = child.folder / name if os.path.dirname(name) else Path(shutil.which(name) or name)
    try:
        is_new = _version(str(path), os.stat(path).st_mtime_ns) >= HAS_OPTION_SINCE
    except OSError:
        return False
    return is_new and _given(child.argv)[0] is not None


@cache
def _version(executable: str, _modified: int) -> tuple[int, ...]:
    """Return the version of a program; nothing if it does not say."""
    try:
        command = [executable, "--version"]
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ()
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, match.groups())) if match else ()


SETUP = ClaudeCodeSetup()
