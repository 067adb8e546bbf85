"""`./dev mutate`: what it changes, and that tests and the processes they start run the changed copy."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools" / "mutate.py"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


mutate = _script()


def changes(text: str) -> set[str]:
    """Return the lines that the mutants of the text have in place of others."""
    return {mutant.new for mutant in mutate.Module("x.py", text).mutants()}


CHANGES = [
    ("a = b < c", {"a = (b <= c)"}),
    ("a = b is None", {"a = (b is not None)"}),
    ("a = b in c", {"a = (b not in c)"}),
    ("a = b and c or d", {"a = ((b and c) and d)", "a = (b or c) or d"}),
    ("a = not b", {"a = (b)"}),
    ("a = b + c", {"a = (b - c)"}),
    ("a = 3", {"a = 4"}),
    ("a = True", {"a = False"}),
    ("if a: b()", {"if (not a): b()", "if a: pass"}),
    ("def a(): return b", {"def a(): pass"}),
    ("def a(): raise b", {"def a(): pass"}),
    ("async def a(): await b()", {"async def a(): pass"}),
    ("def a(): return None", set()),
    ("a = f'{b + 1}'", set()),
    ("a: Literal[1]", set()),
    ("@b(1)\ndef a(): ...", set()),
    ("class A(B, frozen=True): ...", set()),
    ("if TYPE_CHECKING:\n    a = 1", set()),
]


@pytest.mark.parametrize(("text", "mutants"), CHANGES, ids=[text for text, _ in CHANGES])
def test_a_mutant_has_one_small_change(text: str, mutants: set[str]) -> None:
    assert changes(text) == mutants


def test_every_mutant_of_a_module_can_be_compiled() -> None:
    text = (ROOT / "src/agent_logger/protocols/http1.py").read_text()
    mutants = mutate.Module("protocols/http1.py", text).mutants()
    assert len(mutants) > 50
    original = ast.dump(ast.parse(text))
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.applied(text))) != original


def test_the_choice_depends_on_the_seed_and_not_on_other_functions() -> None:
    functions = [f"def f{number}(a, b):\n    return a + b < {number} and not a\n" for number in range(20)]
    chosen = mutate.chosen(mutate.Module("x.py", "\n".join(functions)), 6, 1)
    assert len({mutant.function for mutant in chosen}) == 6
    assert [it.key for it in chosen] != [
        it.key for it in mutate.chosen(mutate.Module("x.py", "\n".join(functions)), 6, 2)
    ]
    text = "\n".join(["# a comment", "def g(a):\n    print(a)", *functions])
    again = {mutant.key for mutant in mutate.chosen(mutate.Module("x.py", text), 7, 1)}
    assert {mutant.key for mutant in chosen} <= again


def test_every_process_of_the_copy_runs_the_copy(tmp_path: Path) -> None:
    checkout = mutate.Copy(tmp_path)
    checkout.make()
    module = [str(checkout.python), "-m", "agent_logger", "--version"]
    script = [str(checkout.folder / ".venv/bin/agent-logger"), "--version"]

    def ends() -> list[int]:
        return [subprocess.run(it, env={}, cwd="/", capture_output=True).returncode for it in (module, script)]

    assert ends() == [0, 0]
    text = (ROOT / "src/agent_logger/__main__.py").read_text()
    checkout.write("__main__.py", "raise SystemExit(7)\n" + text)
    assert ends() == [7, 7]
    checkout.write("__main__.py", text)
    assert ends() == [0, 0]


@pytest.mark.timeout(300)
def test_a_run_kills_what_tests_notice_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    line = [sys.executable, str(SCRIPT), "protocols/lines.py", "--each", "2", "--folder", str(tmp_path)]
    line += ["--tests", "tests/protocols/test_lines.py"]
    first = subprocess.run(line, capture_output=True, text=True, check=False)
    assert "tracing tests/protocols (1 of 1, 1 test files)" in first.stdout, first.stderr
    assert first.stdout.count(" killed in ") == 2, first.stdout
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "2 killed")
    second = subprocess.run(line, capture_output=True, text=True, check=False)
    assert "tracing" not in second.stdout
    assert " killed in " not in second.stdout
    assert second.stdout.splitlines()[-1] == "2 killed"


def test_a_listed_mutant_has_a_reason() -> None:
    assert all(reason.endswith(".") and len(reason) > 20 for reason in mutate.listed().values())
