"""The Tab key, as bash presses it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = str(Path(sys.executable).parent)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["agent-logger", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def complete(environment: dict[str, str], *words: str) -> list[str]:
    """What the Tab key offers after these words, the last of them unfinished."""
    asked = {
        **environment,
        "_AGENT_LOGGER_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("agent-logger", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = run(asked)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("shell", "mark"),
    [("bash", "complete -o nosort -F"), ("zsh", "#compdef agent-logger"), ("fish", "complete ")],
)
def test_each_shell_has_a_completion_script(shell: str, mark: str, environment: dict[str, str]) -> None:
    done = run(environment, "completion", shell)
    assert mark in done.stdout
    assert f"_AGENT_LOGGER_COMPLETE={shell}_complete" in done.stdout
    assert done.stderr == ""


def test_commands_flags_and_choices_are_completed(environment: dict[str, str]) -> None:
    assert complete(environment, "co") == ["context", "config", "completion"]
    assert complete(environment, "config", "--re") == ["--record-hosts", "--redact"]
    assert complete(environment, "config", "--redact", "") == ["all", "credentials"]
    assert complete(environment, "config", "--redact", "c") == ["credentials"]
    assert complete(environment, "completion", "f") == ["fish"]
    assert complete(environment, "schema", "show-t") == ["show-tools", "show-turn"]
    assert {"start", "config"} <= set(complete(environment, ""))


def test_flags_of_start_are_completed_without_a_command() -> None:
    script = """
import sys, types, click
@click.command()
@click.option("--port")
def command(port): ...
module = types.ModuleType("agent_logger.cli.start")
module.command = command
sys.modules[module.__name__] = module
from agent_logger.cli import shell
from click.shell_completion import ShellComplete
tab = ShellComplete(shell, {}, "agent-logger", "X")
for args, incomplete in ([], "--"), (["--port", "1"], "--h"):
    print(*sorted(item.value for item in tab.get_completions(args, incomplete)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "--help --port --version\n--help\n"


@pytest.mark.needs("bash")
def test_bash_completion_works_with_the_line_shown_in_the_help(environment: dict[str, str]) -> None:
    line = 'eval "$(agent-logger completion bash)"'
    assert line in run(environment, "completion", "--help").stdout
    script = f"""{line}
COMP_WORDS=(agent-logger conf) COMP_CWORD=1
_agent_logger_completion agent-logger
echo "${{COMPREPLY[@]}}"
complete -p agent-logger
"""
    done = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    offered, registered = done.stdout.splitlines()
    assert offered == "config"
    assert "_agent_logger_completion" in registered
