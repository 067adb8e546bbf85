"""`agent-logger env`: print lines to eval in a shell, so that agents started there are recorded."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.proxy.base_urls import Variable

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@settings_options()
def command(settings: config.Configuration, shell: str | None) -> int:
    """Print lines to eval in a shell, so that its agents are recorded.

    The lines set base URLs for Claude Code, Gemini CLI and the SDKs while a proxy of yours runs. A base URL that is set
    already stays, unless the proxy was started with --allow-upstream for its origin: then it is reached through the
    proxy. Codex and opencode have theirs in a file: docs/proxy.md shows it. Run 'agent_logger_env' to check again after
    the proxy was stopped. Without an argument, the shell is that of $SHELL. If no proxy runs, nothing is printed and
    the exit code is 1.

    \b
    Examples:
      eval "$(agent-logger env)"              bash, zsh
      agent-logger env fish | source          fish
    """
    from agent_logger.proxy.base_urls import shell_variables
    from agent_logger.proxy.state import running, state_path

    states = sorted(running(settings.home), key=lambda state: state.started)
    if not states:
        _output.note("agent-logger: no proxy is running; 'agent-logger' starts one")
        return 1
    newest = states[-1]
    others = [state.port for state in states[:-1]]
    variables = shell_variables(config.child_environment(), newest.port, newest.allow_upstream, others)
    script = _fish if (shell or config.shell()) == "fish" else _posix
    click.echo(script(state_path(settings.home, newest.pid), newest.pid, variables))
    return 0


def _branches(
    variables: "Iterable[Variable]",
    lines_to_set: "Callable[[Variable], list[str]]",
    line_to_undo: "Callable[[Variable], str]",
) -> tuple[list[str], list[str]]:
    """The shell lines for while the proxy runs, and those for when it does not."""
    running, gone = [], []
    for variable in variables:
        running += [_stays(variable)] if variable.stays else lines_to_set(variable)
        if variable.with_proxy not in ("", variable.without_proxy):
            gone.append(line_to_undo(variable))
    return [f"    {line}" for line in running], [f"    {line}" for line in gone]


def _posix(state: Path, pid: int, variables: "Iterable[Variable]") -> str:
    """The lines for bash and zsh; dash understands them too. Nothing fails under `set -e` or `set -u`."""
    running, gone = _branches(variables, _posix_lines, _posix_undo)
    lines = [
        "agent_logger_env() {",
        f"  if [ -O {_posix_quoted(str(state))} ] && kill -0 {pid} 2>/dev/null; then",
        *running,
        "  else",
        "    echo 'agent-logger: the proxy is gone; eval its env again when one runs' >&2",
        *gone,
        "    return 1",
        "  fi",
        "}",
        "agent_logger_env || :",
    ]
    return "\n".join(lines)


def _posix_lines(variable: "Variable") -> list[str]:
    set_it = _posix_set(variable.name, variable.with_proxy)
    return [
        f'case "${{{variable.name}:-}}" in',
        *([f"  {_posix_quoted(variable.now)}) {set_it} ;;"] if variable.now != variable.with_proxy else []),
        f"  {_posix_quoted(variable.with_proxy)}) ;;",
        *([f"  '') {set_it} ;;"] if variable.now and not variable.without_proxy else []),
        f"  *) {_stays(variable)} ;;",
        "esac",
    ]


def _posix_undo(variable: "Variable") -> str:
    undo = _posix_set(variable.name, variable.without_proxy)
    return f'case "${{{variable.name}:-}}" in {_posix_quoted(variable.with_proxy)}) {undo} ;; esac'


def _posix_set(name: str, value: str) -> str:
    return f"export {name}={_posix_quoted(value)}" if value else f"unset {name}"


def _posix_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(state: Path, pid: int, variables: "Iterable[Variable]") -> str:
    running, gone = _branches(variables, _fish_lines, _fish_undo)
    lines = [
        "function agent_logger_env",
        f"  if test -O {_fish_quoted(str(state))}; and kill -0 {pid} 2>/dev/null",
        *running,
        "  else",
        "    echo 'agent-logger: the proxy is gone; source its env again when one runs' >&2",
        *gone,
        "    return 1",
        "  end",
        "end",
        "agent_logger_env; or true",
    ]
    return "\n".join(lines)


def _fish_lines(variable: "Variable") -> list[str]:
    is_now = f'test "${variable.name}" = {_fish_quoted(variable.now)}'
    return [
        f"if {is_now}" if variable.without_proxy else f'if {is_now}; or test -z "${variable.name}"',
        f"  {_fish_set(variable.name, variable.with_proxy)}",
        f'else if test "${variable.name}" != {_fish_quoted(variable.with_proxy)}',
        f"  {_stays(variable)}",
        "end",
    ]


def _fish_undo(variable: "Variable") -> str:
    is_ours = f'test "${variable.name}" = {_fish_quoted(variable.with_proxy)}'
    return f"{is_ours}; and {_fish_set(variable.name, variable.without_proxy)}"


def _fish_set(name: str, value: str) -> str:
    return f"set -gx {name} {_fish_quoted(value)}" if value else f"set -e {name}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _stays(variable: "Variable") -> str:
    from agent_logger.proxy.base_urls import BASE_URLS

    how = "; --allow-upstream of the proxy can have it recorded" if variable.name in BASE_URLS else ""
    return f"echo 'agent-logger: {variable.name} is set already and stays{how}' >&2"
