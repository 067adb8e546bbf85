"""The public names: all are explained, and the examples on their page run."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agent_logger
from tests.web.homes import DATA, demo

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("name", agent_logger.__all__)
def test_every_public_name_is_explained(name: str) -> None:
    public = getattr(agent_logger, name)
    told = inspect.cleandoc(public.__doc__ or "")
    assert told and not told.startswith(f"{name}("), "a docstring of its own"
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", agent_logger.__all__)
def test_every_public_function_is_typed(name: str) -> None:
    public = getattr(agent_logger, name)
    for function in [public, *vars(public).values()] if inspect.isclass(public) else [public]:
        if inspect.isfunction(function) and not function.__name__.startswith("_"):
            signature = inspect.signature(function)
            given = [it for it in signature.parameters.values() if it.name not in ("self", "cls")]
            assert all(it.annotation is not it.empty for it in given), function
            assert signature.return_annotation is not signature.empty, function


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With something of every kind that the examples ask for, or they would say nothing, and be right."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(DATA / "claude-cli/2.1.325/tools_stream/home", home, dirs_exist_ok=True)
    demo(home)
    return home


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(example: str, home: Path) -> None:
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", example], env=clean, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
