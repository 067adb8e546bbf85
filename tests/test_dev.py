"""`./dev`, the one script of the project, before anything is installed."""

import json
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
    "gzip",
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


def test_an_unknown_command_is_an_error(checkout: Path) -> None:
    done = dev(checkout, "strat")
    assert done.returncode == 1
    assert "no command 'strat'" in done.stderr
    assert dev(checkout, "setup", "--fool").returncode == 1


def test_the_error_without_python_names_the_packages_to_install(checkout: Path) -> None:
    done = dev(checkout, "test")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_an_old_python_is_rejected(checkout: Path) -> None:
    done = dev(checkout, "test", python="exit 1")
    assert "needs Python 3.11 or newer" in done.stderr


def test_the_error_for_a_python_without_venv_names_the_missing_package(checkout: Path) -> None:
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


def test_installed_packages_are_not_installed_again(checkout: Path) -> None:
    install(checkout)
    assert dev(checkout, "demo", "--once").stdout == "ran demo --once\n"
    with (checkout / "constraints.txt").open("a") as constraints:
        constraints.write("more==1\n")
    assert dev(checkout, "demo").returncode == 1, "it wants to install, and there is no Python"


def test_tests_run_in_parallel_except_those_marked_alone(checkout: Path) -> None:
    install(checkout)
    (checkout / "tests").mkdir()
    (checkout / "tests" / "test_quick.py").write_text("")
    (checkout / "tests" / "test_speed.py").write_text("@pytest.mark.alone\n")
    assert dev(checkout, "test").stdout.splitlines() == [
        "ran -m pytest -m not long and not alone -n auto --dist worksteal",
        "ran -m pytest -m alone and not long tests/test_speed.py",
    ]


def test_arguments_are_passed_to_a_single_pytest_run(checkout: Path) -> None:
    install(checkout)
    done = dev(checkout, "test", "tests/a.py", "-k", "b c")
    assert done.stdout == "ran -m pytest -m not long tests/a.py -k b c\n"
    assert dev(checkout, "test", "--long", "-x").stdout == "ran -m pytest -m long -x\n"


@pytest.mark.parametrize("failing", ["not long and not alone", "alone and not long"])
def test_the_test_command_fails_if_any_part_fails(checkout: Path, failing: str) -> None:
    install(checkout, f'echo ran; [ "$4" != "{failing}" ]')
    (checkout / "tests").mkdir()
    done = dev(checkout, "test")
    assert done.returncode == 1
    assert done.stdout == "ran\nran\n"


FAILING_TESTS = """
case "$*" in
"-c "*) exec "$REAL_PYTHON" "$@" ;;
*"$FAILING"*)
    mkdir -p .pytest_cache/v/cache
    echo "$FAILED" > .pytest_cache/v/cache/lastfailed
    exit 1 ;;
*--last-failed*) exit "$AGAIN" ;;
esac
"""


@pytest.mark.parametrize(
    ("failed", "again", "result"),
    [
        pytest.param(["a.py::b[c d]"], 0, 0, id="passes alone"),
        pytest.param(["a.py::b[c d]"], 1, 1, id="fails again"),
        pytest.param(list("abcdefghi"), 0, 1, id="too many to be an effect of the others"),
    ],
)
@pytest.mark.parametrize("failing", ["not long and not alone", "alone and not long"])
def test_a_few_failed_tests_run_once_more_alone_and_are_named(
    checkout: Path, failing: str, failed: list[str], again: int, result: int
) -> None:
    install(checkout, FAILING_TESTS)
    (checkout / "tests").mkdir()
    variables = {
        "REAL_PYTHON": sys.executable,
        "FAILING": f" {failing}",
        "FAILED": json.dumps(dict.fromkeys(failed, True)),
        "AGAIN": str(again),
    }
    done = dev(checkout, "test", environment=variables)
    assert done.returncode == result
    line = "dev: failed at first, passed alone: a.py::b[c d]\n"
    assert (line in done.stderr) == (result == 0)


def test_interrupted_tests_are_not_continued(checkout: Path) -> None:
    install(checkout, "echo ran; exit 2")
    done = dev(checkout, "test")
    assert done.returncode == 2
    assert done.stdout == "ran\n"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no file system in memory")
