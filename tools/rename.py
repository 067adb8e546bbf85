"""Rename identifiers by tools/renames.txt, with the types of pyright behind it.

    python tools/rename.py list [PATH ...]     every binding whose name is in VAGUE, one a line, with its source line
    python tools/rename.py apply               apply tools/renames.txt

A line of tools/renames.txt is `path:line:column old -> new`, as `list` prints it, at the commit that it is applied to.
Needs `basedpyright` on the PATH and a `pyrightconfig.json` that names .venv, src, tests and benches.
All edits are asked for first and made together, so that places stay what they are.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VAGUE = {
    *("it", "its", "told", "found", "said", "known", "kept", "seen", "asked", "wanted", "served"),
    *("shown", "came", "went", "who", "whose"),
}


def main() -> None:
    match sys.argv[1:]:
        case ["list", *paths]:
            for path in sorted(
                p
                for root in paths or ["src"]
                for p in ([ROOT / root] if (ROOT / root).is_file() else (ROOT / root).rglob("*.py"))
            ):
                list_bindings(path)
        case ["apply", *names]:
            apply(Path(names[0]) if names else ROOT / "tools/renames.txt")
        case _:
            sys.exit(__doc__)


# Listing


def list_bindings(path: Path) -> None:
    text = path.read_text()
    lines = text.split("\n")
    seen: set[tuple[str, str]] = set()
    for line, column, name, scope in sorted(bindings(ast.parse(text), lines)):
        if (scope, name) not in seen:
            seen.add((scope, name))
            print(
                f"{path.relative_to(ROOT)}:{line}:{column} {name} -> \t# {scope}: {lines[line - 1].strip()[:140]}"
            )


def bindings(tree: ast.AST, lines: list[str]) -> list[tuple[int, int, str, str]]:
    found: list[tuple[int, int, str, str]] = []

    def is_vague(name: str) -> bool:
        return name.strip("_").lower() in VAGUE

    def visit(node: ast.AST, scope: str) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if is_vague(node.name):
                    column = lines[node.lineno - 1].index(node.name, node.col_offset + 3)
                    found.append((node.lineno, column, node.name, scope + " def"))
                inner = f"{scope}.{node.name}".lstrip(".")
                for child in ast.iter_child_nodes(node):
                    visit(child, inner)
                return
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() | ast.Lambda():
                inner = f"{scope}@{node.lineno}:{node.col_offset}"
                for child in ast.iter_child_nodes(node):
                    visit(child, inner)
                return
            case ast.Name(ctx=ast.Store()) if is_vague(node.id):
                found.append((node.lineno, node.col_offset, node.id, scope))
            case ast.arg() if is_vague(node.arg):
                found.append((node.lineno, node.col_offset, node.arg, scope + " arg"))
            case ast.Attribute(ctx=ast.Store()) if is_vague(node.attr):
                found.append((node.end_lineno, node.end_col_offset - len(node.attr), node.attr, "attribute"))
            case ast.ExceptHandler() if node.name and is_vague(node.name):
                found.append(
                    (node.lineno, lines[node.lineno - 1].index(" as ", node.col_offset) + 4, node.name, scope)
                )
            case ast.MatchAs() | ast.MatchStar() if node.name and is_vague(node.name):
                found.append((node.end_lineno, node.end_col_offset - len(node.name), node.name, scope))
        for child in ast.iter_child_nodes(node):
            visit(child, scope)

    visit(tree, "")
    return found


# Applying


class Server:
    """A pyright language server, spoken to over its pipes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["basedpyright-langserver", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        self._number = 0
        self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": ROOT.as_uri(),
                "workspaceFolders": [{"uri": ROOT.as_uri(), "name": "x"}],
                "capabilities": {
                    "workspace": {"configuration": True},
                    "textDocument": {"rename": {"prepareSupport": False}},
                },
            },
        )
        self.tell("initialized", {})

    def ask(self, method: str, params: dict) -> object:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]
            if "method" in message and "id" in message:
                result = (
                    [None for _ in message["params"]["items"]]
                    if message["method"] == "workspace/configuration"
                    else None
                )
                self._send({"id": message["id"], "result": result})

    def tell(self, method: str, params: dict) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict:
        length = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self._process.stdout.read(length))


def apply(listing: Path) -> None:
    server = Server()
    edits: dict[Path, dict[tuple[int, int, int], str]] = {}
    opened: set[Path] = set()
    wanted = [
        parsed(line)
        for line in listing.read_text().splitlines()
        if " -> " in line and not line.startswith("#")
    ]
    for count, (path, line, column, old, new) in enumerate(wanted, 1):
        if path not in opened:
            opened.add(path)
            server.tell(
                "textDocument/didOpen",
                {
                    "textDocument": {
                        "uri": path.as_uri(),
                        "languageId": "python",
                        "version": 1,
                        "text": path.read_text(),
                    }
                },
            )
        assert path.read_text().split("\n")[line - 1][column:].startswith(old), (
            f"{path}:{line}:{column} is not {old}"
        )
        result = server.ask(
            "textDocument/rename",
            {
                "textDocument": {"uri": path.as_uri()},
                "position": {"line": line - 1, "character": column},
                "newName": new,
            },
        )
        changes = {
            change["textDocument"]["uri"]: change["edits"]
            for change in (result or {}).get("documentChanges", ())
        }
        if not changes:
            print(f"{path}:{line}:{column} {old}: pyright changes nothing", file=sys.stderr)
        for uri, texts in changes.items():
            target = Path(uri.removeprefix("file://"))
            for edit in texts:
                start, end = edit["range"]["start"], edit["range"]["end"]
                edits.setdefault(target, {})[(start["line"], start["character"], end["character"])] = edit[
                    "newText"
                ]
        if count % 100 == 0:
            print(f"{count} of {len(wanted)}", file=sys.stderr)
    for path, changes in edits.items():
        write(path, changes)


def parsed(line: str) -> tuple[Path, int, int, str, str]:
    place, old, _, new = line.split("\t")[0].split()
    path, row, column = place.rsplit(":", 2)
    return ROOT / path, int(row), int(column), old, new


def write(path: Path, changes: dict[tuple[int, int, int], str]) -> None:
    lines = [line.encode("utf-16-le") for line in path.read_text().split("\n")]
    for (line, start, end), text in sorted(changes.items(), reverse=True):
        lines[line] = lines[line][: 2 * start] + text.encode("utf-16-le") + lines[line][2 * end :]
    path.write_text("\n".join(line.decode("utf-16-le") for line in lines))


if __name__ == "__main__":
    main()
