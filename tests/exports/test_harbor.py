"""ATIF as Harbor sees it: its validator takes every recorded session, and its own converters agree with ours."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_logger.agents.registry import AGENTS
from tests.agents.foreign import DATA
from tests.catalog.test_all_agents import Recording, recordings
from tests.clients import find_harbor
from tests.commands import run_command

pytestmark = [pytest.mark.long, pytest.mark.needs("harbor")]

CLAUDE_CODE = next(agent for agent in AGENTS if agent.name == "claude-code")
BY_SDK = [Recording(CLAUDE_CODE, home.parent) for home in sorted(DATA.glob("claude-agent-sdk/*/*/home"))]
RECORDINGS = [*recordings(), *BY_SDK]
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


def exported(recording: Recording, folder: Path) -> list[Path]:
    home = folder / "home"
    recording.copy(home)
    own = {"HOME": str(home), "AGENT_LOGGER_AGENT_FOLDERS": f"{home},{home / 'project'}"}
    environment = {"PATH": os.environ["PATH"], **own}
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
    files = [file for number, each in enumerate(RECORDINGS) for file in exported(each, tmp_path / str(number))]
    results = harbor([{"ours": str(file), "converter": None, "folder": None} for file in files])
    assert len(results) == len(files) > 100
    wrong = {file.name: result["errors"] for file, result in zip(files, results, strict=True) if result["errors"]}
    assert wrong == {}
    assert {json.loads(file.read_text())["agent"]["name"] for file in files} == {each.agent.name for each in RECORDINGS}


def test_the_validator_refuses_a_wrong_trajectory(tmp_path: Path) -> None:
    (file,) = exported(
        next(each for each in RECORDINGS if each.name == "claude-cli/2.1.325/subagents"), tmp_path / "one"
    )
    wrong = json.loads(file.read_text())
    wrong["steps"][0]["step_id"] = 7
    file.write_text(json.dumps(wrong))
    (result,) = harbor([{"ours": str(file), "converter": None, "folder": None}])
    assert result["errors"]


def items_of(recording: Recording, folder: Path) -> list[dict[str, Any]]:
    """The sessions of a home, each with a folder of its own files."""
    items = []
    files = {file.name.removesuffix(".atif.json"): file for file in exported(recording, folder)}
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
    chosen = [each for each in RECORDINGS if each.agent.name in ("claude-code", "codex")]
    by_name = {each.name: items_of(each, tmp_path / str(at)) for at, each in enumerate(chosen)}
    names = [name for name, items in by_name.items() for _ in items]
    results = harbor([item for items in by_name.values() for item in items])
    pairs = list(zip(names, results, strict=True))
    differing = {name: result for name, result in pairs if result["theirs"] and result["theirs"] != result["ours"]}
    assert {name: result for name, result in differing.items() if name not in DIFFER} == {}
    assert sum(result["theirs"] == result["ours"] for result in results) >= 60
