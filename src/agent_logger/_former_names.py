"""Former names, which work until `REMOVED_IN` and warn: the table of modules that moved, and the warning."""

import warnings
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

REMOVED_IN = "0.2.0"  # the first version without former names


def warn_of(former: str, name: str) -> None:
    """Warn the caller of this function's caller that a name is another one now."""
    text = f"{former} is called {name} now; the former name will be removed in agent-logger {REMOVED_IN}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)


class _Alias:
    """Loads a module that has another name now: both names mean the same module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        warn_of(spec.name, self._name)
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put that of the old name there


def spec_of(name: str) -> ModuleSpec | None:
    short, moved = name.removeprefix("agent_logger."), moved_modules()
    if short in moved:
        return ModuleSpec(name, _Alias(moved[short]))  # type: ignore[arg-type]
    if any(module.startswith(f"{short}.") for module in moved):
        # A package that no longer exists: its modules are found one by one.
        return ModuleSpec(name, None, is_package=True)
    return None


@cache
def moved_modules() -> dict[str, str]:
    """Return the new name of each module by its former one, which is without the package's own."""
    table = Path(__file__).with_name("_former_modules.txt").read_text("utf-8")
    lines = map(str.split, table.splitlines())
    return {former: f"agent_logger.{name}" for former, name in lines}
