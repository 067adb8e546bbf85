"""The names that others import: doors that stay, and old names that warn for one release."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest

import agent_logger
from agent_logger._former_names import REMOVED_IN, moved_modules

DOORS = ("adapters", "claude_code", "records", "sdk", "storage", "testing")
MODULES = [
    "agent_logger",
    "agent_logger.errors",
    *(f"agent_logger.{name}" for name in DOORS),
]  # all public ones
RENAMED = {
    "agent_logger.Place": "agent_logger.SessionLocation",
    "agent_logger.records.Exchange": "agent_logger.records.ExchangeRecord",
}
MOVED = {former: name.removeprefix("agent_logger.") for former, name in moved_modules().items()}
MOVED_DOORS = {"testing.adapter", "testing.storage"}  # `testing` is no package any more


def public_names(module: str) -> list[str]:
    names = vars(import_module(module))
    public: list[str] = names.get("__all__") or [name for name in names if not name.startswith("_")]
    return public


@pytest.mark.parametrize("name", DOORS)
def test_a_public_door_only_exports_names_of_other_modules(name: str) -> None:
    door = import_module(f"agent_logger.{name}")
    assert public_names(door.__name__)
    own = {name for name in public_names(door.__name__) if getattr(door, name).__class__ is ModuleType}
    assert own == set(), "modules that it needs itself"
    imported = [
        node for node in ast.walk(ast.parse(Path(door.__file__ or "").read_text())) if isinstance(node, ast.ImportFrom)
    ]
    exported = {alias.name for node in imported for alias in node.names if alias.name == alias.asname}
    assert exported == set(public_names(door.__name__)), "type checkers see `A as A` as exported"


def test_every_public_name_of_the_package_can_be_imported() -> None:
    for name in public_names("agent_logger"):
        assert getattr(agent_logger, name).__name__ == name
        assert name in dir(agent_logger)


@pytest.mark.parametrize("module", ["agent_logger.claude_code", "agent_logger.records"])
def test_types_in_fields_of_public_records_are_public(module: str) -> None:
    public = {
        getattr(import_module(module), name)
        for name in public_names(module)
        if name != "KINDS" and name != "LIFTS" and name != "RECORDS"
    }
    records = [it for it in public if isinstance(it, type) and issubclass(it, msgspec.Struct)]
    fields = {part for record in records for it in msgspec.structs.fields(record) for part in parts_of(it.type)}
    structs = {it for it in fields if isinstance(it, type) and issubclass(it, msgspec.Struct)}
    assert len(records) > 20
    assert structs <= public


def parts_of(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind):
        yield from parts_of(part)


@pytest.mark.parametrize("former", RENAMED)
def test_a_former_name_warns_with_its_new_name_and_its_last_version(former: str) -> None:
    module, _, name = former.rpartition(".")
    with pytest.warns(DeprecationWarning) as warned:
        value = getattr(import_module(module), name)
    new_module, _, new_name = RENAMED[former].rpartition(".")
    assert value is getattr(import_module(new_module), new_name)
    text = f"{former} is called {RENAMED[former]} now; the former name will be removed in agent-logger {REMOVED_IN}"
    assert [str(it.message) for it in warned] == [text]
    assert warned[0].filename == __file__
    assert name not in public_names(module)


def test_former_names_end_with_the_version_that_their_warning_states() -> None:
    """Remove them, and their tables, when this fails."""
    version, end = (tuple(map(int, it.split("."))) for it in (agent_logger.__version__, REMOVED_IN))
    assert version < end


@pytest.mark.parametrize("old", sorted(set(MOVED) - MOVED_DOORS))
def test_an_old_module_name_imports_the_new_module_and_warns(old: str) -> None:
    name = f"agent_logger.{old}"
    sys.modules.pop(name, None)
    with pytest.warns(
        DeprecationWarning, match=f"now; the former name will be removed in agent-logger {REMOVED_IN}"
    ) as warned:
        module = import_module(name)
    assert module is import_module(f"agent_logger.{MOVED[old]}")
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == f"agent_logger.{MOVED[old]}"
    assert sys.modules.pop(name) is module
    assert len(warned) == 1


def test_the_warning_names_the_line_that_imports_the_old_name() -> None:
    program = "from agent_logger.session import Session; import agent_logger; print(Session is agent_logger.Session)"
    line = [sys.executable, "-W", "always::DeprecationWarning", "-c", program]
    ran = subprocess.run(line, check=True, capture_output=True, text=True)
    assert ran.stdout == "True\n"
    told = "<string>:1: DeprecationWarning: agent_logger.session is called agent_logger.model.session now;"
    assert ran.stderr.startswith(told)


def test_an_unknown_module_raises_module_not_found_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"agent_logger\.nowhere"):
        import_module("agent_logger.nowhere")
    with pytest.raises(AttributeError):
        agent_logger.nowhere  # type: ignore[attr-defined]  # noqa: B018