@pytest.mark.parametrize(
    ("spare_gb", "variables", "folder"),
    [(8, {}, "/dev/shm/"), (7, {}, "none"), (8, {"TMPDIR": "/somewhere"}, "/somewhere")],
)
def test_files_of_parallel_tests_are_in_memory_if_it_has_room(
    checkout: Path, spare_gb: int, variables: dict[str, str], folder: str
) -> None:
    install(checkout, f'if [ "$1" = -c ]; then echo {spare_gb}; else echo "${{TMPDIR:-none}}"; fi')
    (checkout / "tests").mkdir()
    parallel, alone = dev(checkout, "test", environment=variables).stdout.split()
    assert parallel.startswith(folder)
    assert not Path(parallel).exists()
    assert alone == variables.get("TMPDIR", "none")


@pytest.mark.parametrize("failing", ["format --check .", "check .", ""])
def test_the_check_command_fails_if_any_part_fails(checkout: Path, failing: str) -> None:
    install(checkout, f'[ "$*" != "{failing}" ]')
    assert dev(checkout, "check").returncode == 1


# What `python3 -m venv` makes here: a Python that writes down how it was called. pip prints what the real one does.
VENV_PYTHON = """
echo "$*" >> "$LOG/calls"
case "$*" in
*" pip "*"install --help") cat "$LOG/pip_help" ;;
*" pip "*"--version") echo "pip 23.0.1 from /somewhere (python 3.12)" ;;
*" pip "*)
    while [ "$1" != -c ]; do shift; done
    cp "$2" "$LOG/constraints"
    shift 2
    for refused in ${REFUSED:-}; do case "$*" in *"$refused"*) echo "ERROR: no $refused" >&2; exit 1 ;; esac; done
    echo "$*" >> "$LOG/pip"
    case "$*" in "pip>="*) echo "  --group" > "$LOG/pip_help" ;; esac
    echo "Obtaining file:///checkout"
    echo "  Installing build dependencies: started"
    echo "Collecting click>=8.2 (from agent-logger==0.1.0)"
    echo "  Downloading click-8.5.1-py3-none-any.whl (126 kB)"
    echo "Requirement already satisfied: idna in x"
    echo "Collecting typing-extensions"
    echo "Installing collected packages: click, typing-extensions" ;;
*" hatchling "*)
    for folder; do :; done # the last argument
    mkdir "$folder/agent_logger-0.1.0"
    cp -r dev pyproject.toml constraints.txt tests "$folder/agent_logger-0.1.0"
    tar -czf "$folder/agent_logger-0.1.0.tar.gz" -C "$folder" agent_logger-0.1.0 ;;
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
    (log / "pip_help").write_text("  --group <[path:]group>\n")
    return machine


@pytest.mark.parametrize("command", ["start", "demo"])
def test_start_and_demo_install_only_runtime_dependencies(machine: Machine, command: str) -> None:
    assert machine.dev(command).returncode == 0
    assert machine.read("pip") == ["-e ."]
    assert machine.read("calls")[-1] == command
    assert machine.dev(command).returncode == 0
    assert machine.read("pip") == []


def test_an_installation_prints_its_size_and_each_package(machine: Machine) -> None:
    assert machine.dev("start").stderr.splitlines() == [
        "dev: installing into .venv with Python 3.12.3: what agent-logger needs, 80 MB",
        "dev:   what builds the package",
        "dev:   click",
        "dev:   typing-extensions",
        "dev:   unpacking all of them",
    ]


def test_test_adds_its_requirements_to_the_packages_of_start(machine: Machine) -> None:
    machine.dev("start")
    machine.dev("check")
    machine.dev("test")
    assert machine.read("pip") == [
        "-e .",
        "-e . --group dev",
        "-e . --group dev --group clients",
    ]
    for command in (["start"], ["check"], ["test", "tests/a.py"], ["test"]):
        assert machine.dev(*command).returncode == 0
    assert machine.read("pip") == [], "start after test has nothing to install"


@pytest.mark.parametrize(
    ("first", "groups"),
    [(["start"], ""), (["check"], " --group dev"), (["test"], " --group dev --group clients")],
)
def test_changed_requirements_reinstall_all_installed_extras(machine: Machine, first: list[str], groups: str) -> None:
    machine.dev(*first)
    machine.read("pip")
    with (machine.checkout / "pyproject.toml").open("a") as project:
        project.write("# more\n")
    machine.dev("start")
    assert machine.read("pip") == [f"-e .{groups}"]


def test_a_package_that_pip_cannot_install_is_an_error(machine: Machine) -> None:
    for command, error in (
        (["start"], "pip could not install agent-logger and what it needs"),
        (["check"], "pip could not install the tools of tests and checks"),
    ):
        done = machine.dev(*command, REFUSED="-e")
        assert done.returncode == 1
        assert done.stderr.endswith(f"ERROR: no -e\ndev: {error}\n")
        machine.read("calls")
    assert machine.dev("start").returncode == 0, "it is tried again"


def test_a_pip_without_dependency_groups_is_upgraded_first(machine: Machine) -> None:
    (machine.log / "pip_help").write_text("  --requirement <file>\n")
    assert machine.dev("start").returncode == 0
    assert machine.read("pip") == ["-e ."], "start needs no group"
    assert machine.dev("check").returncode == 0
    assert machine.read("pip") == ["pip>=25.1", "-e . --group dev"]
    assert machine.dev("test").returncode == 0
    assert machine.read("pip") == ["-e . --group dev --group clients"], "it was upgraded once"


def test_a_pip_that_cannot_be_upgraded_is_an_error_that_says_what_to_do(machine: Machine) -> None:
    (machine.log / "pip_help").write_text("  --requirement <file>\n")
    done = machine.dev("check", REFUSED="pip>=")
    assert done.returncode == 1
    assert "dev: pip 23.0.1 in .venv cannot install dependency groups" in done.stderr
    assert "PIP_FIND_LINKS" in done.stderr
    assert machine.read("pip") == []
    assert machine.dev("check").returncode == 0, "it is tried again"


def test_clients_are_installed_one_by_one_if_pip_cannot_install_them_all(machine: Machine) -> None:
    clients = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["clients"]
    done = machine.dev("test", REFUSED="clients openai")
    assert done.returncode == 0
    others = [name for name in clients if not name.startswith("openai")]
    assert machine.read("pip") == ["-e . --group dev", *others]
    assert "dev: pip could not install openai>=" in done.stderr
    machine.dev("test", "tests/a.py")
    assert machine.read("pip") == [], "a test of one's choice does not wait for them"
    machine.dev("test")
    assert machine.read("pip") == ["-e . --group dev --group clients"], "all tests try again"


def test_tests_run_with_the_installed_tools_without_network(machine: Machine) -> None:
    machine.dev("check")
    assert machine.dev("test", REFUSED="-e >=").returncode == 0
    assert any("pytest" in call for call in machine.read("calls"))


def test_a_missing_component_is_reported_with_its_reason_and_counted_at_the_end(machine: Machine) -> None:
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


def test_npm_installs_the_real_clients_once(machine: Machine) -> None:
    record = 'echo "$@" >> "$LOG/npm"; pwd >> "$LOG/folders"; ls >> "$LOG/files"'
    machine.add_program("npm", record)
    machine.dev("setup")
    components = machine.checkout / ".components"
    assert machine.read("folders") == [str(components), str(components / "node")]
    assert machine.read("files") == ["package.json"] * 2, "without it npm would look for one in the folders above"
    programs, programs_of_node = machine.read("npm")
    for name in (
        "@openai/codex@",
        "@google/gemini-cli@",
        "opencode-ai@",
        "ccusage@",
        "axe-core@",
        "@xai-official/grok@",
    ):
        assert f" {name}" in programs
    for name in ("node@", "@moonshot-ai/kimi-code@"):
        assert f" {name}" in programs_of_node
        assert f" {name}" not in programs, "it would become the Node of the other programs"
    for command in (["test"], ["test", "tests/a.py"], ["test", "--long"], ["setup"], ["start"]):
        machine.dev(*command)
    assert machine.read("npm") == []
    for folder in (components, components / "node"):
        (folder / "installed").write_text("older ones\n")
        machine.dev("setup")
        assert len(machine.read("npm")) == 1


def test_a_client_that_installs_itself_into_the_home_does_not_touch_it(machine: Machine) -> None:
    machine.add_program("npm", 'mkdir -p "$GROK_HOME/bin" && echo "$GROK_HOME" >> "$LOG/homes"')
    machine.dev("setup")
    homes = [Path(home) for home in machine.read("homes")]
    assert homes
    assert all(home.is_relative_to(machine.checkout / ".components") and not home.exists() for home in homes)


def test_selected_tests_do_not_wait_for_npm(machine: Machine) -> None:
    machine.add_program("npm", 'echo "$@" >> "$LOG/npm"')
    done = machine.dev("test", "tests/a.py")
    assert machine.read("npm") == []
    assert machine.read("pip") == ["-e . --group dev"]
    assert "real clients are missing" in done.stderr


def test_packages_that_npm_cannot_install_are_skipped_and_tried_again(machine: Machine) -> None:
    machine.add_program("npm", 'echo "$@" >> "$LOG/npm"; exit 1')
    for _ in range(2):
        done = machine.dev("test")
        assert done.returncode == 0
        assert "npm could not install them" in done.stderr
        assert len(machine.read("npm")) == 2


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
def test_apt_get_is_used_only_by_root_in_ci_or_with_full(
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
        installed = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        assert ("postgresql" in calls[1].split()) is not bool(installed), "its programs are on no PATH"


def test_packages_that_apt_get_cannot_install_are_skipped(machine: Machine) -> None:
    machine.add_program("apt-get", "exit 100")
    machine.add_program("id", "echo 0")
    done = machine.dev("test", "--full")
    assert done.returncode == 0
    assert "apt-get could not install cargo chromium curl fish" in done.stderr


def test_bare_runs_the_tests_of_the_sdist_with_the_tools_alone(machine: Machine, tmp_path: Path) -> None:
    for name in ("npm", "node", "strace", "zsh"):
        machine.add_program(name, "exit 1")
    (machine.checkout / ".components").mkdir()
    (machine.checkout / ".venv").mkdir()
    (machine.checkout / "notes.txt").write_text("not in the sdist\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = machine.dev("bare", TMPDIR=str(temporary), CI="true")
    assert done.returncode == 0, done.stderr
    assert machine.read("pip") == ["-e . --group dev"] * 2, "here, to build the sdist, and there"
    assert sum("-m pytest" in call for call in machine.read("calls")) == 2
    environment = dict(line.split("=", 1) for line in machine.read("environment") if "=" in line)
    assert "CI" not in environment
    assert Path(environment["HOME"]).is_relative_to(temporary)
    programs = machine.read("programs")
    assert {"npm", "node", "strace", "zsh"}.isdisjoint(programs)
    assert {"sh", "python3"} <= set(programs)
    files = machine.read("files")
    assert "pyproject.toml" in files
    assert {".components", "notes.txt"}.isdisjoint(files)
    assert list(temporary.iterdir()) == [], "it leaves nothing behind"


def test_lowest_runs_tests_with_the_lower_bounds_of_all_dependencies(machine: Machine, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = machine.dev("lowest", "tests/a.py", TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    assert machine.read("pip") == ["-e . --group dev httpx"]
    constraints = machine.read("constraints")
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert constraints[: len(dependencies)] == [line.replace(">=", "==") for line in dependencies]
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    others = constraints[len(dependencies) :]
    assert set(others) < set(pinned)
    assert {line.partition("==")[0].lower() for line in pinned if line not in others} >= {
        "click",
        "jinja2",
        "rich",
    }
    assert [call for call in machine.read("calls") if "pytest" in call][-1].endswith("tests/a.py")
    assert list(temporary.iterdir()) == [], "it leaves nothing behind"
    machine.fail_tests("pytest")
    assert machine.dev("lowest", TMPDIR=str(temporary)).returncode == 1
    machine.read("pip")
    refused = machine.dev("lowest", TMPDIR=str(temporary), REFUSED="-e")
    assert (refused.returncode, "lower bounds" in refused.stderr) == (1, True)


@pytest.mark.parametrize("failing", ["-m needs and", "-m not needs and"])
def test_bare_fails_if_tests_fail(machine: Machine, failing: str) -> None:
    machine.fail_tests(failing)
    assert machine.dev("bare").returncode == 1
