"""`./dev`, the one script of the project, before anything is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("sh", "cat", "cksum", "dirname", "ls", "sed", "grep", "id", "env")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script and what it reads, and nothing installed."""
    folder = tmp_path / "checkout"
    (folder / "benches").mkdir(parents=True)
    for name in ("dev", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def dev(checkout: Path, *arguments: str, python: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run it where there is no Python but the one given, a script."""
    programs = checkout.parent / "bin"
    programs.mkdir(exist_ok=True)
    for name in NEEDED:
        found = shutil.which(name)
        assert found, name
        if not (programs / name).exists():
            (programs / name).symlink_to(found)
    if python:
        (programs / "python3").write_text(f"#!/bin/sh\n{python}\n")
        (programs / "python3").chmod(0o755)
    command = [str(checkout / "dev"), *arguments]
    return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)


def test_help_lists_the_commands_and_installs_nothing(checkout: Path) -> None:
    for arguments in ([], ["help"], ["--help"]):
        done = dev(checkout, *arguments)
        assert done.returncode == 0
        assert "./dev start" in done.stdout
        assert "./dev test" in done.stdout
    assert not (checkout / ".venv").exists()


def test_a_command_it_does_not_have_is_an_error(checkout: Path) -> None:
    done = dev(checkout, "strat")
    assert done.returncode == 1
    assert "no command 'strat'" in done.stderr
    assert dev(checkout, "setup", "--fool").returncode == 1


def test_without_python_it_says_what_to_install(checkout: Path) -> None:
    done = dev(checkout, "test")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_an_old_python_does_not_count(checkout: Path) -> None:
    done = dev(checkout, "test", python="exit 1")
    assert "needs Python 3.11 or newer" in done.stderr


def test_a_python_without_venv_is_named_with_the_package_that_is_missing(checkout: Path) -> None:
    done = dev(checkout, "test", python='case "$2" in *venv*) exit 1;; esac')
    assert done.returncode == 1
    assert done.stderr == "dev: python3 has no venv module (Debian: apt-get install python3-venv)\n"


def install(checkout: Path, python: str = 'echo "ran $@"') -> None:
    """As if it had been, with a script for Python. The stamp names what was installed and from which files."""
    state = subprocess.run(
        ["sh", "-c", "cat pyproject.toml constraints.txt | cksum"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (checkout / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "agent-logger", "ruff", "mypy"):
        (checkout / ".venv" / "bin" / name).write_text(f"#!/bin/sh\n{python}\n")
        os.chmod(checkout / ".venv" / "bin" / name, 0o755)
    (checkout / ".venv" / "installed").write_text(f"dev {state}\n")


def test_what_is_installed_is_not_installed_again(checkout: Path) -> None:
    install(checkout)
    assert dev(checkout, "demo", "--once").stdout == "ran demo --once\n"
    with (checkout / "constraints.txt").open("a") as constraints:
        constraints.write("more==1\n")
    assert dev(checkout, "demo").returncode == 1, "it wants to install, and there is no Python"


def test_all_tests_are_run_side_by_side_but_those_that_want_to_be_alone(checkout: Path) -> None:
    install(checkout)
    (checkout / "tests").mkdir()
    (checkout / "tests" / "test_quick.py").write_text("")
    (checkout / "tests" / "test_speed.py").write_text("@pytest.mark.alone\n")
    assert dev(checkout, "test").stdout.splitlines() == [
        "ran -m pytest -m not long and not alone -n auto --dist worksteal",
        "ran -m pytest -m alone and not long tests/test_speed.py",
    ]


def test_arguments_go_to_one_pytest(checkout: Path) -> None:
    install(checkout)
    done = dev(checkout, "test", "tests/a.py", "-k", "b c")
    assert done.stdout == "ran -m pytest -m not long tests/a.py -k b c\n"
    assert dev(checkout, "test", "--long", "-x").stdout == "ran -m pytest -m long -x\n"


@pytest.mark.parametrize("failing", ["not long and not alone", "alone and not long"])
def test_tests_fail_if_any_do(checkout: Path, failing: str) -> None:
    install(checkout, f'echo ran; [ "$4" != "{failing}" ]')
    (checkout / "tests").mkdir()
    done = dev(checkout, "test")
    assert done.returncode == 1
    assert done.stdout == "ran\nran\n"


def test_tests_that_were_interrupted_are_not_gone_on_with(checkout: Path) -> None:
    install(checkout, "echo ran; exit 2")
    done = dev(checkout, "test")
    assert done.returncode == 2
    assert done.stdout == "ran\n"


@pytest.mark.parametrize("failing", ["format --check .", "check .", ""])
def test_a_check_fails_if_any_part_of_it_does(checkout: Path, failing: str) -> None:
    install(checkout, f'[ "$*" != "{failing}" ]')
    assert dev(checkout, "check").returncode == 1
