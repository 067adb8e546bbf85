"""Who may import whom: the folders are the data flow, and this keeps them so."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "agent_logger"
SYSTEM = {"errors", "clock", "platform"}
PURE = {"errors", "model", "protocols", "providers", "messages"}
FILES = PURE | SYSTEM | {"config", "files", "home"}

MAY_IMPORT = {
    "errors": set(),
    "clock": set(),
    "platform": set(),
    "config": {"errors"},
    "model": {"errors"},
    "protocols": {"errors"},
    "providers": {"errors", "model", "protocols"},
    "messages": {"errors", "model", "protocols", "providers"},
    "files": SYSTEM | {"protocols"},
    "home": SYSTEM | {"config", "model", "files"},
    "agents": PURE | SYSTEM | {"config", "files"},
    "journal": FILES,
    "logs": FILES | {"agents", "journal"},
    "proxy": FILES | {"agents", "journal"},
    "archive": FILES | {"agents", "journal", "logs"},
    "transcripts": FILES | {"agents", "journal", "logs"},
    "recording": FILES | {"agents", "journal", "logs", "proxy", "archive"},
    "hooks": FILES | {"agents", "journal", "logs", "archive", "recording"},
    "catalog": FILES | {"agents", "journal", "logs", "archive", "hooks"},
    "service": {"errors", "config"},
    "statusline": FILES | {"agents", "catalog", "views"},
    "views": PURE | {"config", "agents", "logs", "catalog"},
    "exports": FILES | {"agents", "journal", "logs", "archive", "hooks", "catalog", "views"},
    "imports": FILES | {"agents", "journal", "logs", "archive", "hooks", "catalog"},
    "push": FILES | {"agents", "journal", "logs", "archive", "hooks", "catalog", "views"},
    "hub": None,
    **dict.fromkeys(
        ["demo", "web", "hub", "adapters", "claude_code", "records", "sdk", "storage", "testing"], None
    ),  # anything but cli
}
READ_THE_ENVIRONMENT = {"config.py", "agents/folders.py"}


MODULES = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))]


def dotted(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


NAMES = set(map(dotted, MODULES))


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((SOURCE / name).read_text())


def room_of(module: str) -> str:
    return module.split(".")[0]


def rooms_imported(name: str) -> Iterator[str]:
    """The rooms of the house that a module imports from."""
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            targets = [_imported(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        ours = (target.removeprefix("agent_logger.") for target in targets if target.startswith("agent_logger."))
        yield from map(room_of, ours)


def _imported(package: str, name: str) -> str:
    """A module of that name in the package, or the package itself."""
    module = f"{package}.{name}"
    return module if package == "agent_logger" or module.removeprefix("agent_logger.") in NAMES else package


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_allowed_packages(name: str) -> None:
    room = room_of(dotted(name))
    imported = set(rooms_imported(name)) - {room, "__version__"}
    if room in ("__init__", "__main__", "cli", "agent_logger") or not imported:
        return
    assert room in MAY_IMPORT, f"{room} is new: add it to MAY_IMPORT and to the rooms of docs/ARCHITECTURE.md"
    allowed = MAY_IMPORT[room]
    assert imported <= allowed if allowed is not None else "cli" not in imported, sorted(imported)


@pytest.mark.parametrize("name", MODULES)
def test_the_environment_is_read_only_in_the_allowed_modules(name: str) -> None:
    reads = [
        node.lineno
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv")
    ]
    assert not reads or name in READ_THE_ENVIRONMENT, f"{name} reads the environment in lines {reads}"
