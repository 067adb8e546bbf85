"""The programs and packages that some tests need and that a machine may lack.

`python -m tests.components` prints a line for each that is missing, with the reason; `./dev test` shows them.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tests.clients import ROOT, find_ccusage, find_claude, find_codex, find_gemini, find_opencode


@dataclass(frozen=True)
class Component:
    installer: str  # the program by which `./dev` gets it
    find: Callable[[], object]


@dataclass(frozen=True)
class Missing:
    reason: str
    obtainable: bool  # the installer is here and could have installed it


def _package(name: str) -> object:
    return importlib.util.find_spec(name)


def _program(name: str) -> object:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


COMPONENTS: Mapping[str, Component] = {
    "anthropic": Component("pip", partial(_package, "anthropic")),
    "axe": Component("npm", (ROOT / ".components/node_modules/axe-core/axe.min.js").exists),
    "bash": Component("apt-get", partial(_program, "bash")),
    "ccusage": Component("npm", find_ccusage),
    "chromium": Component("apt-get", partial(_program, "chromium")),
    "claude": Component("pip", find_claude),
    "claude_agent_sdk": Component("pip", partial(_package, "claude_agent_sdk")),
    "codex": Component("npm", find_codex),
    "fish": Component("apt-get", partial(_program, "fish")),
    "gemini": Component("npm", find_gemini),
    "jsonschema": Component("pip", partial(_package, "jsonschema")),
    "nginx": Component("apt-get", partial(_program, "nginx")),
    "openai": Component("pip", partial(_package, "openai")),
    "opencode": Component("npm", find_opencode),
    "schemathesis": Component("pip", (ROOT / ".venv/bin/schemathesis").exists),
    "strace": Component("apt-get", partial(_program, "strace")),
    "zsh": Component("apt-get", partial(_program, "zsh")),
}

# The command that installs what the installer provides.
COMMANDS = {"pip": "./dev setup", "npm": "./dev setup", "apt-get": "./dev setup --full"}


def _obstacle(installer: str) -> str | None:
    """Return why this machine cannot use the installer."""
    match installer:
        case "npm":
            absent = [name for name in ("npm", "node") if not shutil.which(name)]
            return f"{' and '.join(absent)} not on the PATH" if absent else None
        case "apt-get" if not shutil.which("apt-get"):
            return "not on the PATH, and there is no apt-get to install it"
        case "apt-get" if os.geteuid() != 0:
            return "not on the PATH, and only root can install it with apt-get"
    return None


def look_for(name: str) -> Missing | None:
    """Return None if the component is here, otherwise why it is not."""
    component = COMPONENTS[name]
    if component.find():
        return None
    if obstacle := _obstacle(component.installer):
        return Missing(obstacle, obtainable=False)
    command = COMMANDS[component.installer]
    return Missing(f"not installed; {command} installs it with {component.installer}", obtainable=True)


def main() -> None:
    for name in COMPONENTS:
        if missing := look_for(name):
            print(f"{name}: {missing.reason}")


if __name__ == "__main__":
    main()
