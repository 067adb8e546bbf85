"""Tests whose component is missing are skipped with the reason. In CI they fail if it could have been installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import clients
from tests.components import COMPONENTS, Missing, look_for

ROOT = Path(__file__).parents[1]


def add_program(folder: Path, name: str, content: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)
    (folder / name).chmod(0o755)
    return folder / name


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH; nothing is installed in the checkout."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(clients, "ROOT", tmp_path)
    return folder


def test_an_npm_client_is_missing_with_the_reason_that_npm_is_missing(programs: Path) -> None:
    assert look_for("codex") == Missing("npm and node not on the PATH", obtainable=False)
    add_program(programs, "node")
    assert look_for("codex") == Missing("npm not on the PATH", obtainable=False)
    add_program(programs, "npm")
    assert look_for("codex") == Missing("not installed; ./dev setup installs it with npm", obtainable=True)


def test_a_client_that_is_a_node_script_is_missing_without_node(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".components/node_modules/.bin"
    script = add_program(folder, "codex", "#!/usr/bin/env node\nconsole.log(1)\n")
    binary = add_program(folder, "opencode", "\x7fELF\x02\x01node\n")
    assert clients.find_codex() is None
    assert clients.find_opencode() == binary
    add_program(programs, "node")
    assert clients.find_codex() == script


def test_a_client_that_needs_a_newer_node_is_found_beside_it(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".components/node/node_modules/.bin"
    add_program(programs, "node")
    script = add_program(folder, "kimi", "#!/usr/bin/env node\n")
    assert clients.find_kimi() is None
    add_program(folder, "node")
    assert clients.find_kimi() == script


@pytest.mark.parametrize("user", [0, 1000])
def test_the_reason_for_a_missing_program_depends_on_apt_get_and_root(
    programs: Path, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    reason = "not on the PATH, and there is no apt-get to install it"
    assert look_for("fish") == Missing(reason, obtainable=False)
    add_program(programs, "apt-get")
    missing = look_for("fish")
    if user == 0:
        assert missing == Missing("not installed; ./dev setup --full installs it with apt-get", obtainable=True)
    else:
        reason = "not on the PATH, and only root can install it with apt-get"
        assert missing == Missing(reason, obtainable=False)
    add_program(programs, "fish")
    assert look_for("fish") is None


@pytest.mark.parametrize("ci", [False, True])
@pytest.mark.parametrize("obtainable", [False, True])
def test_a_missing_component_skips_its_tests_and_fails_in_ci_if_obtainable(
    programs: Path, ci: bool, obtainable: bool
) -> None:
    if obtainable:
        add_program(programs, "apt-get")
    if obtainable and os.geteuid() != 0:
        pytest.skip("needs root: for others apt-get is not there")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/cli/test_env.py",
        "-k",
        "zsh",
    ]
    environment = {"PATH": str(programs), **({"CI": "true"} if ci else {})}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "needs zsh: not" in done.stdout
    assert done.returncode == (1 if ci and obtainable else 0)
    assert ("skipped" in done.stdout) is (done.returncode == 0)


def test_missing_components_are_listed_with_their_reasons(programs: Path) -> None:
    command = [sys.executable, "-m", "tests.components"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(programs)}, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "zsh: not on the PATH, and there is no apt-get to install it" in lines
    assert "codex: npm and node not on the PATH" in lines
    assert {line.split(":")[0] for line in lines} <= COMPONENTS.keys()
