"""The shell around the commands: what is found, how it ends, and that it starts fast."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path

import click
import pytest

from agent_logger.cli import COMMANDS, module_of, shell

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]

# `agent-logger` with a `start` of our own, whose body is filled in.
STAND_IN = """
import sys, types, click
from agent_logger import errors

@click.command()
@click.option("--port")
@click.argument("word", required=False)
def command(port, word):
    {body}

module = types.ModuleType("agent_logger.cli.start")
module.command = command
sys.modules[module.__name__] = module
from agent_logger.cli import main
main()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "agent_logger", *arguments]
        return _finish(command, {**environment, **variables}, tmp_path)

    return run


@pytest.fixture
def run_start(environment: dict[str, str], tmp_path: Path) -> Run:
    def run_start(body: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", STAND_IN.format(body=body), *arguments]
        return _finish(command, {**environment, **variables}, tmp_path)

    return run_start


def _finish(command: list[str], environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


# ---- help and version


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_help_lists_every_command_and_fits_80_columns(flag: str, run: Run) -> None:
    done = run(flag, COLUMNS="200")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^  ([a-z]+) +", done.stdout, re.MULTILINE) == [*COMMANDS]
    assert "Examples:\n  agent-logger demo" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_a_help_that_is_indented_stays_a_line(name: str, run: Run) -> None:
    command = shell.get_command(click.Context(shell), name)
    assert command and command.help
    indented = [line for line in cleandoc(command.help).splitlines() if line.startswith("  ")]
    assert {f"  {line}" for line in indented} <= set(run(name, "--help").stdout.splitlines())


def test_every_example_of_the_help_names_a_command_or_an_option(run: Run) -> None:
    examples = re.findall(r"^  agent-logger (\S+)", run("--help").stdout, re.MULTILINE)
    assert examples
    assert all(word in COMMANDS or word.startswith("--") for word in examples)


def test_version_prints_the_versions_of_the_package_python_and_sqlite(run: Run) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    done = run("--version")
    assert done.returncode == 0
    numbers = r"\d+\.\d+\.\d+\S*"
    assert re.fullmatch(rf"agent-logger {re.escape(version)} \(Python {numbers}, SQLite {numbers}\)\n", done.stdout)


def test_the_installed_script_runs_the_module() -> None:
    script = Path(sys.executable).with_name("agent-logger")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("agent-logger ")


HEAVY = {"agent_logger.config", "asyncio", "msgspec", "rich", "shlex", "sqlite3", "ssl", "tomllib"}


def _imported_by(*arguments: str) -> set[str]:
    script = f"""
import sys
sys.argv[1:] = {arguments!r}
from agent_logger.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_help_imports_no_command_and_nothing_heavy() -> None:
    imported = _imported_by("--help")
    assert {"click", "agent_logger.cli"} <= imported
    assert not HEAVY & imported
    assert not set(map(module_of, COMMANDS)) & imported


def test_a_command_imports_only_itself() -> None:
    imported = _imported_by("completion", "bash")
    assert "agent_logger.cli.completion" in imported
    assert not {"agent_logger.cli.config", "msgspec", "rich", "sqlite3"} & imported
    assert "sqlite3" in _imported_by("--version")  # this test can see what is imported


# ---- no command means start


@pytest.mark.parametrize(
    ("arguments", "port", "word"),
    [
        pytest.param([], None, None, id="nothing"),
        pytest.param(["start"], None, None, id="by name"),
        pytest.param(["start", "--port", "9"], "9", None, id="by name, with an option"),
        pytest.param(["--port", "9"], "9", None, id="an option"),
        pytest.param(["--port=9", "word"], "9", "word", id="an option and an argument"),
        pytest.param(["--port", "config"], "config", None, id="a value like a command"),
    ],
)
def test_options_without_a_command_are_passed_to_start(
    arguments: list[str], port: str | None, word: str | None, run_start: Run
) -> None:
    done = run_start("print((port, word))", *arguments)
    assert (done.returncode, done.stdout) == (0, f"{(port, word)}\n")


def test_an_unknown_option_without_a_command_is_a_usage_error_of_start(run_start: Run) -> None:
    done = run_start("print('started')", "--prot", "9")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'--prot'" in done.stderr
    assert done.stderr.endswith("(see agent-logger start --help)\n")


# ---- how a command can end


def test_a_mistyped_command_suggests_the_nearest_name_and_exits_with_2(run: Run) -> None:
    done = run("verfy")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "agent-logger: unknown command 'verfy'; did you mean verify? (see agent-logger --help)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "--no-such"],
        ["config", "extra"],
        ["completion"],
        ["completion", "csh"],
    ],
)
def test_a_usage_error_is_one_line_with_exit_code_2(arguments: list[str], run: Run) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"agent-logger: .+ \(see agent-logger {arguments[0]} --help\)\n", done.stderr)


def test_a_flag_without_its_value_is_a_one_line_error_with_exit_code_2(run: Run) -> None:
    done = run("config", "--port")
    assert (done.returncode, done.stderr) == (2, "agent-logger: Option '--port' requires an argument\n")


def test_an_invalid_setting_is_a_one_line_error_with_exit_code_2(run: Run) -> None:
    done = run("config", AGENT_LOGGER_PORT="many")
    assert (done.returncode, done.stdout) == (2, "")
    where, use = 'environment AGENT_LOGGER_PORT: port = "many"', "use a whole number from 0 to 65535"
    assert done.stderr == f"agent-logger: {where} is not allowed; {use}\n"


ENDINGS = [
    pytest.param("pass", 0, "", id="fine"),
    pytest.param("return 1", 1, "", id="a returned code"),
    pytest.param("return 'text'", 0, "", id="any other value"),
    pytest.param("sys.exit(3)", 3, "", id="sys.exit"),
    pytest.param("click.get_current_context().exit(4)", 4, "", id="click's exit"),
    pytest.param("raise errors.StoreError('disk full')", 1, "agent-logger: disk full\n", id="ours"),
    pytest.param("raise errors.ConfigError('no')", 2, "agent-logger: no\n", id="a setting"),
    pytest.param("raise click.UsageError('no')", 2, "agent-logger: no (see agent-logger start --help)\n", id="usage"),
    pytest.param("raise click.ClickException('no')", 1, "agent-logger: no\n", id="click's own"),
    pytest.param(
        "raise errors.StoreError('a\\n\\x1b[31mb')",
        1,
        "agent-logger: a\\n\\x1b[31mb\n",
        id="with control characters",
    ),
    pytest.param("raise KeyError('x')", 1, "agent-logger: KeyError: 'x' (", id="unexpected"),
    pytest.param("raise ValueError", 1, "agent-logger: ValueError (", id="unexpected, without a word"),
    pytest.param(
        "raise PermissionError(13, 'Permission denied', '/root/x')",
        1,
        "agent-logger: /root/x: Permission denied\n",
        id="a file",
    ),
    pytest.param("raise EOFError('cut')", 1, "agent-logger: EOFError: cut (", id="end of a file"),
    pytest.param(
        "raise BrokenPipeError(32, 'cut')",
        1,
        "agent-logger: BrokenPipeError: [Errno 32] cut (",
        id="another pipe",
    ),
]


@pytest.mark.parametrize(("body", "code", "stderr"), ENDINGS)
def test_every_error_has_its_exit_code_and_at_most_one_line(body: str, code: int, stderr: str, run_start: Run) -> None:
    done = run_start(body)
    hint = "AGENT_LOGGER_DEBUG=1 shows where)\n" if stderr.endswith("(") else ""
    assert (done.returncode, done.stderr) == (code, stderr + hint)


def test_the_debug_variable_shows_the_traceback(run_start: Run) -> None:
    done = run_start("raise KeyError('x')", AGENT_LOGGER_DEBUG="1")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "Traceback" not in run_start("raise KeyError('x')", AGENT_LOGGER_DEBUG="0").stderr


def test_a_command_that_cannot_be_imported_is_a_one_line_error(environment: dict[str, str], tmp_path: Path) -> None:
    script = """
import sys
sys.modules["agent_logger.cli.verify"] = None
from agent_logger.cli import main
main()
"""
    done = _finish([sys.executable, "-c", script, "verify"], environment, tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(r"agent-logger: ModuleNotFoundError: .+ \(AGENT_LOGGER_DEBUG=1 shows where\)\n", done.stderr)


def test_ctrl_c_exits_with_130_without_a_traceback(environment: dict[str, str], tmp_path: Path) -> None:
    body = "import time; print('ready', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", STAND_IN.format(body=body)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr.strip()) == (130, "")


def test_ctrl_c_during_imports_exits_with_130(environment: dict[str, str]) -> None:
    program = """
import sys
from agent_logger.__main__ import main

class Interrupted:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
main()
"""
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.parametrize("arguments", [["config"], ["--help"], ["completion", "bash"]])
def test_a_closed_pipe_is_not_an_error(arguments: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        command = [sys.executable, "-m", "agent_logger", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["config"], ["--help"]])
def test_a_full_disk_under_the_output_is_a_one_line_error(
    arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    with open("/dev/full", "wb") as stdout:
        command = [sys.executable, "-m", "agent_logger", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"agent-logger: OSError: ")
    assert done.stderr.count(b"\n") == 1


def test_a_character_the_terminal_cannot_show_is_escaped(run: Run) -> None:
    done = run("config", "--log-dir", "/tmp/日本", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert r"/tmp/\u65e5\u672c" in done.stdout
