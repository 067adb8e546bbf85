"""`agent-logger env`, read by real shells."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakeapi import FakeAPI, answers
from tests.internet import Internet

from agent_logger.proxy.state import Announcement, ProxyState, running

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
    state = ProxyState(pid=os.getpid(), started="2026-01-01T00:00:00.000Z", port=8080, log_dir="/tmp/logs", version="0")
    announcement = Announcement(Path(environment["AGENT_LOGGER_HOME"]), state)
    yield announcement
    announcement.close()


def shell_run(shell: str, environment: dict[str, str], *after: str) -> tuple[dict[str, str], str]:
    """What is set after the lines were evaluated, and what was said."""
    name = "fish" if shell == "fish" else "bash"
    evaluate = "agent-logger env fish | source" if shell == "fish" else f'eval "$(agent-logger env {name})"'
    script = "\n".join([evaluate, *after, "env"])
    options = ["--no-config"] if shell == "fish" else []
    done = subprocess.run([shell, *options, "-c", script], env=environment, capture_output=True, text=True, timeout=30)
    lines = [line.partition("=") for line in done.stdout.splitlines()]
    return {name: value for name, _, value in lines if name in NAMES}, done.stderr


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_env_routes_agents_of_a_shell_through_the_proxy(shell: str, environment: dict[str, str]) -> None:
    found, said = shell_run(shell, environment)
    assert found == {**URLS, "ENABLE_TOOL_SEARCH": "true", "NO_PROXY": "127.0.0.1,localhost"}
    assert said == ""


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_variables_already_set_are_not_changed(shell: str, environment: dict[str, str]) -> None:
    theirs = {"ANTHROPIC_BASE_URL": "https://llm.example.com", "NO_PROXY": "a.b", "no_proxy": "127.0.0.1,c"}
    ours = {"OPENAI_BASE_URL": "http://127.0.0.1:9999/openai/api.openai.com/v1"}  # of an earlier proxy
    found, said = shell_run(shell, {**environment, **theirs, **ours})
    assert found["ANTHROPIC_BASE_URL"] == "https://llm.example.com"
    assert "ANTHROPIC_BASE_URL is already set" in said
    assert found["OPENAI_BASE_URL"] == URLS["OPENAI_BASE_URL"]
    assert found["NO_PROXY"] == "a.b,127.0.0.1,localhost"
    assert found["no_proxy"] == "127.0.0.1,c"


GATEWAY = "http://127.0.0.1:4000"


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_local_gateway_is_not_replaced(shell: str, environment: dict[str, str]) -> None:
    theirs = {
        "ANTHROPIC_BASE_URL": GATEWAY,
        "OPENAI_BASE_URL": "http://127.0.0.1:4000/openai/v1/",
        "GOOGLE_GEMINI_BASE_URL": "HTTP://LOCALHOST:4000/it's $(false) \\",
        "OPENCODE_CONFIG_CONTENT": '{"provider":{"anthropic":{"options":{"baseURL":"http://127.0.0.1:4000/v1"}}}}',
    }
    found, said = shell_run(shell, {**environment, **theirs})
    assert found == theirs
    assert said.count("is already set and is not changed") == 3


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("shell", SHELLS)
def test_an_allowed_gateway_is_routed_through_the_proxy_and_restored_later(
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
def test_the_printed_lines_do_not_fail_in_a_shell_with_set_eu(
    shell: str, theirs: dict[str, str], environment: dict[str, str]
) -> None:
    lines = subprocess.run(
        ["agent-logger", "env", "bash"], env={**environment, **theirs}, capture_output=True, text=True
    )
    gone = f'rm "{Path(environment["AGENT_LOGGER_HOME"]) / f"proxy-{os.getpid()}.json"}"'
    script = f"set -eu\n{lines.stdout}\n{gone}\n{lines.stdout}\necho done"
    done = subprocess.run([shell, "-c", script], env={**environment, **theirs}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_are_removed_after_the_proxy_ended(
    shell: str, environment: dict[str, str], proxy: Announcement
) -> None:
    gone = f'rm "{Path(environment["AGENT_LOGGER_HOME"]) / f"proxy-{os.getpid()}.json"}"'
    found, said = shell_run(shell, environment, gone, "agent_logger_env")
    assert not set(found) & set(URLS)
    assert "the proxy has stopped" in said
    assert proxy is not None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_nothing_is_printed_when_no_proxy_is_running(shell: str, environment: dict[str, str]) -> None:
    line = ["agent-logger", "env", "--no-start", shell]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no proxy is running" in done.stderr
    stopped = subprocess.run(["agent-logger", "env", "--stop"], env=environment, capture_output=True, text=True)
    assert stopped.returncode == 1 and "no proxy was started" in stopped.stderr


# ---------------------------------------------------------------- a proxy in the background

ASKS = """
eval "$(agent-logger env bash)"
echo "$ANTHROPIC_BASE_URL"
curl -s -o /dev/null -w '%{http_code}\n' "$ANTHROPIC_BASE_URL/v1/models"
agent-logger status --json > status
read line
"""


def states(environment: dict[str, str]) -> list[ProxyState]:
    return running(Path(environment["AGENT_LOGGER_HOME"]))


def ended(environment: dict[str, str]) -> bool:
    give_up = time.monotonic() + 20
    while states(environment) and time.monotonic() < give_up:
        time.sleep(0.05)
    return not states(environment)


def shell_asking(environment: dict[str, str], api: FakeAPI) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        ["bash", "-c", ASKS],
        env={**environment, "ANTHROPIC_BASE_URL": f"{api.url}/gateway"},
        cwd=environment["HOME"],
        stdin=pipe,
        stdout=pipe,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    host = api.url.removeprefix("http://")
    url = process.stdout.readline()
    assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/anthropic/{re.escape(host)}/gateway\n", url), url
    assert process.stdout.readline() == "200\n"
    return process


def test_env_starts_a_proxy_for_as_long_as_the_session_of_the_shell_lives(environment: dict[str, str]) -> None:
    with FakeAPI(answers({"text": "Hello."})) as api:
        with shell_asking(environment, api) as process:
            time.sleep(3)  # longer than an unused proxy stays
            (state,) = states(environment)
            assert state.log_dir == f"{environment['AGENT_LOGGER_HOME']}/logs"
            process.communicate("\n")
        assert ended(environment)
    assert [call.path for call in api.calls] == ["/gateway/v1/models"]


def test_env_stop_ends_the_proxy_that_env_started(environment: dict[str, str]) -> None:
    with FakeAPI(answers({"text": "Hello."})) as api, shell_asking(environment, api) as process:
        stopped = subprocess.run(["agent-logger", "env", "--stop"], env=environment, capture_output=True, text=True)
        assert stopped.returncode == 0
        assert ended(environment)
        process.communicate("\n")


def test_a_shell_keeps_the_proxy_of_a_run_that_it_was_sent_to(environment: dict[str, str]) -> None:
    asks = 'agent-logger run -- true; eval "$(agent-logger env bash)"; echo "$ANTHROPIC_BASE_URL"; read line'
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["bash", "-c", asks], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        assert process.stdout
        url = process.stdout.readline()
        time.sleep(4)  # longer than an unused proxy stays
        assert [f"http://127.0.0.1:{state.port}/" in url for state in states(environment)] == [True], url
        process.communicate("\n")
    assert ended(environment)


@pytest.mark.usefixtures("proxy")
def test_the_shell_is_detected_from_the_environment(environment: dict[str, str]) -> None:
    line = ["agent-logger", "env"]
    fish = subprocess.run(line, env={**environment, "SHELL": "/usr/bin/fish"}, capture_output=True, text=True)
    zsh = subprocess.run(line, env={**environment, "SHELL": "/bin/zsh"}, capture_output=True, text=True)
    assert fish.stdout.startswith("function agent_logger_env\n")
    assert zsh.stdout.startswith("agent_logger_env() {\n")


# ---------------------------------------------------------------- the forward door

ASK = (
    "curl -sS https://api.openai.com/v1/chat/completions -H 'Content-Type: application/json' "
    '-d \'{"model": "gpt-fake-1", "messages": [{"role": "user", "content": "Hi"}]}\''
)


@pytest.fixture
def internet(tmp_path: Path) -> Iterator[Internet]:
    with (
        FakeAPI(answers({"text": "Hello."}, repeat=True)) as api,
        Internet(tmp_path / "internet", api.port) as internet,
    ):
        yield internet


@pytest.mark.needs("curl")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_with_the_forward_door_records_what_asks_a_model(
    shell: str, environment: dict[str, str], internet: Internet
) -> None:
    variables = {**environment, "HTTPS_PROXY": internet.url, "SSL_CERT_FILE": str(internet.ca_file), "SHELL": shell}
    evaluate = "agent-logger env --door forward"
    evaluate = f"{evaluate} fish | source" if shell == "fish" else f'eval "$({evaluate})"'
    options = ["--no-config"] if shell == "fish" else []
    script = "\n".join([evaluate, ASK, "agent-logger env --stop"])
    done = subprocess.run(
        [shell, *options, "-c", script],
        env=variables,
        capture_output=True,
        text=True,
        timeout=100,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "Hello."
    assert [tunnel.credentials for tunnel in internet.tunnels] == [None]  # the token is for our proxy alone
    home = Path(environment["AGENT_LOGGER_HOME"])
    give_up = time.monotonic() + 60
    while running(home):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    [log] = (home / "logs" / "openai").glob("*.jsonl")
    assert '"door":"forward"' in log.read_text()


def test_without_a_proxy_nothing_is_printed_for_the_forward_door(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "agent_logger", "env", "--door", "forward", "--no-start"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no proxy is running that has the forward door" in done.stderr
