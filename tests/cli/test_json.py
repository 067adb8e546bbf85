"""What `--json` prints is what its schema in src/agent_logger/schemas says, for every command that has it."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from tests.commands import run_command
from tests.imports.bundles import line
from tests.recording.played import script
from tests.web.homes import SUB_AGENTS, demo, real_sessions

from agent_logger.cli import COMMANDS, module_of

ROOT = Path(__file__).parents[2]
RESULT = {"type": "result", "is_error": False, "session_id": SUB_AGENTS, "result": "Done.", "num_turns": 1}

# The name of the schema, and what is asked; DEMO stands for the demo's session, which the proxy has seen.
ASKED = [
    ("archive", ["archive"]),
    ("ca", ["ca"]),
    ("config", ["config"]),
    ("context", ["context"]),
    ("doctor", ["doctor"]),
    ("du", ["du"]),
    ("export", ["export", "DEMO", "--to", "md", "-o", "shared.md"]),
    ("find-agents", ["find"]),
    ("find", ["find", SUB_AGENTS]),
    ("import", ["import", "other.jsonl"]),
    ("import-list", ["import", "--list"]),
    ("ls", ["ls", "--all"]),
    ("restore", ["archive", "--restore", SUB_AGENTS, "--yes"]),
    ("rm", ["prune", "--older-than", "1d", "--dry-run"]),
    ("rm", ["rm", "DEMO", "--dry-run"]),
    ("run", ["run", "Fix the timer"]),
    ("search", ["search", "timer"]),
    ("show", ["show", "DEMO"]),
    ("show", ["show", SUB_AGENTS]),
    ("show-files", ["show", "DEMO", "--files"]),
    ("show-tools", ["show", "DEMO", "--tools"]),
    ("show-turn", ["show", "DEMO", "--turn", "0"]),
    ("show-wire", ["show", "DEMO", "--turn", "0", "--wire"]),
    ("status", ["status"]),
    ("tail", ["tail", "--session", "DEMO", "-n", "1"]),
    ("tree", ["tree", SUB_AGENTS]),
    ("usage", ["usage", "model"]),
    ("usage", ["usage", "tool"]),
    ("tag", ["tag", SUB_AGENTS, "todo", "--pin", "--note", "later"]),
    ("usage", ["usage", "session"]),
    ("usage-block", ["usage", "block"]),
    ("usage-explain", ["usage", "--explain", SUB_AGENTS]),
    ("verify", ["verify"]),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With sessions of all agents, the demo's, and a `claude` that says little."""
    home = tmp_path_factory.mktemp("home")
    real_sessions(home)
    (home / "DEMO").write_text(demo(home))
    (home / "bin").mkdir()
    script(home / "bin" / "claude", f"echo '{json.dumps(RESULT)}'")
    (home / "other.jsonl").write_bytes(line(1))
    for words in (["archive"], ["import", "other.jsonl"]):
        run_command(words, {"PATH": os.environ["PATH"], "HOME": str(home)}, folder=home)
    return home


def test_every_command_with_a_json_option_is_tested() -> None:
    commands = {name: import_module(module_of(name)).command for name in COMMANDS}
    assert {words[0] for _, words in ASKED} == {name for name, it in commands.items() if _has_json(it)}


def _has_json(command: click.Command) -> bool:
    return any("--json" in option.opts for option in command.params)


def test_every_command_schema_is_tested() -> None:
    schemas = {it.stem for it in (ROOT / "src/agent_logger/schemas").glob("*.json") if not it.stem.endswith("-log")}
    assert schemas == {schema for schema, _ in ASKED}


@pytest.mark.parametrize(("schema", "words"), ASKED, ids=lambda it: it if isinstance(it, str) else it[0])
def test_json_output_matches_its_schema(schema: str, words: list[str], home: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    told = _told(home, [(home / "DEMO").read_text() if it == "DEMO" else it for it in words])
    assert told or schema in ("status", "rm"), "something to look at"
    wanted = json.loads((ROOT / "src/agent_logger/schemas" / f"{schema}.json").read_text())
    jsonschema.Draft202012Validator(wanted).validate(told)


def _told(home: Path, words: list[str]) -> object:
    clean = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home)}
    if words[0] != "tail":
        return json.loads(run_command([*words, "--json"], clean, folder=home).stdout)
    line = [sys.executable, "-m", "agent_logger", *words, "--json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, env=clean, cwd=home, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        text = process.stdout.readline()
        process.terminate()  # it goes on until somebody ends it
    return json.loads(text)
