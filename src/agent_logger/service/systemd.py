"""The service as a unit of systemd's user manager."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from agent_logger.service.manager import Command, ServiceError, ServiceProgram, ServiceState, answer

UNIT = "agent-logger.service"

# An exit code of 2 means a wrong setting, which no restart corrects. On a stop, only the main process is asked to end:
# it ends the others after it has handed everything over to them, within 30 seconds.
_UNIT = """\
# Written by 'agent-logger service install', which also replaces it.

[Unit]
Description=agent-logger: proxy and page
StartLimitIntervalSec=0

[Service]
{environment}ExecStart={command}
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec=45
UMask=0077

[Install]
WantedBy=default.target
"""

_NOT_IN_EXECUTABLE = re.compile(r"""[\x00-\x1f\x7f"'\\]""")
_BY_SHELL = ("/bin/sh", "-c", 'exec "$0" "$@"')
_SPECIAL = re.compile(r'[\x00-\x1f\x7f"%\\]')


def unit(program: ServiceProgram) -> str:
    """Return the text of the unit. Raises `ServiceError`."""
    lines = [f"Environment={_quoted(f'{name}={value}')}\n" for name, value in program.environment.items()]
    return _UNIT.format(environment="".join(lines), command=command_line(program.arguments))


def command_line(arguments: Sequence[str]) -> str:
    """Return the value of `ExecStart`. systemd expands `$` in arguments, but not in the path of the executable. It
    refuses some characters in that path: a shell takes such a path as an argument."""
    words = [*_BY_SHELL, *arguments] if _NOT_IN_EXECUTABLE.search(arguments[0]) else arguments
    executable, *rest = map(_quoted, words)
    return " ".join([executable, *(word.replace("$", "$$") for word in rest)])


def _quoted(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ServiceError(f"{text!r} is not valid UTF-8, and systemd accepts nothing else") from None
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return (
        "%%"
        if character == "%"
        else f"\\x{ord(character):02x}"
        if character < " " or character == "\x7f"
        else f"\\{character}"
    )


class Systemd:
    def __init__(self, config_folder: Path) -> None:
        self.file = config_folder / "systemd/user" / UNIT

    def definition(self, program: ServiceProgram) -> str:
        return unit(program)

    def obstacle(self) -> str | None:
        # `systemctl` is also installed where systemd does not run, as in many containers.
        if not shutil.which("systemctl") or answer(["systemctl", "is-system-running"]).stdout.strip() == "offline":
            return "systemd does not run on this machine"
        return None

    def is_reachable(self) -> bool:
        return answer(_user("show", "--property=Version")).returncode == 0

    def start_commands(self, *, restarts: bool) -> list[Command]:
        return [_user("enable", UNIT), _user("restart", UNIT)] if restarts else [_user("enable", "--now", UNIT)]

    def stop_commands(self) -> list[Command]:
        return [_user("disable", "--now", UNIT)]

    def reload_commands(self) -> list[Command]:
        return [_user("daemon-reload")]

    def starts(self, definition: str, command: Command) -> bool:
        return f"\nExecStart={command_line(command)} " in definition

    def state(self) -> ServiceState:
        printed = answer(_user("show", UNIT, "--property=UnitFileState,ActiveState,MainPID")).stdout
        values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
        pid = int(values.get("MainPID") or 0)
        return ServiceState(
            values.get("UnitFileState") == "enabled", values.get("ActiveState") or "unknown", pid or None
        )

    def after_logout(self) -> str:
        # It fails for a user who is neither logged in nor lingers.
        lingers = answer(["loginctl", "show-user", str(os.getuid()), "--property=Linger"]).stdout.strip()
        if lingers == "Linger=yes":
            return "It starts at boot and runs on after you log out (linger is on)."
        return "It starts at login and ends at logout; 'loginctl enable-linger' keeps it running."

    def log_command(self, lines: int, *, follow: bool) -> Command:
        return ["journalctl", "--user", f"--unit={UNIT}", f"--lines={lines}", *["--follow"] * follow]


def _user(*words: str) -> Command:
    return ["systemctl", "--user", *words]
