"""`agent-logger service`, with small programs in the place of the service managers."""

import json
import os
import plistlib
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.commands import run_command
from tests.service.managers import FakeManager, install_programs

from agent_logger.cli import service
from agent_logger.proxy.state import ProxyState, running, running_pages, state_path
from agent_logger.service.launchd import Launchd

PORTS = ("--port", "0", "--page-port", "0")
ENABLE = ["systemctl", "--user", "enable", "agent-logger.service"]
ENABLE_NOW = ["systemctl", "--user", "enable", "--now", "agent-logger.service"]
RESTART = ["systemctl", "--user", "restart", "agent-logger.service"]
RELOAD = ["systemctl", "--user", "daemon-reload"]
DISABLE = ["systemctl", "--user", "disable", "--now", "agent-logger.service"]


class Machine:
    """A user's machine with a service manager that answers as the fake does."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user 1"
        self.user.mkdir()
        self.home = self.user / ".agent-logger"
        self.fake = FakeManager(folder / "fake")
        self.fake.folder.mkdir()
        install_programs(folder / "bin")
        self.unit = self.user / ".config/systemd/user/agent-logger.service"
        self.environment = {
            "HOME": str(self.user),
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "FAKE": str(self.fake.folder),
            "COLUMNS": "80",
        }

    def service(self, *words: str, answer: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        return run_command(["service", *words], {**self.environment, **variables}, folder=self.user, said=answer)

    @property
    def proxy(self) -> ProxyState:
        (state,) = running(self.home)
        return state

    def settings(self) -> list[tuple[str, str]]:
        return [(name, value) for name, _, value in (line.partition("=") for line in self.unit.read_text().split("\n"))]

    def command(self) -> list[str]:
        return shlex.split(dict(self.settings())["ExecStart"])


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.fake.stop()


def until(is_true: Callable[[], object]) -> bool:
    deadline = time.monotonic() + 20
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(is_true())


def test_install_shows_the_unit_and_writes_only_after_confirmation(machine: Machine) -> None:
    refused = machine.service("install", answer="n\n")
    assert refused.returncode == 1
    assert "+ExecStart=" in refused.stdout
    assert f"--log-dir '{machine.home}/logs'" in refused.stderr
    assert not machine.unit.exists()
    assert machine.fake.calls() == []


def test_an_installed_service_records_to_the_home_until_it_is_removed(machine: Machine) -> None:
    done = machine.service("install", *PORTS, "--yes")
    assert done.returncode == 0, done.stderr
    assert machine.fake.calls() == [RELOAD, ENABLE, RESTART]
    assert machine.proxy.pid == machine.fake.pid
    assert machine.proxy.log_dir == str(machine.home / "logs")
    assert f"http://127.0.0.1:{machine.proxy.port} " in done.stderr
    assert "loginctl enable-linger" in done.stderr
    assert machine.unit.stat().st_mode & 0o777 == 0o600

    assert until(lambda: running_pages(machine.home))
    shown = machine.service("status")
    assert shown.returncode == 0
    assert f"http://127.0.0.1:{machine.proxy.port} " in shown.stdout
    assert f"http://127.0.0.1:{running_pages(machine.home)[0].port}\n" in shown.stdout
    assert "link" not in (machine.fake.folder / "stderr").read_text(), "others may read the journal"

    removed = machine.service("remove", "--yes")
    assert removed.returncode == 0
    assert machine.fake.calls()[-2:] == [DISABLE, RELOAD]
    assert running(machine.home) == []
    assert not machine.unit.exists()
    assert "are kept" in removed.stderr
    assert (machine.home / "logs").is_dir()
    assert machine.service("status").returncode == 1
    assert "nothing to do" in machine.service("remove").stderr


def test_installing_again_leaves_a_running_service_alone_unless_it_is_of_another_version(machine: Machine) -> None:
    machine.service("install", *PORTS, "--yes")
    first = machine.proxy
    again = machine.service("install", *PORTS)
    assert (again.returncode, again.stdout) == (0, "")
    assert machine.fake.calls()[-2:] == [RELOAD, ENABLE_NOW]
    assert machine.proxy == first

    path = state_path(machine.home, first.pid)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": "0.0.1"}))
    assert machine.service("install", *PORTS).returncode == 0
    assert machine.fake.calls()[-1] == RESTART
    assert machine.proxy.pid != first.pid


def test_a_changed_unit_is_shown_as_a_difference_and_restarts_the_service(machine: Machine) -> None:
    machine.service("install", *PORTS, "--yes")
    first = machine.proxy
    changed = machine.service("install", *PORTS, "--workers", "2", answer="y\n")
    assert changed.returncode == 0
    assert [line[0] for line in changed.stdout.splitlines() if "ExecStart" in line] == ["-", "+"]
    assert machine.proxy.pid != first.pid


def test_without_systemd_nothing_is_written_and_an_alternative_is_named(machine: Machine) -> None:
    (machine.fake.folder / "offline").touch()
    done = machine.service("install", "--yes")
    assert done.returncode == 1
    assert "systemd does not run on this machine" in done.stderr
    assert f"agent-logger start --no-open --log-dir '{machine.home}/logs' &" in done.stderr
    assert not machine.unit.exists()
    bare = machine.service("install", "--yes", PATH="/nowhere")
    assert (bare.returncode, bare.stderr) == (1, done.stderr)


def test_a_manager_that_does_not_answer_gets_the_unit_and_the_user_the_commands(machine: Machine) -> None:
    (machine.fake.folder / "unreachable").touch()
    done = machine.service("install", "--yes")
    assert done.returncode == 1
    assert machine.unit.exists()
    assert [shlex.split(line) for line in done.stderr.splitlines()[-3:]] == [RELOAD, ENABLE, RESTART]
    removed = machine.service("remove", "--yes")
    assert removed.returncode == 1
    assert machine.unit.exists(), "the service may be running"
    assert [shlex.split(line) for line in removed.stderr.splitlines()[-2:]] == [DISABLE, ["rm", str(machine.unit)]]


def test_a_service_that_cannot_record_is_reported(machine: Machine) -> None:
    (machine.user / "file").touch()
    done = machine.service("install", *PORTS, "--yes", "--log-dir", str(machine.user / "file"))
    assert done.returncode == 1
    assert "service logs" in done.stderr
    assert machine.service("status").returncode == 1


def test_a_password_of_the_upstream_proxy_is_neither_written_nor_printed(machine: Machine) -> None:
    (machine.fake.folder / "unreachable").touch()
    done = machine.service("install", "--yes", HTTPS_PROXY="http://user:hunter2@proxy:3128", NO_PROXY="localhost")
    assert "hunter2" not in machine.unit.read_text() + done.stdout + done.stderr
    assert "HTTPS_PROXY has a password" in done.stderr
    assert ("Environment", '"NO_PROXY=localhost"') in machine.settings()


def test_the_service_gets_the_network_and_the_folders_of_agents_from_the_shell(machine: Machine) -> None:
    (machine.fake.folder / "unreachable").touch()
    variables = {"HTTPS_PROXY": "http://proxy:3128", "SSL_CERT_FILE": "/etc/ca.pem", "CODEX_HOME": "/srv/codex"}
    machine.service("install", "--yes", **variables, ANTHROPIC_API_KEY="sk-ant-1", AGENT_LOGGER_HOME="/srv/a %h")
    written = [value for name, value in machine.settings() if name == "Environment"]
    home = '"AGENT_LOGGER_HOME=/srv/a %%h"'
    assert sorted(written) == sorted([home, *(f'"{name}={value}"' for name, value in variables.items())])


def test_a_certificate_file_of_ours_is_not_passed_on(machine: Machine) -> None:
    (machine.fake.folder / "unreachable").touch()
    machine.service("install", "--yes", SSL_CERT_FILE=str(machine.home / "ca/bundle.pem"))
    assert "SSL_CERT_FILE" not in machine.unit.read_text()


def test_options_and_variables_become_part_of_the_command_but_the_file_of_settings_is_read_later(
    machine: Machine,
) -> None:
    (machine.fake.folder / "unreachable").touch()
    machine.home.mkdir(mode=0o700)
    (machine.home / "config.toml").write_text('workers = 2\nallow_upstream = ["https://a.example"]\n')
    machine.service("install", "--yes", "--port", "9000", AGENT_LOGGER_SEAL_AFTER="2d")
    folders = ["--log-dir", f"{machine.home}/logs", "--sessions-dir", f"{machine.home}/sessions"]
    start = [sys.executable, "-P", "-m", "agent_logger", "start", "--no-open", "--no-link"]
    assert machine.command() == [*start, *folders, "--port", "9000", "--seal-after", "2d"]


def test_another_file_of_settings_and_other_folders_are_passed_on(machine: Machine) -> None:
    (machine.fake.folder / "unreachable").touch()
    (machine.user / "mine.toml").write_text("")
    machine.service("install", "--yes", "--config", "mine.toml", "--log-dir", "wire")
    assert machine.command()[-2:] == ["--config", str(machine.user / "mine.toml")]
    assert machine.command()[7:9] == ["--log-dir", str(machine.user / "wire")]


def test_the_unit_is_written_to_the_folder_that_xdg_config_home_names(machine: Machine, tmp_path: Path) -> None:
    (machine.fake.folder / "unreachable").touch()
    machine.service("install", "--yes", XDG_CONFIG_HOME=str(tmp_path / "settings"))
    assert (tmp_path / "settings/systemd/user/agent-logger.service").is_file()
    machine.service("install", "--yes", XDG_CONFIG_HOME="relative")
    assert machine.unit.is_file(), "the XDG specification ignores a relative path"


def test_status_reports_linger_and_an_executable_that_has_moved(machine: Machine) -> None:
    machine.service("install", *PORTS, "--yes")
    (machine.fake.folder / "linger").touch()
    assert "linger is on" in machine.service("status").stderr
    assert "another agent-logger" not in machine.service("status").stderr
    machine.unit.write_text(machine.unit.read_text().replace(sys.executable, "/old/python"))
    assert "another agent-logger" in machine.service("status").stderr


def test_logs_are_those_of_the_journal(machine: Machine) -> None:
    done = machine.service("logs", "-n", "7", "-f")
    assert (done.returncode, done.stdout) == (0, "a line of the journal\n")
    assert machine.fake.calls() == [["journalctl", "--user", "--unit=agent-logger.service", "--lines=7", "--follow"]]


def test_service_without_a_subcommand_is_wrong_usage(machine: Machine) -> None:
    done = machine.service()
    assert (done.returncode, done.stdout) == (2, "")
    assert "agent-logger service --help" in done.stderr


# ---------------------------------------------------------------- launchd


@pytest.fixture
def mac(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    manager = Launchd(machine.user, machine.home)
    return lambda *words, **given: CliRunner().invoke(
        service.command, words, obj=manager, standalone_mode=False, **given
    )


def test_a_launch_agent_is_installed_and_removed(machine: Machine, mac: Callable[..., Result]) -> None:
    path = machine.user / "Library/LaunchAgents/agent-logger.plist"
    domain = f"gui/{os.getuid()}"
    done = mac("install", *PORTS, "--yes")
    assert done.return_value == 0, done.output
    enable = ["launchctl", "enable", f"{domain}/agent-logger"]
    bootstrap = ["launchctl", "bootstrap", domain, str(path)]
    assert machine.fake.calls() == [enable, bootstrap]
    assert path.stat().st_mode & 0o777 == 0o600
    assert plistlib.loads(path.read_bytes())["StandardErrorPath"] == str(machine.home / "service.log")
    assert machine.proxy.pid == machine.fake.pid
    assert "ends at logout" in done.output

    assert mac("install", *PORTS).return_value == 0
    assert machine.fake.calls()[-1] == ["launchctl", "kickstart", f"{domain}/agent-logger"]
    assert mac("install", *PORTS, "--workers", "2", "--yes").return_value == 0
    bootout = ["launchctl", "bootout", f"{domain}/agent-logger"]
    assert machine.fake.calls()[-3:] == [bootout, enable, bootstrap]
    assert mac("status").return_value == 0
    assert mac("remove", "--yes").return_value == 0
    assert machine.fake.calls()[-1] == bootout
    assert not path.exists()
    assert running(machine.home) == []


def test_the_log_of_a_launch_agent_is_a_file_in_the_home(
    machine: Machine, mac: Callable[..., Result], capfd: pytest.CaptureFixture[str]
) -> None:
    machine.home.mkdir()
    (machine.home / "service.log").write_text("one\ntwo\nthree\n")
    assert mac("logs", "-n", "2").return_value == 0
    assert capfd.readouterr().out == "two\nthree\n"


def test_a_launch_agent_that_is_not_loaded_is_removed(machine: Machine, mac: Callable[..., Result]) -> None:
    path = machine.user / "Library/LaunchAgents/agent-logger.plist"
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert mac("remove", "--yes").return_value == 0
    assert not path.exists()
    assert machine.fake.calls() == []
