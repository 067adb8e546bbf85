"""`agent-logger env`: lines to eval in a shell, so that agents started there are recorded."""

from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import output
from agent_logger.cli.settings import settings_options

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@settings_options()
def command(settings: config.Settings, shell: str | None) -> int:
    """Print lines to eval in a shell: agents started there are recorded.

    The lines set base URLs for Claude Code, Gemini CLI and the SDKs, as long as a proxy of yours runs. A base
    URL that is set already stays. Codex and opencode have theirs in a file: docs/proxy.md shows it.
    'agent_logger_env' looks again, after the proxy was stopped or started anew. Without SHELL it is told from
    $SHELL. When no proxy runs, nothing is printed and the exit code is 1.

    \b
      bash, zsh   eval "$(agent-logger env)"
      fish        agent-logger env fish | source
    """
    from agent_logger.capture.proxy.state import running, state_path

    states = sorted(running(settings.home), key=lambda state: state.started)
    if not states:
        output.note("agent-logger: no proxy is running; 'agent-logger' starts one")
        return 1
    newest = states[-1]
    script = _fish if (shell or config.shell()) == "fish" else _posix
    click.echo(script(state_path(settings.home, newest.pid), newest.pid, newest.port))
    return 0


def _posix(state: Path, pid: int, port: int) -> str:
    """For bash and zsh; dash understands it too."""
    from agent_logger.capture.base_urls import BESIDE, LOOPBACK, base_urls

    lines = ["agent_logger_env() {", f"  if [ -O {_quoted(state)} ] && kill -0 {pid} 2>/dev/null; then"]
    for name, url in base_urls(port).items():
        lines += [
            f'    case "${{{name}:-}}" in',
            f"      ''|*http://127.0.0.1:*) export {name}='{url}' ;;",
            f'      *) echo "agent-logger: {name} is set already and stays" >&2 ;;',
            "    esac",
        ]
    lines += [f"    export {name}={value}" for name, value in BESIDE.items()]
    for name in ("NO_PROXY", "no_proxy"):  # of the two most programs read the second first, if there is one
        when = f'[ -z "${{{name}+x}}" ] || ' if name == "no_proxy" else ""
        lines += [
            f'    case ",${{{name}:-}}," in',
            f"      *,{LOOPBACK.split(',', maxsplit=1)[0]},*) ;;",
            f'      *) {when}export {name}="${{{name}:+${name},}}{LOOPBACK}" ;;',
            "    esac",
        ]
    lines += [
        "  else",
        "    echo 'agent-logger: the proxy is gone; eval its env again when one runs' >&2",
        *(
            f"    case \"${{{name}:-}}\" in '{url}') unset {name} ;; esac"
            for name, url in base_urls(port).items()
        ),
        "    return 1",
        "  fi",
        "}",
        "agent_logger_env",
    ]
    return "\n".join(lines)


def _fish(state: Path, pid: int, port: int) -> str:
    from agent_logger.capture.base_urls import BESIDE, LOOPBACK, base_urls

    first = LOOPBACK.split(",", maxsplit=1)[0]
    lines = [
        "function agent_logger_env",
        f"  if test -O {_quoted(state)}; and kill -0 {pid} 2>/dev/null",
    ]
    for name, url in base_urls(port).items():
        lines += [
            f'    if test -z "${name}"; or string match -q \'*http://127.0.0.1:*\' -- "${name}"',
            f"      set -gx {name} '{url}'",
            "    else",
            f'      echo "agent-logger: {name} is set already and stays" >&2',
            "    end",
        ]
    lines += [f"    set -gx {name} {value}" for name, value in BESIDE.items()]
    for name in ("NO_PROXY", "no_proxy"):
        there = "" if name == "NO_PROXY" else f"set -q {name}; and "
        lines += [
            f'    if {there}not string match -q "*,{first},*" -- ",${name},"',
            f'      set -gx {name} (string trim -lc , -- "${name},{LOOPBACK}")',
            "    end",
        ]
    lines += [
        "  else",
        "    echo 'agent-logger: the proxy is gone; source its env again when one runs' >&2",
        *(f"    test \"${name}\" = '{url}'; and set -e {name}" for name, url in base_urls(port).items()),
        "    return 1",
        "  end",
        "end",
        "agent_logger_env",
    ]
    return "\n".join(lines)


def _quoted(path: Path) -> str:
    """For the shells and fish alike."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "'\\''") + "'"
