"""Real forks of a real client, after which trunk and forks go on: each is under the session it was forked from."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run_command

from .running import Ran, run_directly, run_recorded
from .scenarios import CLAUDE, SCENARIOS

GO_ON = next(it for it in SCENARIOS if it.fixture == f"{CLAUDE}/forks_go_on")
STARTS = (
    "01",
    "02",
    "05",
    "07",
)  # the steps that began a session: trunk, fork, fork of the fork, second fork
EXPECTED: Any = ("01", [("02", [("05", [])]), ("07", [])])


def answered(home: Path, *arguments: str) -> Any:
    done = run_command([*arguments, "--json"], {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_trees(ran: Ran, home: Path) -> None:
    names = {json.loads(ran.finished[step].stdout)["session_id"]: step for step in STARTS}

    def shape(node: Any) -> Any:
        return names[node["id"]], [shape(it) for it in node["forks"]]

    assert [shape(answered(home, "tree", it)) for it in names] == [EXPECTED] * len(names)
    listed = {names[it["id"]]: it for it in answered(home, "ls")}
    assert {it: (row["turns"], row["inherited_exchanges"]) for it, row in listed.items()} == {
        "01": (3, 0),
        "02": (3, 1),
        "05": (1, 3),
        "07": (2, 2),
    }


@pytest.mark.needs("claude")
def test_forks_are_under_their_sessions_when_all_of_them_go_on(tmp_path: Path) -> None:
    ran = run_directly(GO_ON, tmp_path / "run")
    assert ran.sandbox
    home = ran.sandbox.home
    check_trees(ran, home)
    spent = sum(row["cost_usd"] for row in answered(home, "ls"))
    trunk = json.loads(ran.finished["01"].stdout)["session_id"]
    for path in home.glob(f".claude/projects/*/{trunk}.jsonl"):
        path.unlink()
    left = answered(home, "ls")
    own = answered(home, "usage")["totals"]["cost_usd"]
    assert len(left) == len(STARTS) - 1
    assert own == pytest.approx(sum(row["cost_usd"] for row in left))
    assert own < spent  # what the trunk alone had is gone, and nothing is counted twice


@pytest.mark.needs("claude")
def test_forks_that_the_proxy_saw_are_the_same_trees(tmp_path: Path) -> None:
    ran, log_dir = run_recorded(GO_ON, tmp_path / "run", tmp_path / "proxy")
    assert ran.sandbox
    home = ran.sandbox.home
    shutil.copytree(tmp_path / "proxy/home/.agent-logger", home / ".agent-logger", dirs_exist_ok=True)
    check_trees(ran, home)
    shutil.rmtree(home / ".claude")
    assert log_dir.exists()
    check_trees(ran, home)
