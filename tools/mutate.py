"""Change the code a little, and see whether a test fails.

    ./dev mutate                          the fifty largest modules
    ./dev mutate catalog/ledger/ledger.py ...
    ./dev mutate --report                 the results so far

A mutant is a module with one small change: a comparison turned, a condition negated, `and` for `or`, a number changed
by one, `+` for `-`, or a `return`, `raise` or call removed. Which mutants are made depends on `--seed` and on the
function that they change, so that an edit elsewhere leaves the others the same.

Everything happens in a copy of the checkout in `--folder`, with an environment of its own: it has the packages of
`.venv` but agent-logger from the copy, so that processes that tests start without our variables run the copy as well.

First each test is run once with a probe in every function, which takes as long as all tests take on one core
(`--tests` names fewer). A mutant is then tried on the tests that ran the function it changes, until their time adds up
to `--seconds`: the nearest and quickest first, then some of each file. It is

  killed     if a test fails;
  timed out  if the tests take several times as long as without the change;
  survived   if all pass;
  untested   if no test runs the function.

Traces and results are kept in `--folder`: a second run goes on where the first stopped, traces only the test files
that changed, and tries again what survived. Survivors that no test can or should kill are listed, with the reason, in
`mutants.toml` beside this script, and are not tried.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import venv
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/agent_logger"
LISTED = Path(__file__).with_name("mutants.toml")
MODULES = 50
MODULE_LEVEL = ""  # the function of what runs on import: class bodies, tables, default arguments
# What runs for long and is about other things than single functions.
LEFT_OUT = ("real_clients", "test_dev.py", "test_mutants.py", "test_mutate.py", "test_package.py")
MARKED = "not long and not alone"
COPIED = ("src", "tests", "benches", "docs", "examples", "tools")  # and all files beside them


# Mutants

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Mutant:
    module: str  # its path in the package
    function: str  # its qualified name; that of the outermost function if it is nested
    line: int
    old: str  # the line, or the lines in one
    new: str
    edit: tuple[int, int, bytes]  # what stands between two offsets

    @property
    def key(self) -> Key:
        """What stays the same when other lines of the module change."""
        return self.module, self.function, self.old, self.new

    def applied(self, text: str) -> str:
        start, end, new = self.edit
        data = text.encode()
        return (data[:start] + new + data[end:]).decode()


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of `node`."""
    match node:
        case ast.Compare(ops=[operator, *more]):
            changed = copy.copy(node)
            changed.ops = [COMPARISONS[type(operator)](), *more]
            yield changed
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            yield ast.BinOp(left, ast.Sub() if isinstance(operator, ast.Add) else ast.Add(), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Return(value=value) if value is None or not is_none(value):
            yield ast.Pass()
        case ast.Raise() | ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield ast.Pass()


def conditions_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what `node` decides by, unless it is changed as a comparison or negation already."""
    if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr
    ):
        yield node.test


def one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


@dataclass
class Module:
    path: str
    text: str

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        self.lines = self.text.encode().split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    @property
    def code_lines(self) -> int:
        """Count the lines on which something stands that runs: no comments, docstrings or closing brackets."""
        return len({node.lineno for node in ast.walk(self.tree) if isinstance(node, ast.stmt | ast.expr)})

    def mutants(self) -> list[Mutant]:
        return [
            mutant
            for node, function in self.nodes(self.tree, MODULE_LEVEL, [])
            for mutant in self.mutants_at(node, function)
        ]

    def mutants_at(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        for changed in changes_of(node):
            yield self.mutant(node, function, changed)
        for condition in conditions_of(node):
            yield self.mutant(condition, function, ast.UnaryOp(ast.Not(), condition))

    def mutant(self, node: Any, function: str, changed: ast.AST) -> Mutant:
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        new = ast.unparse(ast.fix_missing_locations(changed))
        # Its place may need brackets: `not (a and b)`, and an unparsed expression has none of its own.
        if isinstance(changed, ast.expr) and not isinstance(changed, ast.Constant):
            new = f"({new})"
        before, after = self.lines[node.lineno - 1][: node.col_offset], self.lines[node.end_lineno - 1]
        old = b"\n".join(self.lines[node.lineno - 1 : node.end_lineno])
        line = before + new.encode() + after[node.end_col_offset :]
        edit = start, end, new.encode()
        return Mutant(self.path, function, node.lineno, one_line(old), one_line(line), edit)

    def nodes(self, node: ast.AST, function: str, classes: list[str]) -> Iterator[tuple[ast.AST, str]]:
        """Yield all nodes that may be changed, with the function that they are in.

        Types, decorators, options of classes and what only a type checker reads are left out: a change there is seen
        by no test, or by all. So are the parts of f-strings, whose places Python 3.11 does not know.
        """
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "keywords") and not isinstance(node, ast.Call):
                continue
            for child in value if isinstance(value, list) else [value]:
                match child:
                    case ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
                        continue
                    case ast.ClassDef(name=inner) if not function:
                        yield from self.nodes(child, function, [*classes, inner])
                    case ast.FunctionDef(name=inner) | ast.AsyncFunctionDef(name=inner) if not function:
                        yield from self.nodes(child, ".".join([*classes, inner]), classes)
                    case ast.AST():
                        yield child, function
                        yield from self.nodes(child, function, classes)


def chosen(module: Module, count: int, seed: int) -> list[Mutant]:
    """Choose mutants by the seed, of as many functions as can be."""

    def rank(mutant: Mutant) -> str:
        return hashlib.sha256(repr((seed, *mutant.key)).encode()).hexdigest()

    by_function: dict[str, list[Mutant]] = defaultdict(list)
    unique = {mutant.key: mutant for mutant in reversed(module.mutants())}
    for mutant in sorted(unique.values(), key=rank):
        by_function[mutant.function].append(mutant)
    rounds = [(number, rank(it), it) for those in by_function.values() for number, it in enumerate(those)]
    return [mutant for _, _, mutant in sorted(rounds, key=lambda entry: entry[:2])][:count]


def modules_of(root: Path, names: list[str], count: int) -> list[Module]:
    """Read the modules that are named, or the largest that hold at least `count` mutants."""
    package = root / PACKAGE
    paths = [package / name for name in names] or sorted(package.rglob("*.py"))
    modules = [Module(path.relative_to(package).as_posix(), path.read_text()) for path in paths]
    if names:
        return modules
    by_size = sorted(modules, key=lambda module: (-module.code_lines, module.path))
    return [module for module in by_size if len(module.mutants()) >= count][:MODULES]


# The copy


class Copy:
    """A copy of the checkout that Python finds agent-logger in, whatever the variables of a process are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve() / "checkout"
        self.tracing = self.folder / "tracing"
        self.python = self.folder / ".venv/bin/python"
        self.writes = 0

    def make(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.tracing.mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name in COPIED:
                shutil.copytree(path, self.folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif path.is_file():
                shutil.copy2(path, self.folder)
        shutil.copy(Path(__file__).with_name("_mutate_plugin.py"), self.folder)
        self._make_environment()

    def _make_environment(self) -> None:
        """Make one that has the packages of this one, but not what its `.pth` files add: the checkout itself."""
        folder = self.folder / ".venv"
        venv.create(folder, with_pip=False)
        (packages,) = folder.glob("lib/python*/site-packages")
        ours = sysconfig.get_path("purelib")
        (packages / "copy.pth").write_text(f"{self.folder}\n{self.folder / 'src'}\n{ours}\n")
        script = folder / "bin/agent-logger"
        script.write_text(f"#!{self.python}\nimport sys\nfrom agent_logger.__main__ import main\nsys.exit(main())\n")
        script.chmod(0o755)

    def write(self, module: str, text: str) -> None:
        """Write a module so that Python compiles it again: it knows a change by the size and the second."""
        path = self.folder / PACKAGE / module
        path.write_text(text)
        self.writes += 1
        os.utime(path, (self.writes, self.writes))
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def run(self, arguments: list[str], seconds: float | None = None) -> tuple[int | None, str]:
        """Run pytest. Return its exit code, or None if it took longer than `seconds`, and the last lines it printed."""
        argv = [str(self.python), "-m", "pytest", "-q", "-p", "_mutate_plugin", "-p", "no:randomly"]
        argv += ["-p", "no:cacheprovider", "--hypothesis-seed=0", "-m", MARKED, *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment["TMPDIR"] = str(self.folder.parent / "tmp")
        shutil.rmtree(environment["TMPDIR"], ignore_errors=True)
        Path(environment["TMPDIR"]).mkdir()
        output = self.folder.parent / "output.txt"
        with output.open("w") as file:
            process = subprocess.Popen(
                argv, cwd=self.folder, env=environment, stdout=file, stderr=file, start_new_session=True
            )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self._end_processes()
        return code, output.read_text(errors="replace")

    def _end_processes(self) -> None:
        """End what tests started in sessions of their own, and what a mutant kept from ending: all run our Python."""
        ours = str(self.folder).encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "cmdline").read_bytes().startswith(ours):
                    os.kill(int(process.name), signal.SIGKILL)


# Traces


def original(module: str) -> str:
    return (ROOT / PACKAGE / module).read_text()


def with_probes(module: str, text: str) -> str:
    """Return the module with a call in each function that says that it runs, nested functions apart."""
    tree = ast.parse(text)
    rooms: list[tuple[list[ast.stmt], str]] = [(tree.body, f"{module}:")]
    for body, prefix in rooms:
        for node in body:
            match node:
                case ast.ClassDef(name=name, body=inner):
                    rooms.append((inner, f"{prefix}{name}."))
                case ast.FunctionDef(name=name, body=inner) | ast.AsyncFunctionDef(name=name, body=inner):
                    probe = f"__import__('_mutate_plugin').ran({prefix + name!r})"
                    inner.insert(1 if ast.get_docstring(node) else 0, ast.parse(probe).body[0])
                case ast.If(body=inner, orelse=other):
                    rooms += [(inner, prefix), (other, prefix)]
                case ast.Try(body=inner, orelse=other):
                    rooms += [(inner, prefix), (other, prefix)]
    return ast.unparse(tree)


class TracedTest(NamedTuple):
    distance: int
    seconds: float
    name: str

    @property
    def file(self) -> str:
        return self.name.split("::")[0]


class Traces:
    """Which test ran which function, in a file of JSON lines."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "traces.jsonl"
        self.files: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                self.files[entry["file"]] = entry

    def update(self, checkout: Copy, modules: list[str], tests: list[str]) -> None:
        """Trace the test files that changed, room after room, and forget those that are gone."""
        rooms: dict[str, dict[str, str]] = defaultdict(dict)
        before, self.files = self.files, {}
        for path in sorted((checkout.folder / "tests").rglob("test_*.py")):
            name = path.relative_to(checkout.folder).as_posix()
            state = digest(path.read_bytes())
            entry = before.get(name)
            if entry and entry["state"] == state and set(modules) <= set(entry["modules"]):
                self.files[name] = entry
            elif is_among(name, tests):
                rooms["/".join(name.split("/")[:2])][name] = state
        for module in modules:
            checkout.write(module, with_probes(module, original(module)))
        for number, (room, files) in enumerate(rooms.items(), 1):
            say(f"tracing {room} ({number} of {len(rooms)}, {len(files)} test files)")
            self._trace(checkout, files, modules)
        for module in modules:
            checkout.write(module, original(module))

    def _trace(self, checkout: Copy, files: dict[str, str], modules: list[str]) -> None:
        (checkout.tracing / "calls").write_bytes(b"")
        (checkout.tracing / "tests").unlink(missing_ok=True)
        current = checkout.tracing / "current"
        current.write_bytes(bytes(4))
        code, output = checkout.run(list(files))
        current.unlink()
        if not (checkout.tracing / "tests").exists():
            sys.exit(f"mutate: pytest ended with {code} while tests were traced:\n{output[-2000:]}")
        functions: dict[int, set[str]] = defaultdict(set)
        for line in (checkout.tracing / "calls").read_text().splitlines():
            at, name = line.split("\t")
            functions[int(at)].add(name)
        tests: dict[str, list[dict[str, Any]]] = {file: [] for file in files}
        for number, test in enumerate(json.loads((checkout.tracing / "tests").read_text()), 1):
            test["functions"] = sorted(functions[number])
            tests[test["test"].split("::")[0]].append(test)
        failed = [test["test"] for those in tests.values() for test in those if test["outcome"] == "failed"]
        for test_name in failed:
            say(f"  left out, for it fails without a mutant: {test_name}")
        with self.path.open("a") as store:
            for file, state in files.items():
                entry = {"file": file, "state": state, "modules": modules, "tests": tests[file]}
                self.files[file] = entry
                store.write(json.dumps(entry) + "\n")

    def tests_of(self, mutant: Mutant) -> list[TracedTest]:
        """Return the tests that run the function, the nearest first and the quickest of them first."""
        prefix = f"{mutant.module}:"
        name = prefix + mutant.function
        return sorted(
            TracedTest(distance(test["test"], mutant.module), test["seconds"], test["test"])
            for file in self.files.values()
            for test in file["tests"]
            if test["outcome"] == "passed"
            and any(it == name if mutant.function else it.startswith(prefix) for it in test["functions"])
        )


def selected(tests: list[TracedTest], budget: float) -> list[TracedTest]:
    """Select tests that take no longer together: for half of the time the nearest, then the quickest of each file, the
    second of each file, and so on."""
    near: list[TracedTest] = []
    rest = list(tests)
    while rest and (not near or sum(test.seconds for test in near) + rest[0].seconds <= budget / 2):
        near.append(rest.pop(0))
    ranks: Counter[str] = Counter()
    ranked: list[tuple[int, TracedTest]] = []
    for test in rest:
        ranked.append((ranks[test.file], test))
        ranks[test.file] += 1
    left = budget - sum(test.seconds for test in near)
    for _, test in sorted(ranked):
        left -= test.seconds
        if left < 0:
            break
        near.append(test)
    return near


def is_among(test: str, folders: list[str]) -> bool:
    places = {test, *(parent.as_posix() for parent in Path(test).parents)}
    return not places.isdisjoint(folders) and set(LEFT_OUT).isdisjoint(Path(test).parts)


def distance(test: str, module: str) -> int:
    """Say how far a test's folder is from the module's, as the tests mirror the package; 0 if the names agree."""
    *folders, name = Path(test.split("::")[0]).with_suffix("").parts[1:]
    *rooms, stem = Path(module).with_suffix("").parts
    if folders == rooms and stem.lstrip("_") in name:
        return 0
    shared = 0
    for one, other in zip(folders, rooms, strict=False):
        if one != other:
            break
        shared += 1
    return 1 + len(rooms) - shared


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# The run


def try_mutant(checkout: Copy, traces: Traces, mutant: Mutant, budget: float) -> dict[str, Any]:
    candidates = traces.tests_of(mutant)
    tests = selected(candidates, budget)
    began = time.monotonic()
    outcome, killer = "untested", None
    if tests:
        (checkout.tracing / "selection").write_text("\n".join(test.name for test in tests))
        checkout.write(mutant.module, mutant.applied(original(mutant.module)))
        try:
            files = dict.fromkeys(test.file for test in tests)
            code, output = checkout.run(["-x", *files], 60 + 4 * sum(test.seconds for test in tests))
        finally:
            checkout.write(mutant.module, original(mutant.module))
            (checkout.tracing / "selection").unlink()
        outcome = {0: "survived", None: "timed out", 5: "untested"}.get(code, "killed")
        killer = next((line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))), None)
    return {
        "module": mutant.module,
        "function": mutant.function,
        "line": mutant.line,
        "old": mutant.old,
        "new": mutant.new,
        "outcome": outcome,
        "by": killer,
        "tests": len(tests),
        "of": len(candidates),
        "seconds": round(time.monotonic() - began, 1),
    }


def key_of(entry: dict[str, str]) -> Key:
    return entry["module"], entry["function"], entry["old"], entry["new"]


def listed() -> dict[Key, str]:
    """Return the mutants that are known to survive, with the reasons."""
    entries = tomllib.loads(LISTED.read_text()).get("mutant", []) if LISTED.exists() else []
    return {key_of(it): it["reason"] for it in entries}


def read_results(path: Path) -> dict[Key, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    results = (json.loads(line) for line in lines)
    return {key_of(it): it for it in results}


def report(mutants: list[Mutant], results: dict[Key, dict[str, Any]]) -> int:
    reasons = listed()
    counts = Counter(
        "listed" if it.key in reasons else results.get(it.key, {"outcome": "not tried"})["outcome"] for it in mutants
    )
    for mutant in mutants:
        result = results.get(mutant.key)
        if result and result["outcome"] in ("survived", "untested") and mutant.key not in reasons:
            say(
                f"{result['outcome']}: {mutant.module}:{mutant.line} {mutant.function or '(on import)'}"
                f" ({result['tests']} of {result['of']} tests)"
            )
            say(f"    - {mutant.old}\n    + {mutant.new}")
    made = {it.key for name in {key[0] for key in reasons} for it in mutants_in(name)}
    for key in reasons:
        if key not in made:
            say(f"{LISTED.name} lists a mutant that cannot be made any more: {key}")
    say(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    return counts["survived"] + counts["untested"]


def mutants_in(name: str) -> list[Mutant]:
    path = ROOT / PACKAGE / name
    return Module(name, path.read_text()).mutants() if path.exists() else []


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Change the code a little, and see whether a test fails.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="paths in src/agent_logger; the largest if none")
    parser.add_argument("--each", type=int, default=4, help="mutants per module (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20, help="tests for each mutant (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "agent-logger-mutants"))
    parser.add_argument("--tests", nargs="+", default=["tests"], help="folders and files of tests (%(default)s)")
    parser.add_argument("--report", action="store_true", help="show the results so far, and try nothing")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    modules = modules_of(ROOT, options.modules, options.each)
    mutants = [mutant for module in modules for mutant in chosen(module, options.each, options.seed)]
    path = options.folder / "results.jsonl"
    if not options.report:
        run(mutants, [module.path for module in modules], path, options)
    sys.exit(1 if report(mutants, read_results(path)) else 0)


def run(mutants: list[Mutant], modules: list[str], path: Path, options: argparse.Namespace) -> None:
    checkout, traces = Copy(options.folder), Traces(options.folder)
    say(f"{len(mutants)} mutants of {len(modules)} modules, in {checkout.folder}")
    checkout.make()
    largest = [module.path for module in modules_of(ROOT, [], options.each)]
    traces.update(checkout, sorted({*modules, *largest}), [test.rstrip("/") for test in options.tests])
    results, reasons = read_results(path), listed()
    for number, mutant in enumerate(mutants, 1):
        done = results.get(mutant.key, {"outcome": ""})["outcome"] in ("killed", "timed out")
        if done or mutant.key in reasons:
            continue
        result = try_mutant(checkout, traces, mutant, options.seconds)
        with path.open("a") as file:
            file.write(json.dumps(result) + "\n")
        say(
            f"{number}/{len(mutants)} {result['outcome']} in {result['seconds']} s: {mutant.module}:{mutant.line}"
            f" {mutant.new}"
        )


if __name__ == "__main__":
    main()
