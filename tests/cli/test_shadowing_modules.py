"""Folders of other people that have modules named like those we import."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "agent_logger"
PROGRAM = Path(sys.executable).with_name("agent-logger")
SHADOW = """
import os
open(os.path.join(os.path.dirname(__file__), "imported"), "a").write(__name__ + "\\n")
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with a module for each of the standard library's and ours, which notes that it was imported."""
    folder = tmp_path / "repository"
    folder.mkdir()
    others = {"agent_logger", "msgspec", "click", "rich", "starlette", "uvicorn", "uvloop", "jinja2"}
    for name in {*sys.stdlib_module_names, *others} - {"os", "sys"}:
        (folder / f"{name}.py").write_text(SHADOW)
    return folder


def environment(repository: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(repository.parent), "NO_COLOR": "1"}


def imported(repository: Path) -> set[str]:
    file = repository / "imported"
    return set(file.read_text().split()) if file.exists() else set()


def agent_logger(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], cwd=repository, env=environment(repository), capture_output=True, text=True, timeout=60
    )


def test_the_modules_would_be_imported_by_a_python_that_looks_there(repository: Path) -> None:
    subprocess.run([sys.executable, "-m", "agent_logger"], cwd=repository, env=environment(repository), check=False)
    assert imported(repository)


def test_no_process_imports_modules_of_the_working_folder(repository: Path) -> None:
    words = [str(PROGRAM), "start", "--port", "0", "--page-port", "0", "--no-open", "--workers", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=repository, env=environment(repository), stdout=pipe, stderr=pipe) as proxy:
        try:
            until = time.monotonic() + 60
            while True:
                proxies = json.loads(agent_logger(repository, "status", "--json").stdout)
                if any(each["recording"] and each["workers_listening"] == 2 for each in proxies):
                    break
                assert proxy.poll() is None and time.monotonic() < until
                time.sleep(0.1)
            assert agent_logger(repository, "run", "--", "true").returncode == 0
            assert agent_logger(repository, "ls").returncode == 0
        finally:
            proxy.send_signal(signal.SIGTERM)
            _, said = proxy.communicate(timeout=30)
    assert b"starting another" not in said
    assert not imported(repository)


def test_a_run_without_a_running_proxy_imports_no_modules_of_the_working_folder(repository: Path) -> None:
    done = agent_logger(repository, "run", "--", "true")
    assert done.returncode == 0 and "proxy_not_started" not in done.stderr
    assert not imported(repository)


def test_only_one_place_builds_the_command_of_a_python_process() -> None:
    """Otherwise the test above would have to know each process."""
    files = [
        file.relative_to(SOURCES) for file in SOURCES.rglob("*.py") if re.search(r"sys\.executable", file.read_text())
    ]
    assert files == [Path("platform.py")]
