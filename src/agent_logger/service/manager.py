"""A service manager of the operating system: what it must be asked to keep a program of ours running."""

import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from agent_logger.errors import AgentLoggerError

ANSWER_SECONDS = 60.0  # that the manager may take: it stops the program before it starts the new one
Command = Sequence[str]


class ServiceError(AgentLoggerError):
    """The service cannot be defined, started or stopped."""


class ServiceProgram(NamedTuple):
    """The program that a service runs."""

    arguments: Sequence[str]  # the executable first, with its full path
    environment: Mapping[str, str]


class ServiceState(NamedTuple):
    is_enabled: bool  # it starts by itself
    activity: str  # in the words of the manager: `active`, `failed`, ...
    pid: int | None  # of its main process


class ServiceManager(Protocol):
    """The commands are values, so that they can be shown where they cannot be run."""

    file: Path  # the definition of the service

    def definition(self, program: ServiceProgram) -> str:
        """Return the text of the file. `ServiceError`: the program cannot be written in one."""

    def obstacle(self) -> str | None:
        """Return why this machine cannot run a service, if it cannot."""

    def is_reachable(self) -> bool:
        """Whether the user's manager answers."""

    def start_commands(self, *, restarts: bool) -> list[Command]:
        """Return the commands that start the service now and at each login. `restarts`: also if it runs."""

    def stop_commands(self) -> list[Command]:
        """Return the commands that stop the service, now and for ever."""

    def reload_commands(self) -> list[Command]:
        """Return the commands that follow a change of the file, or its removal."""

    def starts(self, definition: str, command: Command) -> bool:
        """Whether a service with this definition starts this command, with whatever arguments."""

    def state(self) -> ServiceState: ...

    def after_logout(self) -> str:
        """Return a sentence that says whether the service runs on after the user has logged out."""

    def log_command(self, lines: int, *, follow: bool) -> Command: ...


def answer(command: Command) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. A program that is missing or hangs counts as one that failed."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def carry_out(commands: Iterable[Command]) -> None:
    """Run the commands one after the other. Raises `ServiceError` for the first that fails."""
    for command in commands:
        done = answer(command)
        if done.returncode:
            reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise ServiceError(f"{shlex.join(command)} failed: {reason}")
