import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_logger.demo.proxied import calls
from agent_logger.files.parts import parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.logs.verify import log_files, verify_file
from agent_logger.model.records import ExchangeRecord, SessionEnd, SessionStart
from agent_logger.platform import size_of


def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "COLUMNS": "80"}


def demo(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "agent_logger", "demo", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment(tmp_path), cwd=tmp_path)


class Shown(NamedTuple):
    """What a demo printed, and where it recorded."""

    folder: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo")
    return Shown(folder / "s", demo(folder, "--once", "--sessions-dir", "s"))


def test_the_demo_records_a_conversation_and_shows_it(shown: Shown) -> None:
    done = shown.done
    assert done.returncode == 0
    [part] = parts_in(shown.folder)
    records = [item.value for item in read_log(part.folder, part.name)]
    assert [type(it) for it in records] == [
        SessionStart,
        ExchangeRecord,
        ExchangeRecord,
        ExchangeRecord,
        SessionEnd,
    ]
    for it in records:
        if isinstance(it, ExchangeRecord):
            assert it.user_input
            assert it.user_input in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("log:")) <= 80


def test_exchange_costs_add_up_to_the_total_of_the_client(shown: Shown) -> None:
    [part] = parts_in(shown.folder)
    records = [item.value for item in read_log(part.folder, part.name)]
    stats = [it.stats for it in records if isinstance(it, ExchangeRecord) and it.stats]
    [end] = [it for it in records if isinstance(it, SessionEnd)]
    assert end.total_cost_usd == pytest.approx(sum(it.cost_usd or 0 for it in stats))
    assert end.total_cost_usd == pytest.approx(stats[-1].reported_total_cost_usd)
    assert end.tools_used == {"Agent": 1, "Bash": 1, "Edit": 1, "Grep": 1}


def test_the_proxy_records_the_same_conversation(shown: Shown) -> None:
    done = shown.done
    seen = calls(shown.folder / "logs")
    assert [it.response and it.response.status for it in seen] == [200] * 8
    assert all(it.response and it.response.complete for it in seen)
    threads = [it.request.thread for it in seen]
    assert threads == ["main"] * 5 + [threads[5]] * 2 + ["main"]
    assert (threads[5] or "").startswith("agent:")
    assert done.stdout.count("agent:") == 2
    assert "12639" in done.stdout  # what the model was given to read last


def test_the_demo_writes_nothing_into_the_working_folder_or_the_home(tmp_path: Path) -> None:
    demo(tmp_path, "--once")
    assert [path.name.startswith("agent-logger-demo-") for path in tmp_path.iterdir() if path.name != "home"] == [True]


def test_an_unwritable_folder_is_a_one_line_error_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = demo(tmp_path, "--once", "--sessions-dir", "file/s")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("agent-logger: cannot write to ")
    assert done.stderr.count("\n") == 1


def test_the_demo_api_runs_until_ctrl_c_without_once(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "agent_logger", "demo"]
    child = subprocess.Popen(line, env=environment(tmp_path), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    assert any("keeps running" in line for line in child.stderr)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    child.stderr.close()


def test_a_killed_demo_loses_no_recorded_data(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "agent_logger", "demo", "--sessions-dir", "s"]
    child = subprocess.Popen(
        line, env=environment(tmp_path), cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not any(map(size_of, (tmp_path / "s").glob("*.live"))) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.kill()
    child.wait()
    assert _until_no_process_names(tmp_path), "the proxy ends with the demo"
    reports = [verify_file(path) for path in log_files(tmp_path / "s")]
    assert [bad for report in reports for bad in report.damage] == []
    assert sum(report.records for report in reports) > 0


def _until_no_process_names(folder: Path) -> bool:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        if str(folder) not in listed:
            return True
        time.sleep(0.1)
    return False
