"""The names that others import: doors that stay, and old names that warn for one release."""

import subprocess
import sys
from importlib import import_module

import pytest

import agent_logger
from agent_logger._former_names import MOVED

DOORS = ("adapters", "claude_code", "records", "sdk", "storage", "testing")
MOVED_DOORS = {"testing.adapter", "testing.storage"}  # `testing` is no package any more


@pytest.mark.parametrize("name", DOORS)
def test_a_public_door_has_what_lies_behind_it(name: str) -> None:
    door = import_module(f"agent_logger.{name}")
    assert door.__all__
    defined = [it for it in vars(door).values() if getattr(it, "__module__", None) == door.__name__]
    assert defined == []
    assert set(door.__all__) <= set(vars(door))


@pytest.mark.parametrize("old", sorted(set(MOVED) - MOVED_DOORS))
def test_an_old_name_is_the_module_and_warns(old: str) -> None:
    name = f"agent_logger.{old}"
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match="has moved to") as warned:
        module = import_module(name)
    assert module is import_module(f"agent_logger.{MOVED[old]}")
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == f"agent_logger.{MOVED[old]}"
    assert sys.modules.pop(name) is module
    assert len(warned) == 1


def test_a_warning_names_the_line_that_imports_the_old_name() -> None:
    program = "from agent_logger.session import Session; import agent_logger; print(Session is agent_logger.Session)"
    line = [sys.executable, "-W", "always::DeprecationWarning", "-c", program]
    ran = subprocess.run(line, check=True, capture_output=True, text=True)
    assert ran.stdout == "True\n"
    told = "<string>:1: DeprecationWarning: agent_logger.session has moved to agent_logger.model.session;"
    assert ran.stderr.startswith(told)


def test_a_module_that_never_was_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"agent_logger\.nowhere"):
        import_module("agent_logger.nowhere")
    with pytest.raises(AttributeError):
        agent_logger.nowhere  # noqa: B018
