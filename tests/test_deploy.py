"""The files in `deploy/` with which a hub is run: they are of their forms, and the commands in them exist."""

import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from agent_logger.cli import shell

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
README = (DEPLOY / "README.md").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))

# Options of the hub's commands that these files use and that are still to come. One that is there must leave this list.
NOT_YET = {"--database"}


def uses() -> dict[str, set[str]]:
    """Return the options with which each command is used in the files."""
    lines = README.replace("\\\n", " ").splitlines()
    lines += [line for unit in UNITS for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
    commands: dict[str, set[str]] = {}
    for line in lines:
        for match in re.finditer(r"agent-logger((?: hub)? (?!agent)[a-z]+)((?: +[^`|;]*)?)", line):
            add(commands, match[1].strip(), match[2])
        if through_docker := re.search(r"docker compose run --rm serve ([a-z]+)(.*)", line):
            add(commands, f"hub {through_docker[1]}", through_docker[2])
    for command in re.findall(r"^    command:\n((?:      - .*\n)+)", COMPOSE, re.MULTILINE):
        name, *options = re.findall(r"- (.*)", command)
        if name != "server":  # of the store
            add(commands, f"hub {name}", " ".join(options))
    return commands


def add(commands: dict[str, set[str]], name: str, arguments: str) -> None:
    commands.setdefault(name, set()).update(re.findall(r"(?<!\S)--[a-z-]+", arguments))


def command_of(name: str) -> click.Command | None:
    command: click.Command | None = shell
    for word in name.split():
        if not isinstance(command, click.Group):
            return None
        command = command.get_command(click.Context(command), word)
    return command


def test_the_files_use_the_commands_of_the_hub() -> None:
    assert {"hub serve", "hub work", "hub invite", "hub rebuild", "hub verify", "join"} <= set(uses())


@pytest.mark.parametrize("name", sorted(uses()))
def test_every_command_in_the_files_exists(name: str) -> None:
    command = command_of(name)
    assert command
    options = {option for parameter in command.params for option in parameter.opts}
    assert uses()[name] - options == uses()[name] & NOT_YET


def test_the_compose_file_has_the_four_parts() -> None:
    yaml: Any = pytest.importorskip("yaml")
    content = yaml.safe_load(COMPOSE)
    services = content["services"]
    assert set(services) == {"serve", "work", "database", "store"}
    for name in ("serve", "work"):
        service = services[name]
        assert service["command"][:3] == [
            name,
            "--database=postgresql://hub@database/hub",
            "--store=s3://agent-logger/hub",
        ]
        assert set(service["depends_on"]) == {"database", "store"}
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), "nothing is open to all"
        volumes = [volume.partition(":")[0] for volume in service.get("volumes", [])]
        assert set(volumes) <= set(content["volumes"])


def test_no_password_is_in_the_files() -> None:
    for path in sorted(DEPLOY.rglob("*")):
        for name, value in re.findall(
            r"(\w*(?:PASSWORD|KEY|KEY_ID))\s*[:=][ \t]*(\S*)", path.read_text() if path.is_file() else ""
        ):
            assert not value or value.startswith(("$", '"$', "`", "'")), f"{name} in {path.name}"


@pytest.mark.needs("systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_the_units_are_ones_of_systemd(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text()
    program = re.findall(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert program == ["/opt/agent-logger/bin/agent-logger"]
    copy = tmp_path / unit.name.replace("@", "@1")
    copy.write_text(text.replace(program[0], shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if unit.name.partition("@")[0].partition(".")[0] in line]
    assert (done.returncode, own) == (0, [])


def test_the_image_is_built_from_what_the_ignore_file_leaves(tmp_path: Path) -> None:
    """As the first half of the Dockerfile does, with the files that reach it."""
    _, *patterns = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for pattern in patterns:
        if not pattern.startswith("!"):
            continue
        source, target = ROOT / pattern[1:], tmp_path / "source" / pattern[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=lambda _, names: fnmatch.filter(names, "__pycache__"))
        else:
            shutil.copy(source, target)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, check=True, cwd=tmp_path / "source", capture_output=True)
    assert len(list(tmp_path.glob("agent_logger-*.whl"))) == 1
    assert (tmp_path / "source/constraints.txt").exists(), "which the Dockerfile names"
