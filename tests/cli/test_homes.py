"""`--home` and `--machine` of the reading commands."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_command

from agent_logger.archive.run import archive_all
from agent_logger.demo.recorded import record_demo
from agent_logger.home.facts import register_log_folder

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the homes of a laptop and of a desk, and a user `me` who has recorded nothing."""
    folder = tmp_path_factory.mktemp("machines")
    with pytest.MonkeyPatch.context() as there:
        for name, tree in (("laptop", "codex/0.166.0/exec_resume"), ("desk", "claude-cli/2.1.325/resume_chain")):
            shutil.copytree(DATA / tree / "home", folder / name)
            there.setenv("HOME", str(folder / name))
            there.delenv("CODEX_HOME", raising=False)
            archive_all(folder / name / ".agent-logger")
            (folder / name / ".agent-logger/machine.json").write_text(json.dumps({"machine": name}))
    laptop = folder / "laptop/.agent-logger"
    record_demo(laptop / "sessions", pace=0.0)
    register_log_folder(laptop, laptop / "sessions/logs")
    register_log_folder(laptop, Path("/home/alice/work/logs"))
    (folder / "me").mkdir()
    return folder


def run(machines: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(machines / "me"), "COLUMNS": "200", "TZ": "UTC"}
    return run_command(list(arguments), environment, folder=machines)


LAPTOP, DESK = "laptop/.agent-logger", "desk/.agent-logger"
BOTH = ("--home", LAPTOP, "--home", DESK)


def test_ls_has_a_column_for_machines_only_if_there_are_several(machines: Path) -> None:
    both, one = run(machines, "ls", *BOTH).stdout.splitlines(), run(machines, "ls", "--home", LAPTOP).stdout
    assert both[0].split()[-1] == "machine"
    assert {row.split()[-1] for row in both[1:]} == {"laptop", "desk"}
    assert "machine" not in one and "desk" not in one
    rows = json.loads(run(machines, "ls", *BOTH, "--machine", "desk", "--json").stdout)
    assert rows and {tuple(row["machines"]) for row in rows} == {("desk",)}


def test_usage_by_machine_is_the_sum_of_the_homes(machines: Path) -> None:
    report = json.loads(run(machines, "usage", "machine", *BOTH, "--json").stdout)
    alone = {
        home.partition("/")[0]: json.loads(run(machines, "usage", "--home", home, "--json").stdout)["totals"]
        for home in (LAPTOP, DESK)
    }
    assert {row["key"]: row["responses"] for row in report["rows"]} == {
        name: totals["responses"] for name, totals in alone.items()
    }
    assert report["totals"]["output_tokens"] == sum(totals["output_tokens"] for totals in alone.values())
    filtered = json.loads(run(machines, "usage", *BOTH, "--machine", "desk", "--json").stdout)
    assert filtered["totals"] == alone["desk"]


READING = [
    ("ls",),
    ("show", "last"),
    ("search", "timer"),
    ("tree", "last"),
    ("cat", "last"),
    ("find", "last"),
    ("usage", "--explain", "last"),
    ("export", "last", "--to", "json"),
    ("export", "last", "--to", "wire"),
    ("export", "--to", "md", "--machine", "desk", "-o", "{out}/"),
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_every_reading_command_takes_homes(machines: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    written = [argument.format(out=tmp_path) for argument in arguments]
    if written[-1] == "wire":
        written[1] = next((machines / LAPTOP / "sessions/logs").glob("*/2*.jsonl")).stem
    done = run(machines, *written, *BOTH)
    assert done.returncode == 0 and (done.stdout or list(tmp_path.iterdir())), done.stderr


def test_a_log_that_two_homes_have_is_printed_once(machines: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(machines / LAPTOP, copied)
    (copied / "machine.json").write_text(json.dumps({"home": str(machines / LAPTOP)}))
    longest = max((copied / "sessions/logs").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    longest.write_bytes(longest.read_bytes().rpartition(b"\n{")[0] + b"\n")
    one, both = (
        run(machines, "cat", "last", "--home", LAPTOP),
        run(machines, "cat", "last", "--home", str(copied), "--home", LAPTOP),
    )
    assert sorted(both.stdout.splitlines()) == sorted(one.stdout.splitlines()) != []


def test_recordings_outside_of_a_home_are_named(machines: Path) -> None:
    done = run(machines, "ls", *BOTH)
    assert f"not read, because outside of {machines / LAPTOP}: /home/alice/work/logs" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["ls", "--home", "nowhere"], "--home nowhere: cannot read this folder: No such file or directory"),
        (["ls", "--home", "laptop"], "/laptop/.agent-logger?"),
        (["usage", "--home", LAPTOP, "--home", f"./{LAPTOP}"], "is the same home as --home"),
        (["ls", "--home", LAPTOP, "--machine", "desk"], "no machine 'desk'; the sessions are of laptop"),
    ],
)
def test_a_wrong_home_or_machine_is_an_error_of_usage(machines: Path, arguments: list[str], error: str) -> None:
    done = run(machines, *arguments)
    assert done.returncode == 2 and not done.stdout
    assert error in done.stderr.splitlines()[-1]


def test_a_running_page_is_used_for_the_same_homes_alone(machines: Path) -> None:
    from agent_logger.home.homes import homes_of
    from agent_logger.proxy.state import Announcement, PageState
    from agent_logger.web.server import link_to_running

    own = machines / "me/.agent-logger"
    both, one = homes_of(own, [machines / LAPTOP, machines / DESK]), homes_of(own, [machines / LAPTOP])
    state = PageState(pid=os.getpid(), started="", port=8081, version="", homes=tuple(both.folders))
    announced = Announcement(own, state)
    try:
        assert link_to_running(both)
        assert link_to_running(one) is None and link_to_running(homes_of(own, [])) is None
    finally:
        announced.close()
