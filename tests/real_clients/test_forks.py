"""Real forks of a real client, after which trunk and forks go on: each is under the session it was forked from."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run_command

from .running import Ran, run_directly, run_recorded
from .scenarios import FORKS_GO_ON
from .test_real_clients import assert_same

pytestmark = pytest.mark.needs("claude")
STARTS = (
    "01",
    "02",
    "05",
    "07",
)  # the steps that began a session: trunk, fork, fork of the fork, second fork
EXPECTED: Any = ("01", [("02", [("05", [])]), ("07", [])])


@dataclass(frozen=True)
class Runs:
    """Of the same commands, without a proxy and through one, each with what is in its home afterwards."""

    direct: Ran
    direct_home: Path
    recorded: Ran
    recorded_home: Path
    log_dir: Path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("forks")
    homes = folder / "direct", folder / "recorded"
    direct = run_directly(FORKS_GO_ON, folder / "run")
    shutil.copytree(folder / "run/home", homes[0], symlinks=True)
    recorded, log_dir = run_recorded(FORKS_GO_ON, folder / "run", folder / "proxy")
    shutil.copytree(folder / "run/home", homes[1], symlinks=True)
    shutil.copytree(folder / "proxy/home/.agent-logger", homes[1] / ".agent-logger", dirs_exist_ok=True)
    return Runs(direct, homes[0], recorded, homes[1], log_dir)


@pytest.fixture
def direct_home(runs: Runs, tmp_path: Path) -> Path:
    return shutil.copytree(runs.direct_home, tmp_path / "copy", symlinks=True)


@pytest.fixture
def recorded_home(runs: Runs, tmp_path: Path) -> Path:
    return shutil.copytree(runs.recorded_home, tmp_path / "copy", symlinks=True)


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


def test_a_forking_client_behaves_the_same_through_the_proxy(runs: Runs) -> None:
    assert_same(FORKS_GO_ON, runs.direct, runs.recorded, runs.log_dir)


def test_forks_are_listed_under_their_parents_when_all_continue(runs: Runs, direct_home: Path) -> None:
    check_trees(runs.direct, direct_home)
    spent = sum(row["cost_usd"] for row in answered(direct_home, "ls"))
    trunk = json.loads(runs.direct.finished["01"].stdout)["session_id"]
    for path in direct_home.glob(f".claude/projects/*/{trunk}.jsonl"):
        path.unlink()
    left = answered(direct_home, "ls")
    own = answered(direct_home, "usage")["totals"]["cost_usd"]
    assert len(left) == len(STARTS) - 1
    assert own == pytest.approx(sum(row["cost_usd"] for row in left))
    assert own < spent  # what the trunk alone had is gone, and nothing is counted twice


def test_forks_recorded_by_the_proxy_form_the_same_trees(runs: Runs, recorded_home: Path) -> None:
    check_trees(runs.recorded, recorded_home)
    shutil.rmtree(recorded_home / ".claude")
    assert runs.log_dir.exists()
    check_trees(runs.recorded, recorded_home)
