"""`./dev`, the one script of the project, before anything is installed."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = (
    "sh",
    "cat",
    "chmod",
    "cksum",
    "cp",
    "dirname",
    "env",
    "grep",
    "id",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
    "rm",
    "sed",
    "tar",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script and what it reads, and nothing installed."""
    folder = tmp_path / "checkout"
    (folder / "benches").mkdir(parents=True)
    for name in ("dev", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def dev(
    checkout: Path, *arguments: str, python: str | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
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
    variables = {"PATH": str(programs), **(environment or {})}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


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
        script = f'#!/bin/sh\n[ "$2" = tests.components ] && exit\n{python}\n'
        (checkout / ".venv" / "bin" / name).write_text(script)
        os.chmod(checkout / ".venv" / "bin" / name, 0o755)
    (checkout / ".venv" / "installed").write_text(f"dev,clients {state}\n")


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


# What `python3 -m venv` makes here: a Python that writes down how it was called. pip prints what the real one does.
VENV_PYTHON = """
echo "$*" >> "$LOG/calls"
case "$*" in
*" pip "*)
    while [ "$1" != constraints.txt ]; do shift; done
    shift
    for refused in ${REFUSED:-}; do case "$*" in *"$refused"*) echo "ERROR: no $refused" >&2; exit 1 ;; esac; done
    echo "$*" >> "$LOG/pip"
    echo "Obtaining file:///checkout"
    echo "  Installing build dependencies: started"
    echo "Collecting click>=8.2 (from agent-logger==0.1.0)"
    echo "  Downloading click-8.5.1-py3-none-any.whl (126 kB)"
    echo "Requirement already satisfied: idna in x"
    echo "Collecting typing-extensions"
    echo "Installing collected packages: click, typing-extensions" ;;
"-c "*) exec "$REAL_PYTHON" "$@" ;;
"-m tests.components") cat "$LOG/missing" ;;
*" pytest "*)
    env > "$LOG/environment"
    ls "${PATH%%:*}" > "$LOG/programs"
    ls -a > "$LOG/files"
    case "$*" in *"$(cat "$LOG/failing")"*) exit 1 ;; esac ;;
esac
"""
PYTHON = """
case "$*" in
--version) echo Python 3.12.3 ;;
"-m venv "*)
    mkdir -p $3/bin
    cp "$LOG/venv_python" $3/bin/python
    for name in agent-logger ruff mypy; do cp "$LOG/venv_python" $3/bin/$name; done
    chmod +x $3/bin/* ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """A computer with a fresh checkout and a Python, on which nothing is installed."""

    checkout: Path
    log: Path

    def dev(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"LOG": str(self.log), "REAL_PYTHON": sys.executable, "HOME": "/nowhere", **environment}
        return dev(self.checkout, *arguments, python=PYTHON, environment=variables)

    def add_program(self, name: str, script: str) -> None:
        program = self.checkout.parent / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def read(self, name: str) -> list[str]:
        """Return what was written down since the last time."""
        path = self.log / name
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def fail_tests(self, arguments: str) -> None:
        """Let pytest fail if it is called with these."""
        (self.log / "failing").write_text(arguments)

    def lack(self, *components: str) -> None:
        (self.log / "missing").write_text("".join(f"{line}\n" for line in components))


@pytest.fixture
def machine(checkout: Path, tmp_path: Path) -> Machine:
    log = tmp_path / "log"
    log.mkdir()
    (log / "venv_python").write_text(f"#!/bin/sh\nLOG='{log}'\n{VENV_PYTHON}")
    (checkout / "tests").mkdir()
    machine = Machine(checkout, log)
    machine.lack()
    machine.fail_tests("none")
    return machine


@pytest.mark.parametrize("command", ["start", "demo"])
def test_start_and_demo_install_what_running_needs_and_nothing_else(machine: Machine, command: str) -> None:
    assert machine.dev(command).returncode == 0
    assert machine.read("pip") == ["-e ."]
    assert machine.read("calls")[-1] == command
    assert machine.dev(command).returncode == 0
    assert machine.read("pip") == []


def test_an_installation_names_its_size_and_each_package(machine: Machine) -> None:
    assert machine.dev("start").stderr.splitlines() == [
        "dev: installing into .venv with Python 3.12.3: what agent-logger needs, 80 MB",
        "dev:   what builds the package",
        "dev:   click",
        "dev:   typing-extensions",
        "dev:   unpacking all of them",
    ]


def test_test_adds_what_it_needs_to_the_packages_of_start(machine: Machine) -> None:
    machine.dev("start")
    machine.dev("check")
    machine.dev("test")
    assert machine.read("pip") == [
        "-e .",
        "-e .[dev]",
        "-e .[dev,clients]",
    ]
    for command in (["start"], ["check"], ["test", "tests/a.py"], ["test"]):
        assert machine.dev(*command).returncode == 0
    assert machine.read("pip") == [], "start after test has nothing to install"


@pytest.mark.parametrize(
    ("first", "extras"), [(["start"], ""), (["check"], "[dev]"), (["test"], "[dev,clients]")]
)
def test_other_requirements_renew_all_that_was_installed(
    machine: Machine, first: list[str], extras: str
) -> None:
    machine.dev(*first)
    machine.read("pip")
    with (machine.checkout / "pyproject.toml").open("a") as project:
        project.write("# more\n")
    machine.dev("start")
    assert machine.read("pip") == [f"-e .{extras}"]


def test_what_pip_cannot_install_is_an_error(machine: Machine) -> None:
    for command, error in (
        (["start"], "pip could not install agent-logger and what it needs"),
        (["check"], "pip could not install the tools of tests and checks"),
    ):
        done = machine.dev(*command, REFUSED="-e")
        assert done.returncode == 1
        assert done.stderr.endswith(f"ERROR: no -e\ndev: {error}\n")
        machine.read("calls")
    assert machine.dev("start").returncode == 0, "it is tried again"


def test_clients_are_installed_one_by_one_if_pip_cannot_install_them_all(machine: Machine) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    clients = project["optional-dependencies"]["clients"]
    done = machine.dev("test", REFUSED="clients openai")
    assert done.returncode == 0
    others = [name for name in clients if not name.startswith("openai")]
    assert machine.read("pip") == ["-e .[dev]", *others]
    assert "dev: pip could not install openai>=" in done.stderr
    machine.dev("test", "tests/a.py")
    assert machine.read("pip") == [], "a test of one's choice does not wait for them"
    machine.dev("test")
    assert machine.read("pip") == ["-e .[dev,clients]"], "all tests try again"


def test_without_network_the_tools_that_are_installed_do(machine: Machine) -> None:
    machine.dev("check")
    assert machine.dev("test", REFUSED="-e >=").returncode == 0
    assert any("pytest" in call for call in machine.read("calls"))


def test_a_missing_component_is_named_with_its_reason_and_counted_at_the_end(machine: Machine) -> None:
    machine.lack("codex: npm not on the PATH", "zsh: not on the PATH, and only root can install it")
    done = machine.dev("test")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-3:] == [
        "dev: skipping codex: npm not on the PATH",
        "dev: skipping zsh: not on the PATH, and only root can install it",
        "dev: skipped the tests of 2 missing components: codex zsh",
    ]
    machine.lack()
    assert "skip" not in machine.dev("test").stderr


def test_the_count_of_missing_components_does_not_hide_a_failure(machine: Machine) -> None:
    machine.lack("codex: npm not on the PATH")
    machine.fail_tests("-m not long")
    assert machine.dev("test").returncode == 1
    assert machine.dev("test", "tests/a.py").returncode == 1
    assert machine.dev("test", "--long").returncode == 0
    machine.fail_tests("-m long")
    assert machine.dev("test", "--long").returncode == 1


def test_npm_installs_real_clients_once(machine: Machine) -> None:
    machine.add_program("npm", 'echo "$@" >> "$LOG/npm"; pwd > "$LOG/folder"; ls > "$LOG/files"')
    machine.dev("setup")
    assert machine.read("folder") == [str(machine.checkout / ".components")]
    assert machine.read("files") == ["package.json"], "without it npm would look for one in the folders above"
    [call] = machine.read("npm")
    for name in ("@openai/codex@", "@google/gemini-cli@", "opencode-ai@", "ccusage@", "axe-core@"):
        assert f" {name}" in call
    for command in (["test"], ["test", "tests/a.py"], ["test", "--long"], ["setup"], ["start"]):
        machine.dev(*command)
    assert machine.read("npm") == []
    (machine.checkout / ".components" / "installed").write_text("older ones\n")
    machine.dev("setup")
    assert len(machine.read("npm")) == 1


def test_tests_of_ones_choice_do_not_wait_for_npm(machine: Machine) -> None:
    machine.add_program("npm", 'echo "$@" >> "$LOG/npm"')
    done = machine.dev("test", "tests/a.py")
    assert machine.read("npm") == []
    assert machine.read("pip") == ["-e .[dev]"]
    assert "real clients are missing" in done.stderr


def test_what_npm_cannot_install_is_skipped_and_tried_again(machine: Machine) -> None:
    machine.add_program("npm", 'echo "$@" >> "$LOG/npm"; exit 1')
    for _ in range(2):
        done = machine.dev("test")
        assert done.returncode == 0
        assert "npm could not install them" in done.stderr
        assert len(machine.read("npm")) == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "user", "installs"),
    [
        pytest.param(["test"], {}, 0, False, id="root"),
        pytest.param(["test", "--full"], {}, 0, True, id="root, --full"),
        pytest.param(["test", "--full", "tests/a.py"], {}, 0, True, id="root, --full and a path"),
        pytest.param(["setup", "--full"], {}, 0, True, id="root, setup --full"),
        pytest.param(["setup"], {}, 0, False, id="root, setup"),
        pytest.param(["test"], {"CI": "true"}, 0, True, id="root, CI"),
        pytest.param(["test", "tests/a.py"], {"CI": "true"}, 0, False, id="root, CI, a path"),
        pytest.param(["test", "--full"], {"CI": "true"}, 1000, False, id="not root"),
    ],
)
def test_apt_get_is_for_root_in_ci_or_with_full(
    machine: Machine, arguments: list[str], environment: dict[str, str], user: int, installs: bool
) -> None:
    machine.add_program("apt-get", 'echo "$@" >> "$LOG/apt"')
    machine.add_program("id", f"echo {user}")
    for name in ("chromium", "fish", "strace"):
        machine.add_program(name, "")
    assert machine.dev(*arguments, **environment).returncode == 0
    calls = machine.read("apt")
    assert bool(calls) is installs
    if installs:
        assert "zsh" in calls[1]
        assert "strace" not in calls[1], "it is here"


def test_what_apt_get_cannot_install_is_skipped(machine: Machine) -> None:
    machine.add_program("apt-get", "exit 100")
    machine.add_program("id", "echo 0")
    done = machine.dev("test", "--full")
    assert done.returncode == 0
    assert "apt-get could not install chromium fish" in done.stderr


def test_bare_runs_tests_with_the_tools_alone(machine: Machine, tmp_path: Path) -> None:
    for name in ("npm", "node", "strace", "zsh"):
        machine.add_program(name, "exit 1")
    (machine.checkout / ".components").mkdir()
    (machine.checkout / ".venv").mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = machine.dev("bare", TMPDIR=str(temporary), CI="true")
    assert done.returncode == 0, done.stderr
    assert machine.read("pip") == ["-e .[dev]"]
    assert sum("pytest" in call for call in machine.read("calls")) == 2
    environment = dict(line.split("=", 1) for line in machine.read("environment") if "=" in line)
    assert "CI" not in environment
    assert Path(environment["HOME"]).is_relative_to(temporary)
    programs = machine.read("programs")
    assert {"npm", "node", "strace", "zsh"}.isdisjoint(programs)
    assert {"sh", "python3"} <= set(programs)
    files = machine.read("files")
    assert "pyproject.toml" in files
    assert ".components" not in files
    assert list(temporary.iterdir()) == [], "it leaves nothing behind"


@pytest.mark.parametrize("failing", ["-m needs and", "-m not needs and"])
def test_bare_fails_if_tests_do(machine: Machine, failing: str) -> None:
    machine.fail_tests(failing)
    assert machine.dev("bare").returncode == 1
