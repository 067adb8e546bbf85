"""`agent-logger env`: print lines to eval in a shell, so that agents started there are recorded."""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.proxy.base_urls import Variable
    from agent_logger.proxy.state import ProxyState

    Script = Callable[[Path, int, Iterable[Variable]], str]

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option(
    "--door",
    type=click.Choice(["base-url", "forward"]),
    default="base-url",
    help="How requests reach the proxy: by base URLs (default), or as through an HTTPS proxy.",
)
@click.option("--no-start", is_flag=True, help="If no proxy is running, do not start one.")
@click.option("--stop", is_flag=True, help="End the proxy that this command started, when no run uses it.")
@settings_options()
def command(settings: config.Configuration, shell: str | None, door: str, no_start: bool, stop: bool) -> int:
    """Print shell commands that send agents through the proxy.

    If no proxy is running, one is started in the background. It logs to the folder of agent-logger in your home, and
    ends with the last process of your terminal session, or with --stop.

    The commands set base URLs for Claude Code, Gemini CLI, opencode (for Anthropic) and the SDKs while the proxy is
    running. A base URL that is already set is reached through the proxy, if the proxy was started here or with
    --allow-upstream for its origin; otherwise it is not changed. Codex, pi and the other providers of opencode read
    their base URL from a file; use 'agent-logger run', or see 'agent-logger proxy --help'. Run 'agent_logger_env' to
    check again after the proxy was stopped. Without an argument, the shell is taken from $SHELL. If there is no proxy,
    nothing is printed and the exit code is 1.

    With --door forward, they make the proxy the HTTPS proxy of the shell, and name a file of certificates that has the
    one of agent-logger. So agents that take no base URL are recorded too: those with a login instead of a key. Only
    hosts of models are opened; all others are passed on unread.

    \b
    Examples:
      eval "$(agent-logger env)"                     bash, zsh
      eval "$(agent-logger env --door forward)"      any agent, whatever its login
      agent-logger env fish | source                 fish
      agent-logger env --stop
    """
    from agent_logger.proxy.base_urls import shell_variables
    from agent_logger.proxy.state import state_path

    if stop:
        return _stop(settings.home)
    script = _fish if (shell or config.shell()) == "fish" else _posix
    if door == "forward":
        return _print_forward(settings.home, script, may_start=not no_start)
    states = _held(settings.home)
    if not states and not no_start:
        _start(settings.home)
        states = _held(settings.home)
    if not states:
        _output.note("agent-logger: no proxy is running; start one with 'agent-logger'")
        return 1
    newest = states[-1]
    others = [state.port for state in states[:-1]]
    variables = shell_variables(config.child_environment(), newest.port, newest.allow_upstream, others)
    click.echo(script(state_path(settings.home, newest.pid), newest.pid, variables))
    return 0


def _print_forward(home: Path, script: "Script", *, may_start: bool) -> int:
    """Register the shell with a proxy that has the forward door, and print what sends it there."""
    from agent_logger.agents.contracts import ChildCommand
    from agent_logger.errors import AgentLoggerError
    from agent_logger.proxy.runs.shared import connections
    from agent_logger.proxy.state import state_path
    from agent_logger.recording.run.doors import OutgoingCommand

    if not may_start and not any(state.has_forward_door for state in _states(home)):
        _output.note("agent-logger: no proxy is running that has the forward door; start one with 'agent-logger'")
        return 1
    environment = config.child_environment()
    shell = OutgoingCommand(ChildCommand((config.shell(),), environment, Path.cwd()), None)
    allowed = {state.port: state.allow_upstream for state in _states(home)}
    try:
        for connection in connections(home, None, forward=True):
            with connection, contextlib.suppress(OSError):  # it has just ended: another one is started
                sent = shell.sent("forward", connection.state.port, allowed)
                if not connection.ask(structs.replace(sent.registration, session=os.getsid(0))).is_ending:
                    pid = connection.state.pid
                    click.echo(script(state_path(home, pid), pid, _changed(environment, sent.child.environment, home)))
                    return 0
    except AgentLoggerError as error:
        _output.note(f"agent-logger: {error}")
    return 1


