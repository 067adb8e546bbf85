"""Small programs in the place of `systemctl`, `loginctl`, `journalctl` and `launchctl`.

They note their arguments, and start and stop the program of the service for real. Files in the folder `FAKE` say
what they answer: `offline`, `unreachable`, `linger`.
"""

import json
import os
import plistlib
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("systemctl", "loginctl", "journalctl", "launchctl")


def install_programs(folder: Path) -> None:
    folder.mkdir()
    for name in PROGRAMS:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} {name} "$@"\n')
        path.chmod(0o755)


class FakeManager:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def calls(self) -> list[list[str]]:
        """The commands that changed something, in their order."""
        lines = (self.folder / "calls").read_text().splitlines() if self.has("calls") else []
        calls = [json.loads(line) for line in lines]
        return [words for words in calls if not {"show", "print", "is-system-running", "show-user"} & {*words}]

    @property
    def pid(self) -> int:
        """The process of the service; 0 if it has ended, also if nobody has waited for it."""
        if not self.has("pid"):
            return 0
        pid = (self.folder / "pid").read_text()
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
        return int(pid) if state.strip() and not state.startswith("Z") else 0

    def start(self, command: list[str], variables: dict[str, str]) -> None:
        if not self.pid:
            bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], **variables}
            with (self.folder / "stderr").open("ab") as errors:
                process = subprocess.Popen(
                    command,
                    env=bare,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    start_new_session=True,
                )
            (self.folder / "pid").write_text(str(process.pid))

    def stop(self) -> None:
        if pid := self.pid:
            os.kill(pid, signal.SIGTERM)
            while self.pid:
                time.sleep(0.05)


def systemctl(fake: FakeManager, words: list[str]) -> int:
    if words == ["is-system-running"]:
        print("offline" if fake.has("offline") else "running")
        return 0
    if fake.has("unreachable"):
        print("Failed to connect to bus: No medium found", file=sys.stderr)
        return 1
    enabled = fake.folder / "enabled"
    match words[1:]:
        case ["show", "--property=Version"]:
            print("Version=252")
        case ["show", _, _]:
            state = "active" if fake.pid else "inactive"
            print(f"MainPID={fake.pid}\nActiveState={state}\nUnitFileState={'enabled' if enabled.exists() else ''}")
        case ["enable", *now, _]:
            enabled.touch()
            if now:
                fake.start(*unit_command())
        case ["restart", _]:
            fake.stop()
            fake.start(*unit_command())
        case ["disable", "--now", _]:
            enabled.unlink()
            fake.stop()
    return 0


def unit_command() -> tuple[list[str], dict[str, str]]:
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    lines = (folder / "systemd/user/agent-logger.service").read_text().splitlines()
    values = [line.split("=", 1) for line in lines if "=" in line]
    variables = dict(shlex.split(value)[0].split("=", 1) for name, value in values if name == "Environment")
    (command,) = (shlex.split(value) for name, value in values if name == "ExecStart")
    return command, variables


def launchctl(fake: FakeManager, words: list[str]) -> int:
    loaded = fake.folder / "loaded"
    match words:
        case ["print", target]:
            if target.endswith("/agent-logger") and not loaded.exists():
                return 113
            print(f"{target} = {{\n\tstate = {'running' if fake.pid else 'not running'}")
            print(f"\tpid = {fake.pid}\n}}" if fake.pid else "}")
        case ["bootstrap", _, path]:
            loaded.touch()
            values = plistlib.loads(Path(path).read_bytes())
            fake.start(values["ProgramArguments"], values["EnvironmentVariables"])
        case ["bootout", _]:
            loaded.unlink()
            fake.stop()
    return 0


def main(name: str, words: list[str]) -> int:
    fake = FakeManager(Path(os.environ["FAKE"]))
    with (fake.folder / "calls").open("a") as calls:
        calls.write(json.dumps([name, *words]) + "\n")
    if name == "loginctl":
        print(f"Linger={'yes' if fake.has('linger') else 'no'}")
        return 0
    if name == "journalctl":
        print("a line of the journal")
        return 0
    return (systemctl if name == "systemctl" else launchctl)(fake, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
