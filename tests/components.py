"""The programs and packages that some tests need and that a machine may lack.

`python -m tests.components` prints a line for each that is missing, with the reason; `./dev test` shows them.
"""

import importlib.util
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tests.clients import (
    ROOT,
    find_ccusage,
    find_claude,
    find_cline,
    find_cn,
    find_codex,
    find_copilot,
    find_gemini,
    find_goose,
    find_grok,
    find_harbor,
    find_kilo,
    find_kimi,
    find_opencode,
    find_pi,
)
from tests.postgres import find_postgresql
from tests.seaweedfs import find_weed


@dataclass(frozen=True)
class Component:
    installer: str  # the program by which `./dev` gets it
    find: Callable[[], object]
    machine: str | None = None  # the only kind that there is a package for


@dataclass(frozen=True)
class Missing:
    reason: str
    obtainable: bool  # the installer is here and could have installed it


LINUX = "Linux x86_64"


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
    "cargo": Component("apt-get", partial(_program, "cargo")),
    "claude_agent_sdk": Component("pip", partial(_package, "claude_agent_sdk")),
    "cline": Component("npm", find_cline),
    "cn": Component("npm", find_cn),
    "codex": Component("npm", find_codex),
    "curl": Component("apt-get", partial(_program, "curl")),
    "copilot": Component("npm", find_copilot),
    "fish": Component("apt-get", partial(_program, "fish")),
    "gemini": Component("npm", find_gemini),
    "git": Component("apt-get", partial(_program, "git")),
    "goose": Component("npm", find_goose, LINUX),
    "grok": Component("npm", find_grok),
    "kilo": Component("npm", find_kilo, LINUX),
    "kimi": Component("npm", find_kimi),
    "harbor": Component("venv", find_harbor),
    "httpx": Component("pip", partial(_package, "httpx")),
    "jsonschema": Component("pip", partial(_package, "jsonschema")),
    "nginx": Component("apt-get", partial(_program, "nginx")),
    "node": Component("npm", partial(_program, "node")),
    "npm": Component("npm", partial(_program, "npm")),
    "openai": Component("pip", partial(_package, "openai")),
    "opencode": Component("npm", find_opencode),
    "pi": Component("npm", find_pi),
    "postgresql": Component("apt-get", find_postgresql),
    "requests": Component("pip", partial(_package, "requests")),
    "schemathesis": Component("pip", (ROOT / ".venv/bin/schemathesis").exists),
    "seaweedfs": Component("pip", find_weed),
    "strace": Component("apt-get", partial(_program, "strace")),
    "systemd": Component("apt-get", partial(_program, "systemd-analyze")),
    "uv": Component("pip", (ROOT / ".venv/bin/uv").exists),
    "zsh": Component("apt-get", partial(_program, "zsh")),
}

# The command that installs what the installer provides.
COMMANDS = {"pip": "./dev setup", "npm": "./dev setup", "apt-get": "./dev setup --full"}


def _obstacle(installer: str) -> str | None:
    """Return why this machine cannot use the installer."""
    match installer:
        case "venv":
            return (
                "not on the PATH; it needs Python 3.12: python3.12 -m venv .components/harbor, then pip install harbor"
            )
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
    machine = f"{platform.system()} {platform.machine()}"
    if component.machine not in (None, machine):
        return Missing(f"made for {component.machine}, this is {machine}", obtainable=False)
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