def _changed(before: Mapping[str, str], after: Mapping[str, str], home: Path) -> "list[Variable]":
    """Return the variables that change. What an earlier call of this command has set is not to come back."""
    from agent_logger.proxy.base_urls import Variable
    from agent_logger.proxy.relay.route import TOKEN

    def without_proxy(value: str) -> str:
        return "" if TOKEN.search(value) or value.startswith(f"{home / 'ca'}{os.sep}") else value

    names = [name for name in {**before, **after} if before.get(name, "") != after.get(name, "")]
    return [
        Variable(name, now := before.get(name, ""), after.get(name, ""), without_proxy(now) if name in after else "")
        for name in sorted(names)
    ]


def _states(home: Path) -> "list[ProxyState]":
    from agent_logger.proxy.state import running

    return sorted(running(home), key=lambda state: state.started)


def _held(home: Path) -> "list[ProxyState]":
    """Return the running proxies without those that are ending. The last one stays while a process of the session of
    the asking shell lives, if it is one that ends."""
    states = _states(home)
    while states and not _holds(states[-1]):
        states.pop()
    return states


def _holds(state: "ProxyState") -> bool:
    from agent_logger.errors import AgentLoggerError
    from agent_logger.proxy.runs.messages import HoldForShell
    from agent_logger.proxy.runs.shared import ProxyConnection

    if state.socket is None:  # an older version, or one that takes no registrations: none of these ends by itself
        return True
    try:
        with ProxyConnection(state) as connection:
            return not connection.ask(HoldForShell(session=os.getsid(0))).is_ending
    except AgentLoggerError:
        return True
    except OSError:
        return False


def _start(home: Path) -> None:
    """Start a proxy, which may call the base URLs that the shell has set."""
    from agent_logger.errors import AgentLoggerError
    from agent_logger.proxy.base_urls import BASE_URLS, chosen
    from agent_logger.proxy.runs.shared import start

    environment = config.child_environment()
    places = [chosen(name, environment.get(name, "")) for name in BASE_URLS]
    try:
        start(home, home / "logs", [str(place.origin) for place in places if place])
    except (AgentLoggerError, OSError) as error:
        _output.note(f"agent-logger: {error}")


def _stop(home: Path) -> int:
    """End what shells have asked for. A proxy that was not started for them takes no notice."""
    from agent_logger.errors import AgentLoggerError
    from agent_logger.proxy.runs.messages import ReleaseShells
    from agent_logger.proxy.runs.shared import ProxyConnection

    released = 0
    for state in _states(home):
        with contextlib.suppress(AgentLoggerError, OSError), ProxyConnection(state) as connection:
            released += connection.ask(ReleaseShells()).released
    if not released:
        _output.note("agent-logger: no proxy was started by 'agent-logger env'; 'agent-logger status' lists all")
        return 1
    _output.note("agent-logger: the proxy ends when no run uses it")
    return 0


def _branches(
    variables: "Iterable[Variable]",
    lines_to_set: "Callable[[Variable], list[str]]",
    line_to_undo: "Callable[[Variable], str]",
) -> tuple[list[str], list[str]]:
    """The shell lines for while the proxy runs, and those for when it does not."""
    running, gone = [], []
    for variable in variables:
        running += [_note_unchanged(variable)] if variable.stays else lines_to_set(variable)
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
        "    echo 'agent-logger: the proxy has stopped; start it, then run: eval \"$(agent-logger env)\"' >&2",
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
        f"  *) {_note_unchanged(variable)} ;;",
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
        "    echo 'agent-logger: the proxy has stopped; start it, then run: agent-logger env fish | source' >&2",
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
        f"  {_note_unchanged(variable)}",
        "end",
    ]


def _fish_undo(variable: "Variable") -> str:
    is_ours = f'test "${variable.name}" = {_fish_quoted(variable.with_proxy)}'
    return f"{is_ours}; and {_fish_set(variable.name, variable.without_proxy)}"


def _fish_set(name: str, value: str) -> str:
    return f"set -gx {name} {_fish_quoted(value)}" if value else f"set -e {name}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _note_unchanged(variable: "Variable") -> str:
    from agent_logger.proxy.base_urls import BASE_URLS

    how = "; start the proxy with --allow-upstream to record it" if variable.name in BASE_URLS else ""
    return f"echo 'agent-logger: {variable.name} is already set and is not changed{how}' >&2"
