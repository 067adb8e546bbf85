"""The public names: all are explained and typed."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from agent_logger._former_names import REMOVED_IN
from tests.test_doors import MODULES, RENAMED, public_names

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/python.md").read_text()


SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
NAMES = [(module, name) for module in MODULES for name in public_names(module)]


def names_in_column(column: int, text: str) -> list[str]:
    """The names in one column of all tables of a text."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row[column])]


def documented_names(module: str) -> list[str]:
    if f"`{module}`" in SECTIONS:
        return names_in_column(0, SECTIONS[f"`{module}`"])
    others = SECTIONS["Other modules"]
    if module != "agent_logger":
        return names_in_column(1, "\n".join(line for line in others.splitlines() if f"`{module}`" in line))
    return [
        name for title in ("Ask", "Record", "Keep", "Lines of files") for name in names_in_column(0, SECTIONS[title])
    ]


@pytest.mark.parametrize("module", MODULES)
def test_the_page_names_exactly_what_is_public(module: str) -> None:
    assert sorted(documented_names(module)) == sorted(public_names(module))


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda it: it)
def test_every_public_class_and_function_has_a_docstring(module: str, name: str) -> None:
    public = getattr(import_module(module), name)
    if inspect.isfunction(public) or (inspect.isclass(public) and public.__module__ != "builtins"):
        text = inspect.cleandoc(public.__doc__ or "")
        assert text and not text.startswith(f"{name}("), "a docstring of its own"


def explained(public: object) -> Iterator[tuple[str, str]]:
    """A public class or function with its docstring, and the public methods and properties of a class with theirs."""
    yield "", inspect.getdoc(public) or ""
    for cls in public.__mro__ if inspect.isclass(public) else ():
        for name, member in vars(cls).items() if cls.__module__.startswith("agent_logger") else ():
            function = (
                getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
            )
            if not name.startswith("_") and inspect.isfunction(function):
                yield name, inspect.getdoc(function) or ""


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda it: it)
def test_the_help_of_every_public_name_can_be_read_alone(module: str, name: str) -> None:
    public = getattr(import_module(module), name)
    if not (inspect.isclass(public) or inspect.isfunction(public)) or public.__module__ == "builtins":
        return
    for member, text in explained(public):
        first = text.partition("\n\n")[0]
        assert len(first.split()) >= 3, f"{member}: explain it in a sentence"
        assert first[0].isupper() or first[0] == "`", f"{member}: begin with a capital letter"
        assert text.rstrip()[-1] in ".:`)", f"{member}: end the last sentence"
        assert not re.search(r"\b(?:Initialize self|TODO|FIXME|see above|ditto)\b", text), member


def test_the_page_lists_every_former_name_with_its_new_one_and_its_end() -> None:
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \| (\S+) \|$", SECTIONS["What is public"], re.MULTILINE)
    assert [(former, new) for former, new, _ in rows] == sorted(RENAMED.items())
    assert {version for *_, version in rows} == {REMOVED_IN}


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda it: it)
def test_every_public_function_is_typed(module: str, name: str) -> None:
    public = getattr(import_module(module), name)
    for function in [public, *vars(public).values()] if inspect.isclass(public) else [public]:
        if inspect.isfunction(function) and not function.__name__.startswith("_"):
            signature = inspect.signature(function)
            given = [it for it in signature.parameters.values() if it.name not in ("self", "cls")]
            assert all(it.annotation is not it.empty for it in given), function
            assert signature.return_annotation is not signature.empty, function
