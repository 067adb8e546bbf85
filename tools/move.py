"""Apply tools/moves.txt: move modules, and rewrite every import, dotted name and path that refers to them.

    python tools/move.py [FOLDER ...]      only the moves into these target folders; without any, all of them
    python tools/move.py --folders         the target folders, in the order in which to move

A test goes with its folder. `root` stands for the package itself, and for the tests that lie beside its tests.

The script can run again at any time: a module that has moved already is only looked for in references.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "agent_logger"
SOURCES = ("src", "tests", "benches", "docs", "tools", "examples")
TEXTS = (".md", ".toml", ".html", ".css", ".js", ".py", ".json", ".txt", "")
QUOTED_IMPORT = re.compile(
    r"(from (?:agent_logger|tests)[\w.]* import \w+(?:, \w+)*)"
)  # in a string or on a page
ORIGIN: dict[Path, Path] = {}  # where a file that was moved in this run came from
PLACES = re.compile(r"agent_logger|tests|\w/\w")
DATA = {
    "agent_logger.prices": ("prices.json",),
    "tests.export.test_session_files": ("golden",),
}  # what lies beside a module and moves with it
SKIP = ("tests/data/", "tools/move", "tools/after_moves.py", "tools/rename", "CHANGELOG.md")


def main(folders: list[str]) -> None:
    moves = read_moves(folders)
    packages = {new.rpartition(".")[0] for new in moves.values()}
    moved = [old for old, new in moves.items() if move(old, new)]
    # `catalog.search` becomes a package: once that is done, its name means the package.
    moves = {
        old.removesuffix(".*"): new.removesuffix(".*")
        for old, new in moves.items()
        if old not in packages or old in moved
    }
    names = References(moves, moved_data(moves))
    for path in tracked():
        if path.suffix == ".py":
            rewrite(path, lambda text, path=path: rewrite_imports(text, moves, path))
        rewrite(path, lambda text, path=path: rewrite_names(text, names, path))
    remove_empty_packages()
    subprocess.run(
        [".venv/bin/ruff", "check", "-q", "--select", "I", "--fix", *SOURCES], cwd=ROOT, check=False
    )
    subprocess.run([".venv/bin/ruff", "format", "-q", *SOURCES], cwd=ROOT, check=True)
    git("add", "-u")


def read_moves(folders: list[str]) -> dict[str, str]:
    moves: dict[str, str] = {}
    for old, new in listed_moves():
        if not folders or folder_of(new) in folders:
            moves |= expanded(old, new, moves)
    return moves


def listed_moves() -> list[tuple[str, str]]:
    lines = (ROOT / "tools/moves.txt").read_text().splitlines()
    pairs = (line.split(" -> ") for line in lines if " -> " in line and not line.startswith("#"))
    return [(full(old), full(new)) for old, new in pairs]


def folder_of(module: str) -> str:
    """`journal` for agent_logger.journal.parts and for tests.journal.test_parts; `root` for agent_logger.clock."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 else "root"


def all_folders() -> list[str]:
    return list(dict.fromkeys(folder_of(new) for _, new in listed_moves()))


def moved_data(moves: dict[str, str]) -> dict[str, str]:
    """Where files that belong to a module were, and where they are."""
    return {
        f"{package_path(old)}/{name}": f"{package_path(moves[old])}/{name}"
        for old, names in DATA.items()
        if old in moves
        for name in names
    }


def package_path(module: str) -> str:
    return module.rpartition(".")[0].replace(".", "/")


def full(module: str) -> str:
    return module if module.startswith("tests.") else f"{PACKAGE}.{module}"


def expanded(old: str, new: str, listed: dict[str, str]) -> dict[str, str]:
    """Spell `x.test_*` out: every such module that has no line of its own."""
    if not old.endswith("_*"):
        return {old: new}
    folder, stem = place(old.rpartition(".")[0]), old.rpartition(".")[2][:-1]
    names = sorted(path.stem for path in folder.glob(f"{stem}*.py"))
    modules = {f"{old.rpartition('.')[0]}.{name}": f"{new.rpartition('.')[0]}.{name}" for name in names}
    return {module: target for module, target in modules.items() if module not in listed}


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = sorted(set(listing.stdout.split("\n")) - {""})
    return [
        ROOT / name
        for name in names
        if not name.startswith(SKIP) and Path(name).suffix in TEXTS and (ROOT / name).is_file()
    ]


# Moving


