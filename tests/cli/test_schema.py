"""`agent-logger schema`: the JSON schemas that are part of the package."""

import json
import os
import re
from pathlib import Path

import pytest
from tests.commands import run_command

from agent_logger.cli import COMMANDS

CLEAN = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "COLUMNS": "80"}
FOLDER = Path(__file__).parents[2] / "src/agent_logger/schemas"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def test_without_a_name_every_schema_is_listed_in_a_line() -> None:
    done = run_command(["schema"], CLEAN)
    head, *rows = done.stdout.splitlines()
    assert (done.returncode, head.split()) == (0, ["schema", "describes"])
    assert [row.split()[0] for row in rows] == NAMES
    assert all(len(row.split()) > 3 for row in rows), "each says what it describes"


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_printed_as_json(name: str) -> None:
    done = run_command(["schema", name], CLEAN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (FOLDER / f"{name}.json").read_text()
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("wirelog", "did you mean wire-log"),
        ("show_turn", "did you mean show-turn"),
        ("qqqq", "'agent-logger schema' lists them"),
        ("../model/prices", "'agent-logger schema' lists them"),
    ],
)
def test_an_unknown_name_is_an_error_with_advice(name: str, advice: str) -> None:
    done = run_command(["schema", name], CLEAN)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no schema {name!r}; {advice}" in done.stderr


def test_descriptions_have_no_indentation_of_source_code() -> None:
    indented = [name for name in NAMES if re.search(r"\\n +", (FOLDER / f"{name}.json").read_text())]
    assert indented == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_schemas_that_exist(command: str) -> None:
    text = " ".join(run_command([command, "--help"], CLEAN).stdout.split())
    named = set(re.findall(r"agent-logger schema ([a-z-]+)'", text))
    assert named <= set(NAMES)
    assert "--json" not in text.partition("Options:")[2] or "agent-logger schema" in text
