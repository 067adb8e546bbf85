"""A type checker at its strictest accepts a program that uses every public name, and finds what is wrong in others."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_doors import MODULES, public_names

PROGRAM = Path(__file__).with_name("typed_program.py")


def checked(folder: Path, *files: str) -> list[str]:
    """The errors that mypy reports, as for a user: with an installed package, and without our settings."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={folder}/cache", *files]
    done = subprocess.run(
        command, cwd=folder, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if ": error: " in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("typed")


def test_the_program_has_every_public_name() -> None:
    tree = ast.parse(PROGRAM.read_text())
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    parts = {
        f"agent_logger.{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    used = parts | {f"agent_logger.{name}" for name in names}
    assert {f"{module}.{name}" for module in MODULES for name in public_names(module)} - used == set()


@pytest.mark.needs("claude_agent_sdk")
def test_a_strict_type_checker_accepts_the_program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM.read_text())
    assert checked(folder, "program.py") == []


WRONG = {
    "run('Why?', includeEvents=True)": "call-arg",
    "run('Why?', timeout='soon')": "arg-type",
    "run('Why?').metadata.cost + 1": "operator",
    "run('Why?').metadata.costs": "attr-defined",
    "read_output(5).data": "arg-type",
    "read_session(b'x')": "arg-type",
    "SessionLogger().query('Why?')": "call-arg",
    "SessionLogger().query(prompt=5)": "arg-type",
    "SessionLogger(5)": "arg-type",
    "FileStorage().lod('s')": "attr-defined",
    "InMemoryStorage().append('s')": "call-arg",
    "Catalog.open().sessions(5)": "arg-type",
    "agent_logger.Sesion": "attr-defined",
}


def test_a_type_checker_finds_wrong_uses(folder: Path) -> None:
    names = "FileStorage, Catalog, InMemoryStorage, SessionLogger, read_output, read_session, run"
    lines = ["import agent_logger", f"from agent_logger import {names}", *WRONG]
    (folder / "wrong.py").write_text("\n".join(lines) + "\n")
    found = [(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]")) for line in checked(folder, "wrong.py")]
    assert sorted(found) == list(enumerate(WRONG.values(), 3))