def move(old: str, new: str) -> bool:
    """Move a module, or of a package (`x.*`) what is not a module; return whether there was anything to move."""
    source, target = place(old), place(new)
    if old.endswith(".*"):
        return move_package(source, target)
    if not source.with_suffix(".py").is_file():
        return False
    make_packages(target.parent)
    git("mv", source.with_suffix(".py"), target.with_suffix(".py"))
    ORIGIN[target.with_suffix(".py")] = source.with_suffix(".py")
    deepen(target.with_suffix(".py"), len(target.parts) - len(source.parts))
    for data in DATA.get(old, ()):
        git("mv", source.parent / data, target.parent / data)
    return True


def deepen(path: Path, levels: int) -> None:
    """Let `Path(__file__).parents[N]` mean the folder that it meant before."""
    if levels:
        rewrite(
            path,
            lambda text: re.sub(
                r"(__file__\)(?:\.resolve\(\))?\.parents\[)(\d+)",
                lambda found: f"{found[1]}{int(found[2]) + levels}",
                text,
            ),
        )


def move_package(source: Path, target: Path) -> bool:
    if not (source / "__init__.py").is_file():
        return False
    make_packages(target)
    (target / "__init__.py").write_text((source / "__init__.py").read_text())
    git("rm", "-qf", source / "__init__.py")
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        if path.suffix not in ("", ".py") or path.name in ("templates", "static"):
            git("mv", path, target / path.name)
    return True


def place(module: str) -> Path:
    base = ROOT if module.startswith("tests.") else ROOT / "src"
    return base / module.removesuffix(".*").replace(".", "/")


def make_packages(folder: Path) -> None:
    if folder in (ROOT / "src", ROOT):
        return
    make_packages(folder.parent)
    folder.mkdir(exist_ok=True)
    init = folder / "__init__.py"
    if not init.exists():
        init.touch()
        git("add", init)


def remove_empty_packages() -> None:
    for init in sorted(
        [*(ROOT / "src").rglob("__init__.py"), *(ROOT / "tests").rglob("__init__.py")], reverse=True
    ):
        others = [path for path in init.parent.iterdir() if path.name not in ("__init__.py", "__pycache__")]
        if not others and not init.read_text():
            git("rm", "-qf", init)


def git(*arguments: object) -> None:
    subprocess.run(["git", *map(str, arguments)], cwd=ROOT, check=True)


# References


def rewrite(path: Path, change) -> None:  # type: ignore[no-untyped-def]
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    changed = change(text)
    if changed != text:
        path.write_text(changed)


@dataclass
class Edit:
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass
class Imports:
    """One import statement, with its names sorted by the module they come from now."""

    by_module: dict[str, list[str]] = field(default_factory=dict)

    def add(self, module: str, name: str, alias: str | None) -> None:
        self.by_module.setdefault(module, []).append(f"{name} as {alias}" if alias else name)

    def text(self, indent: str) -> str:
        lines = [
            f"from {module} import ({', '.join(names)})"
            if len(names) > 1
            else f"from {module} import {names[0]}"
            for module, names in self.by_module.items()
        ]
        return f"\n{indent}".join(lines)


def rewrite_imports(text: str, moves: dict[str, str], path: Path) -> str:
    if not re.search(r"^\s*from (agent_logger|tests|\.)", text, re.MULTILINE):
        return text
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    leaves = Counter(
        moves[name].rpartition(".")[2] for node in imports for name in imported(node, path) if name in moves
    )
    edits: list[Edit] = []
    for node in imports:
        edits += changed_import(tree, node, moves, path, leaves)
    return applied(text, edits)


def imported(node: ast.ImportFrom, path: Path) -> list[str]:
    module = source_module(node, path)
    return [f"{module}.{alias.name}" for alias in node.names] if module else []


def source_module(node: ast.ImportFrom, path: Path) -> str | None:
    """Name the module that is imported from, in full; for a relative import, by where the file was before it moved."""
    if node.level == 0:
        return node.module if node.module and node.module.split(".")[0] in (PACKAGE, "tests") else None
    package = ".".join(ORIGIN.get(path, path).relative_to(ROOT).parent.parts)
    return f"{package}.{node.module}" if node.module else package


def changed_import(
    tree: ast.Module, node: ast.ImportFrom, moves: dict[str, str], path: Path, leaves: Counter[str]
) -> Iterator[Edit]:
    parent = source_module(node, path)
    if parent is None:
        return
    imports, changed = Imports(), bool(node.level) and path in ORIGIN
    for alias in node.names:
        old = f"{parent}.{alias.name}"
        if old in moves:
            package, _, leaf = moves[old].rpartition(".")
            local = alias.asname
            if local is None and leaf != alias.name:
                if leaves[leaf] > 1 or is_bound(tree, leaf, node):
                    local = alias.name
                    print(
                        f"{path.relative_to(ROOT)}: {leaf} is taken, so {alias.name} stays as the local name",
                        file=sys.stderr,
                    )
                else:
                    yield from renamed_uses(tree, alias.name, leaf)
            imports.add(package, leaf, local)
            changed = True
        elif parent in moves:
            imports.add(moves[parent], alias.name, alias.asname)
            changed = True
        else:
            imports.add(parent, alias.name, alias.asname)
    if changed:
        yield Edit(
            (node.lineno, node.col_offset),
            (node.end_lineno or 0, node.end_col_offset or 0),
            imports.text(" " * node.col_offset),
        )


