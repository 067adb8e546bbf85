"""The service as an agent of launchd, which starts it at login."""

import os
import plistlib
import re
import shutil
from pathlib import Path
from xml.parsers.expat import ExpatError

from agent_logger.service.manager import Command, ServiceError, ServiceProgram, ServiceState, answer

LABEL = "agent-logger"
LOG = "service.log"  # in our home
MOST_LOG_BYTES = 1 << 20
REMAINING_LOG_BYTES = 1 << 18  # of a log that has become too large

# Characters that XML cannot hold.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def property_list(program: ServiceProgram, log: Path) -> str:
    """Return the text of the property list. Raises `ServiceError`."""
    for text in (*program.arguments, *program.environment.values(), str(log)):
        if _NOT_IN_XML.search(text):
            raise ServiceError(f"{text!r} has a character that a property list cannot hold")
    values = {
        "Label": LABEL,
        "ProgramArguments": list(program.arguments),
        "EnvironmentVariables": dict(program.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},  # restart on failure
        "ThrottleInterval": 10,
        "ExitTimeOut": 45,
        "Umask": 0o077,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    return plistlib.dumps(values, sort_keys=False).decode()


class Launchd:
    def __init__(self, user_folder: Path, home: Path) -> None:
        self.file = user_folder / "Library/LaunchAgents" / f"{LABEL}.plist"
        self._log = home / LOG
        self._domain = f"gui/{os.getuid()}"
        self._service = f"{self._domain}/{LABEL}"

    def definition(self, program: ServiceProgram) -> str:
        return property_list(program, self._log)

    def obstacle(self) -> str | None:
        return None if shutil.which("launchctl") else "launchctl is missing"

    def is_reachable(self) -> bool:
        return answer(["launchctl", "print", self._domain]).returncode == 0

    def start_commands(self, *, restarts: bool) -> list[Command]:
        if self.state().is_enabled and not restarts:
            return [["launchctl", "kickstart", self._service]]
        # A changed file is read only when it is loaded. The user may have disabled the service once.
        enable = ["launchctl", "enable", self._service]
        return [*self.stop_commands(), enable, ["launchctl", "bootstrap", self._domain, str(self.file)]]

    def stop_commands(self) -> list[Command]:
        return [["launchctl", "bootout", self._service]] if self.state().is_enabled else []

    def reload_commands(self) -> list[Command]:
        return []

    def starts(self, definition: str, command: Command) -> bool:
        try:
            arguments = plistlib.loads(definition.encode())["ProgramArguments"]
        except (plistlib.InvalidFileException, ExpatError, LookupError, TypeError):
            return False
        return bool(arguments[: len(command)] == list(command))

    def state(self) -> ServiceState:
        printed = answer(["launchctl", "print", self._service]).stdout
        values = dict(re.findall(r"^\t(state|pid) = (.+)$", printed, re.MULTILINE))
        return ServiceState("state" in values, values.get("state", "not loaded"), int(values.get("pid", 0)) or None)

    def after_logout(self) -> str:
        return "It starts at login and ends at logout."

    def log_command(self, lines: int, *, follow: bool) -> Command:
        return ["tail", "-n", str(lines), *["-F"] * follow, str(self._log)]


def limit_log(home: Path, descriptor: int = 2) -> None:
    """Cut the service's log to its end if it is too large and `descriptor` leads to it. launchd only appends."""
    path = home / LOG
    try:
        if not os.path.samestat(os.fstat(descriptor), os.stat(path)) or os.path.getsize(path) <= MOST_LOG_BYTES:
            return
        with path.open("r+b") as log:
            log.seek(-REMAINING_LOG_BYTES, os.SEEK_END)
            log.readline()  # the rest of a line
            end = log.read()
            log.seek(0)
            log.write(end)
            log.truncate()
    except OSError:
        return  # a log that cannot be cut is no reason not to record
