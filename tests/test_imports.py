"""Who may import whom: the folders are the data flow, and this keeps them so."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "agent_logger"
BASE = {"records", "session", "errors"}
PURE = BASE | {"prices", "redact", "credential_names"}
WIRE = BASE | {"prices"}

MAY_IMPORT = {
    **dict.fromkeys(BASE, BASE),
    "prices": BASE,
    "credential_names": set(),
    "redact": BASE | {"credential_names"},
    "config": BASE,
    "wire": WIRE,
    "tracking": WIRE | {"wire"},
    "formats": WIRE | {"wire"},
    "store": PURE | {"wire", "formats"},
    "capture": PURE | {"wire", "tracking", "formats", "store", "config"},
    "catalog": PURE | {"store", "formats", "wire", "config"},
    "export": PURE | {"catalog", "store", "formats"},
    **dict.fromkeys(
        ["web", "demo", "sdk", "testing", "context", "adapters", "storage"], None
    ),  # anything but cli
}
READ_THE_ENVIRONMENT = {"config.py", "store/agent_folders.py"}


MODULES = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))]


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((SOURCE / name).read_text())


def rooms_imported(name: str) -> Iterator[str]:
    """The rooms of the house that a module imports from; `""` for the package itself."""
    folder = ["agent_logger", *name.split("/")[:-1]]
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = folder[: len(folder) + 1 - node.level] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            targets = [f"{base}.{alias.name}" for alias in node.names] if base == "agent_logger" else [base]
        else:
            continue
        yield from (target.split(".")[1] for target in targets if target.startswith("agent_logger."))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_what_its_room_may(name: str) -> None:
    room = name.split("/")[0].removesuffix(".py")
    imported = {it for it in rooms_imported(name) if it != "__version__"} - {room}
    if room in ("__init__", "__main__", "cli"):
        return
    assert room in MAY_IMPORT, (
        f"{room} is new: say in MAY_IMPORT and in docs/ARCHITECTURE.md what it may import"
    )
    allowed = MAY_IMPORT[room]
    assert imported <= allowed if allowed is not None else "cli" not in imported, sorted(imported)


@pytest.mark.parametrize("name", MODULES)
def test_the_environment_is_read_in_two_places_alone(name: str) -> None:
    reads = [
        node.lineno
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv")
    ]
    assert not reads or name in READ_THE_ENVIRONMENT, f"{name} reads the environment in lines {reads}"