def is_bound(tree: ast.Module, name: str, importing: ast.ImportFrom) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg) and name == (
            node.id if isinstance(node, ast.Name) else node.arg
        ):
            return True
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name == name
            and node in tree.body
        ):
            return True
        if (
            isinstance(node, ast.Import | ast.ImportFrom)
            and node is not importing
            and any((a.asname or a.name) == name for a in node.names)
        ):
            return True
    return False


def renamed_uses(tree: ast.Module, old: str, new: str) -> Iterator[Edit]:
    """Rename the module-level name, except in scopes that bind the same name for themselves."""
    yield from _uses(tree, old, new)


def _uses(scope: ast.AST, old: str, new: str) -> Iterator[Edit]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and binds(node, old):
            continue
        if isinstance(node, ast.Name) and node.id == old:
            yield Edit((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0), new)
        yield from _uses(node, old, new)


def binds(function: ast.AST, name: str) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
    return False


def applied(text: str, edits: list[Edit]) -> str:
    lines = text.encode().split(b"\n")
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        (first, begin), (last, end) = edit.start, edit.end
        joined = lines[first - 1][:begin] + edit.text.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = joined.split(b"\n")
    return b"\n".join(lines).decode()


def rewrite_names(text: str, names: References, path: Path) -> str:
    """Rewrite dotted names and paths in strings, comments and prose; imports of programs are done already."""
    if not names.moves or not PLACES.search(text):
        return text
    done = import_lines(text) if path.suffix == ".py" else set()
    lines = enumerate(text.split("\n"), 1)
    return "\n".join(line if number in done else names.rewrite(line) for number, line in lines)


def import_lines(text: str) -> set[int]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or 0) + 1)}


class References:
    """Finds dotted names (`agent_logger.store.journal`) and paths (`store/journal.py`) of modules that moved."""

    def __init__(self, moves: dict[str, str], data: dict[str, str]) -> None:
        self.moves = moves
        self._data = data
        longest_first = sorted(moves, key=len, reverse=True)
        slashed = [old.replace(".", "/") for old in longest_first]
        below = [
            short
            for path in slashed
            if "/" in (short := path.removeprefix(f"{PACKAGE}/")) and not short.startswith("tests/")
        ]
        self._dotted = re.compile(rf"\b({'|'.join(map(re.escape, longest_first))})\b(?!/)")
        self._paths = re.compile(rf"\b({'|'.join(slashed)})(?=\.py\b|/|`|\"|'|\s|$)")
        self._short = re.compile(rf"(?<![\w/.-])({'|'.join(below)})(?=\.py\b|/?`)") if below else None

    def rewrite(self, line: str) -> str:
        pieces = QUOTED_IMPORT.split(line)  # text, import, text, ...
        return "".join(
            self._rewrite_import(piece) if number % 2 else self._rewrite_text(piece)
            for number, piece in enumerate(pieces)
        )

    def _rewrite_import(self, text: str) -> str:
        package, _, names = text.removeprefix("from ").partition(" import ")
        imports = Imports()
        for name in names.split(", "):
            home, _, leaf = self.moves.get(f"{package}.{name}", "").rpartition(".")
            imports.add(
                home or self.moves.get(package, package),
                leaf or name,
                name if leaf not in ("", name) else None,
            )
        return "; ".join(
            f"from {module} import {', '.join(found)}" for module, found in imports.by_module.items()
        )

    def _rewrite_text(self, line: str) -> str:
        line = self._dotted.sub(lambda match: self.moves[match[1]], line)
        line = self._paths.sub(lambda match: self._slashed(match[1]), line)
        for old, new in self._data.items():
            line = re.sub(rf"\b{re.escape(old)}\b", new, line)
        return (
            self._short.sub(
                lambda match: self._slashed(f"{PACKAGE}/{match[1]}").removeprefix(f"{PACKAGE}/"), line
            )
            if self._short
            else line
        )

    def _slashed(self, path: str) -> str:
        return self.moves[path.replace("/", ".")].replace(".", "/")


if __name__ == "__main__":
    if sys.argv[1:] == ["--folders"]:
        print(*all_folders(), sep="\n")
    else:
        main(sys.argv[1:])
