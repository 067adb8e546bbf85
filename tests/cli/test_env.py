"""`agent-logger env`, read by real shells."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger.proxy.state import Announcement, ProxyState

BIN = str(Path(sys.executable).parent)
SHELLS = [
    "bash",
    "sh",
    pytest.param("zsh", marks=pytest.mark.needs("zsh")),
    pytest.param("fish", marks=pytest.mark.needs("fish")),
]
URLS = {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080/anthropic/api.anthropic.com",
    "OPENAI_BASE_URL": "http://127.0.0.1:8080/openai/api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:8080/gemini/generativelanguage.googleapis.com",
    "OPENCODE_CONFIG_CONTENT": '{"provider":{"anthropic":{"options":{"baseURL":'
    '"http://127.0.0.1:8080/anthropic/api.anthropic.com/v1"}}}}',
}
NAMES = [*URLS, "ENABLE_TOOL_SEARCH", "NO_PROXY", "no_proxy"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "it's a home"
    return {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AGENT_LOGGER_HOME": str(home),
    }


@pytest.fixture
def proxy(environment: dict[str, str]) -> Iterator[Announcement]:
    """The word that a proxy runs, kept by this process."""
    state = ProxyState(
        pid=os.getpid(), started="2026-01-01T00:00:00.000Z", port=8080, log_dir="/tmp/logs", version="0"
    )
    announcement = Announcement(Path(environment["AGENT_LOGGER_HOME"]), state)
    yield announcement
    announcement.close()


def shell_run(shell: str, environment: dict[str, str], *after: str) -> tuple[dict[str, str], str]:
    """What is set after the lines were evaluated, and what was said."""
    name = "fish" if shell == "fish" else "bash"
    evaluate = "agent-logger env fish | source" if shell == "fish" else f'eval "$(agent-logger env {name})"'
    script = "\n".join([evaluate, *after, "env"])
    options = ["--no-config"] if shell == "fish" else []
    done = subprocess.run(
        [shell, *options, "-c", script], env=environment, capture_output=True, text=True, timeout=30
    )
    lines = [line.partition("=") for line in done.stdout.splitlines()]
    return {name: value for name, _, value in lines if name in NAMES}, done.stderr


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_agents_of_a_shell_are_sent_through_the_proxy(shell: str, environment: dict[str, str]) -> None:
    found, said = shell_run(shell, environment)
    assert found == {**URLS, "ENABLE_TOOL_SEARCH": "true", "NO_PROXY": "127.0.0.1,localhost"}
    assert said == ""


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_set_already_stays(shell: str, environment: dict[str, str]) -> None:
    theirs = {"ANTHROPIC_BASE_URL": "https://llm.example.com", "NO_PROXY": "a.b", "no_proxy": "127.0.0.1,c"}
    ours = {"OPENAI_BASE_URL": "http://127.0.0.1:9999/openai/api.openai.com/v1"}  # of an earlier proxy
    found, said = shell_run(shell, {**environment, **theirs, **ours})
    assert found["ANTHROPIC_BASE_URL"] == "https://llm.example.com"
    assert "ANTHROPIC_BASE_URL is set already" in said
    assert found["OPENAI_BASE_URL"] == URLS["OPENAI_BASE_URL"]
    assert found["NO_PROXY"] == "a.b,127.0.0.1,localhost"
    assert found["no_proxy"] == "127.0.0.1,c"


GATEWAY = "http://127.0.0.1:4000"


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_gateway_on_this_machine_stays(shell: str, environment: dict[str, str]) -> None:
    theirs = {
        "ANTHROPIC_BASE_URL": GATEWAY,
        "OPENAI_BASE_URL": "http://127.0.0.1:4000/openai/v1/",
        "GOOGLE_GEMINI_BASE_URL": "HTTP://LOCALHOST:4000/it's $(false) \\",
        "OPENCODE_CONFIG_CONTENT": '{"provider":{"anthropic":{"options":{"baseURL":"http://127.0.0.1:4000/v1"}}}}',
    }
    found, said = shell_run(shell, {**environment, **theirs})
    assert found == theirs
    assert said.count("is set already and stays") == 3


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_gateway_that_the_proxy_may_call_is_reached_through_it_and_given_back(
    shell: str, environment: dict[str, str]
) -> None:
    state = ProxyState(
        pid=os.getppid(),
        started="2026-01-02T00:00:00.000Z",
        port=8090,
        log_dir="/tmp/logs",
        version="0",
        allow_upstream=(GATEWAY,),
    )
    home = Path(environment["AGENT_LOGGER_HOME"])
    theirs = {"ANTHROPIC_BASE_URL": f"{GATEWAY}/v1/", "OPENAI_BASE_URL": "http://127.0.0.1:4001"}
    announcement = Announcement(home, state)
    try:
        found, _ = shell_run(shell, {**environment, **theirs})
        gone = f'rm "{home / f"proxy-{os.getppid()}.json"}"'
        later, _ = shell_run(shell, {**environment, **theirs}, gone, "agent_logger_env; true")
    finally:
        announcement.close()
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8090/anthropic/127.0.0.1:4000/v1/"
    assert found["OPENAI_BASE_URL"] == "http://127.0.0.1:4001"
    assert not {"ENABLE_TOOL_SEARCH", "OPENCODE_CONFIG_CONTENT"} & set(found)
    assert {name: later.get(name) for name in theirs} == theirs


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", ["bash", "sh", pytest.param("zsh", marks=pytest.mark.needs("zsh"))])
@pytest.mark.parametrize("theirs", [{}, {"ANTHROPIC_BASE_URL": GATEWAY}], ids=["nothing set", "a gateway"])
def test_the_lines_do_not_end_a_shell_that_stops_at_the_first_failure(
    shell: str, theirs: dict[str, str], environment: dict[str, str]
) -> None:
    lines = subprocess.run(
        ["agent-logger", "env", "bash"], env={**environment, **theirs}, capture_output=True, text=True
    )
    gone = f'rm "{Path(environment["AGENT_LOGGER_HOME"]) / f"proxy-{os.getpid()}.json"}"'
    script = f"set -eu\n{lines.stdout}\n{gone}\n{lines.stdout}\necho done"
    done = subprocess.run(
        [shell, "-c", script], env={**environment, **theirs}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_proxy_that_ended_is_not_used_any_more(
    shell: str, environment: dict[str, str], proxy: Announcement
) -> None:
    gone = f'rm "{Path(environment["AGENT_LOGGER_HOME"]) / f"proxy-{os.getpid()}.json"}"'
    found, said = shell_run(shell, environment, gone, "agent_logger_env")
    assert not set(found) & set(URLS)
    assert "the proxy is gone" in said
    assert proxy is not None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_nothing_is_printed_when_no_proxy_runs(shell: str, environment: dict[str, str]) -> None:
    done = subprocess.run(["agent-logger", "env", shell], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no proxy is running" in done.stderr


@pytest.mark.usefixtures("proxy")
def test_the_shell_is_told_from_the_environment(environment: dict[str, str]) -> None:
    line = ["agent-logger", "env"]
    fish = subprocess.run(line, env={**environment, "SHELL": "/usr/bin/fish"}, capture_output=True, text=True)
    zsh = subprocess.run(line, env={**environment, "SHELL": "/bin/zsh"}, capture_output=True, text=True)
    assert fish.stdout.startswith("function agent_logger_env\n")
    assert zsh.stdout.startswith("agent_logger_env() {\n")
