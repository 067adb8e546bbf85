"""What docs/catalog.md shows runs, and its tables are those of the catalog."""

import re
from pathlib import Path

import pytest

from agent_logger import Catalog
from agent_logger.catalog.sqlite.schema import CATALOG, TEXT_INDEX
from tests.catalog.catalogs import ID, claude_file, tool, user

PAGE = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_runs(number: int, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = ID.format(1)
    failed = tool(2, name, "Bash", {"command": "make"}, "connection refused", failed=True)
    claude_file(home, name, [user(1, "Mend the build", name), *failed])
    exec(compile(EXAMPLES[number], "docs/catalog.md", "exec"), {})
    told = capsys.readouterr().out
    assert ("Mend the build" in told) or ("Bash" in told), told


def test_every_catalog_method_is_documented() -> None:
    for name in dir(Catalog):
        if not name.startswith("_") and name not in ("close", "open"):
            assert f"`{name}" in PAGE or f"{name}(" in PAGE, name


def test_every_table_of_the_schema_is_documented() -> None:
    shown = "\n".join(re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL))
    for schema in (CATALOG, TEXT_INDEX):
        for table in re.findall(r"CREATE (?:TABLE|VIEW) (\w+)", schema.sql):
            assert f" {table} " in shown, table
