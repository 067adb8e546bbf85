"""Run once, after all moves: public doors, old names that warn, and what still speaks of the map.

python tools/after_moves.py
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import move

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "agent_logger"
DOORS = {
    "adapters": (
        "A kit for agents on other providers: their sessions as Claude Code would write them.",
        {"agent_logger.transcripts.adapters": ["ModelAnswer", "TranscriptWriter", "answer_of", "usage_of"]},
    ),
    "claude_code": (
        "The lines of Claude Code's session files, as types.",
        {
            "agent_logger.agents.claude_code.transcript.records": [
                *("AssistantRecord", "ResultRecord", "SummaryRecord", "SystemRecord", "TokenUsage"),
                *("ToolResultRecord", "ToolUseRecord", "UserRecord"),
            ]
        },
    ),
    "records": ("The records of our own logs: `docs/FORMATS.md`.", {"agent_logger.model.records": []}),
    "sdk": (
        "The Claude Agent SDK's `SessionStore` on our storage.",
        {"agent_logger.transcripts.sdk_store": ["AgentLoggerSessionStore"]},
    ),
    "storage": (
        "Storage of sessions for agents that others write.",
        {
            "agent_logger.transcripts.storage": [
                *("FileStorage", "InMemoryStorage", "Message", "SessionStorage", "StoredSession"),
            ]
        },
    ),
    "testing": (
        "Suites for those who write a storage or an adapter of their own; they need no test runner.",
        {"agent_logger.transcripts.testing": ["run_adapter_conformance", "run_storage_conformance"]},
    ),
}
FINDER = '''

class _FormerNames:
    """Finds modules by the names that they had before they moved."""

    @staticmethod
    def find_spec(name: str, *_: object) -> "ModuleSpec | None":
        if not name.startswith("agent_logger."):
            return None
        from agent_logger._former_names import spec_of

        return spec_of(name)


sys.meta_path.append(_FormerNames)
'''
FORMER = '''"""Modules by the names that they had before they moved; an import by such a name warns."""

import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Alias:
    """Loads a module that has another name now: both names mean the same module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        warnings.warn(
            f"{spec.name} has moved to {self._name}; the old name will be removed in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put that of the old name there


def spec_of(name: str) -> ModuleSpec | None:
    short = name.removeprefix("agent_logger.")
    if short in MOVED:
        return ModuleSpec(name, _Alias(f"agent_logger.{MOVED[short]}"))  # type: ignore[arg-type]
    if any(module.startswith(f"{short}.") for module in MOVED):
        return ModuleSpec(name, None, is_package=True)  # a package that is gone: its modules are found one by one
    return None


MOVED = {
'''
CHANGE = """\
- Modules lie in one folder per subject. The public imports stay as they are; an older name, such as
  `agent_logger.session`, still works for one release, with a `DeprecationWarning`.
"""
TEST = '''"""The names that others import: doors that stay, and old names that warn for one release."""

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
    assert ran.stdout == "True\\n"
    told = "<string>:1: DeprecationWarning: agent_logger.session has moved to agent_logger.model.session;"
    assert ran.stderr.startswith(told)


def test_a_module_that_never_was_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"agent_logger\\.nowhere"):
        import_module("agent_logger.nowhere")
    with pytest.raises(AttributeError):
        agent_logger.nowhere  # noqa: B018
'''


def main() -> None:
    write_doors()
    write_former_names()
    point_to_doors()
    drop_the_map()
    name_the_rooms()
    for line in (["format", "-q", "."], ["check", "-q", "--fix", "."], ["format", "-q", "."]):
        subprocess.run([".venv/bin/ruff", *line], cwd=ROOT, check=True)
    subprocess.run(["git", "add", "-A", "src", "tests", "docs", "examples"], cwd=ROOT, check=True)
    subprocess.run(["git", "add", "-u"], cwd=ROOT, check=True)


def write_doors() -> None:
    for door, (text, homes) in DOORS.items():
        lines = [f'"""{text}"""', ""]
        exported: list[str] = []
        for module, listed in homes.items():
            names = listed or public_names(module)
            lines.append(f"from {module} import ({', '.join(names)})")
            exported += names
        lines += ["", f"__all__ = {sorted(exported)!r}", ""]
        (SOURCE / f"{door}.py").write_text("\n".join(lines))


def public_names(module: str) -> list[str]:
    """Classes, functions and types of a module; what is imported there is somebody else's."""
    names = []
    for node in ast.parse(move.place(module).with_suffix(".py").read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return sorted(name for name in names if not name.startswith("_"))


def write_former_names() -> None:
    moved = {
        old.removeprefix("agent_logger."): new.removeprefix("agent_logger.")
        for old, new in move.read_moves([]).items()
        if not old.startswith("tests.") and not old.endswith(".*") and is_gone(old)
    }
    lines = [f'    "{old}": "{new}",' for old, new in sorted(moved.items())]
    (SOURCE / "_former_names.py").write_text(FORMER + "\n".join(lines) + "\n}\n")
    path = SOURCE / "__init__.py"
    text = path.read_text()
    text = text.replace(
        "from importlib import import_module\n", "import sys\nfrom importlib import import_module\n", 1
    )
    text = text.replace(
        "if TYPE_CHECKING:\n", "if TYPE_CHECKING:\n    from importlib.machinery import ModuleSpec\n\n", 1
    )
    path.write_text(text.rstrip() + "\n" + FINDER)
    (ROOT / "tests/test_doors.py").write_text(TEST)


def is_gone(module: str) -> bool:
    path = move.place(module)
    return not path.with_suffix(".py").exists() and not (path / "__init__.py").exists()


def point_to_doors() -> None:
    """In what users read; inside the package, each module is named by where it is."""
    names = {module: f"agent_logger.{door}" for door, (_, homes) in DOORS.items() for module in homes}
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    places = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*"), ROOT / "README.md"]
    for path in [*places, SOURCE / "transcripts/storage.py"]:
        if path.is_file() and path.name not in ("ARCHITECTURE.md", "FORMATS.md"):
            move.rewrite(path, lambda text: pattern.sub(lambda found: names[found[0]], text))


def drop_the_map() -> None:
    def change(text: str) -> str:
        start, end = text.index("@cache\ndef moves()"), text.index("def room_of(")
        text = text[:start] + text[end:]
        text = text.replace('return moves().get(module, module).split(".")[0]', 'return module.split(".")[0]')
        doors = ", ".join(f'"{door}"' for door in DOORS)
        listed = re.compile(r'\["demo", "web", "adapters", "records", "sdk", "storage", "testing"\], None')
        assert listed.search(text)
        return listed.sub(f'["demo", "web", {doors}], None', text).replace(
            '("__init__", "__main__", "cli")', '("__init__", "__main__", "cli", "agent_logger")'
        )

    move.rewrite(ROOT / "tests/test_imports.py", change)


def name_the_rooms() -> None:
    def change(text: str) -> str:
        start, end = text.index("| room | holds |"), text.index("`tests/test_imports.py` keeps this table")
        lines = []
        for line in text[start:end].split("\n"):
            cells = line.split("|")
            if len(cells) > 2 and (SOURCE / cells[1].strip()).is_dir() and cells[1].strip():
                cells[1] = f" `{cells[1].strip()}/` "
            lines.append("|".join(cells))
        doors = ", ".join(f"`{door}.py`" for door in DOORS)
        finder = "`_former_names` finds modules by the names they had before"
        lines.insert(
            2, f"| {doors} | public doors: they re-export, and hold nothing. {finder} | anything but cli |"
        )
        return text[:start] + "\n".join(lines) + text[end:]

    move.rewrite(ROOT / "docs/ARCHITECTURE.md", change)
    move.rewrite(
        ROOT / "CHANGELOG.md",
        lambda text: text.replace("### Python\n\n", "### Python\n\n" + CHANGE, 1),
    )


if __name__ == "__main__":
    main()
