"""Values of enums are names, not sentences: they are states in code, in status files and in JSON."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "agent_logger"
NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def values() -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Enum") for base in node.bases):
                assigned = (line.value for line in node.body if isinstance(line, ast.Assign))
                constants = (value.value for value in assigned if isinstance(value, ast.Constant))
                yield from (value for value in constants if isinstance(value, str))


def test_every_enum_value_is_in_snake_case() -> None:
    texts = list(values())
    assert len(texts) > 10
    assert [text for text in texts if not NAME.fullmatch(text)] == []
