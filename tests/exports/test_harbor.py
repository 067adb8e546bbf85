"""ATIF as Harbor sees it: its validator takes every recorded session, and its own converters agree with ours."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients import find_harbor
from tests.commands import run_command

pytestmark = [pytest.mark.long, pytest.mark.needs("harbor")]

DATA = Path(__file__).parents[1] / "data"
HOMES = sorted(DATA.glob("*/*/*/home"))
CHECK = Path(__file__).parent / "harbor_check.py"

# Recordings on which the converters differ, with the reason.
SYNTHETIC = "what a client says in the model's name is no response of a model here"
THREADS = "sub-agents in files of their own, and copies in forks, are told apart here"
DIFFER = {
    "claude-agent-sdk/0.2.182/api_error_529": SYNTHETIC,
    "claude-cli/2.1.325/api_error_400": SYNTHETIC,
    "claude-cli/2.1.325/api_error_529": SYNTHETIC,
    "claude-cli/2.1.325/kill9_resume": SYNTHETIC,
    "claude-cli/2.1.4/tools_stream": "side calls are no steps here",
    "codex/0.118.0/app_server": THREADS,
    "codex/0.166.0/app_server": THREADS,
    "codex/0.166.0/tools_fork_failure": "the search of the web has the name of the tool here, and of its item there",
    "codex/0.50.0/exec_resume": "a resumed session repeats its counters, which are counted once there",
}


def exported(home: Path, folder: Path) -> list[Path]:
    shutil.copytree(home, folder / "home")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home")}
    done = run_command(["export", "--to", "atif", "--yes", "-o", f"{folder}/out/"], environment, folder=folder)
    assert done.returncode == 0, done.stderr
    return sorted((folder / "out").glob("*.atif.json"))


def harbor(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    given = "".join(json.dumps(item) + "\n" for item in items)
    command = [str(find_harbor()), str(CHECK)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_the_validator_takes_every_recorded_session(tmp_path: Path) -> None:
    files = [file for number, home in enumerate(HOMES) for file in exported(home, tmp_path / str(number))]
    results = harbor([{"ours": str(file), "converter": None, "folder": None} for file in files])
    assert len(results) == len(files) > 100
    wrong = {file.name: result["errors"] for file, result in zip(files, results, strict=True) if result["errors"]}
    assert wrong == {}


def test_the_validator_refuses_a_wrong_trajectory(tmp_path: Path) -> None:
    (file,) = exported(DATA / "claude-cli/2.1.325/subagents/home", tmp_path / "one")
    wrong = json.loads(file.read_text())
    wrong["steps"][0]["step_id"] = 7
    file.write_text(json.dumps(wrong))
    (result,) = harbor([{"ours": str(file), "converter": None, "folder": None}])
    assert result["errors"]


def items_of(home: Path, folder: Path) -> list[dict[str, Any]]:
    """The sessions of a home, each with a folder of its own files."""
    items = []
    files = {file.name.removesuffix(".atif.json"): file for file in exported(home, folder)}
    for kind, pattern in (("claude", ".claude/projects/*/*.jsonl"), ("codex", ".codex/sessions/*/*/*/*.jsonl")):
        for path in (folder / "home").glob(pattern):
            session = path.stem if kind == "claude" else path.stem[-36:]
            if session in files:
                own = folder / "sessions" / session
                own.mkdir(parents=True)
                shutil.copy(path, own)
                if path.with_suffix("").is_dir():
                    shutil.copytree(path.with_suffix(""), own / session)
                items.append({"ours": str(files[session]), "converter": kind, "folder": str(own)})
    return items


def test_converters_of_harbor_agree_in_steps_tools_and_tokens(tmp_path: Path) -> None:
    homes = [home for home in HOMES if home.parts[-4] in ("claude-cli", "claude-agent-sdk", "codex")]
    by_home = {"/".join(home.parts[-4:-1]): items_of(home, tmp_path / str(at)) for at, home in enumerate(homes)}
    names = [name for name, items in by_home.items() for _ in items]
    results = harbor([item for items in by_home.values() for item in items])
    pairs = list(zip(names, results, strict=True))
    differing = {name: result for name, result in pairs if result["theirs"] and result["theirs"] != result["ours"]}
    assert {name: result for name, result in differing.items() if name not in DIFFER} == {}
    assert sum(result["theirs"] == result["ours"] for result in results) >= 60
