"""Every command of README's first block and of docs/howto/ runs as it stands there, in a home of its own."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger.proxy.runs.processes import process_with
from tests.fakeapi import FakeAPI, answers
from tests.internet import Internet
from tests.internet.vendors import VendorHosts, chatgpt_login
from tests.recording.played import script

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/howto").glob("*.md"))
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TURN = {"text": "Hello.", "usage": {"input_tokens": 10, "output_tokens": 5}}
# Of the SDKs' environment alone, as a program of a user's would be.
PROGRAM = """
import json, os, urllib.request
def ask(variable, path, headers):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "tools": [{"name": "t"}]}
    request = urllib.request.Request(os.environ[variable] + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        answer.read()  # or it leaves before the body came, and nothing was answered
        print(answer.status)
"""
ASKS_ANTHROPIC = 'ask("ANTHROPIC_BASE_URL", "/v1/messages", {"content-type": "application/json", "x-api-key": "k"})'
ASKS_OPENAI = 'ask("OPENAI_BASE_URL", "/chat/completions", {"content-type": "application/json"})'


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with agent-logger installed from this checkout."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, symlinks=True, with_pip=True)
    python = folder / "bin/python"
    [site] = folder.glob("lib/python*/site-packages")
    ours = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site / "dependencies.pth").write_text(f"{ours}\n")  # what it depends on is here already
    _install(python)
    return folder / "bin"


def _install(python: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([python, "-m", "pip", "install", *options, str(ROOT)], check=True, capture_output=True)


def commands(text: str) -> Iterator[str]:
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            yield re.sub(r"\s{2,}#.*", "", line)


class Place:
    """A home, a project with a program and a claude, and the APIs that they call."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.project.mkdir()
        (folder / "bin").mkdir()
        (self.project / "program.py").write_text(PROGRAM + ASKS_ANTHROPIC)
        script(folder / "bin/claude", f"exec {shlex.quote(sys.executable)} {self.project / 'program.py'}")
        script(folder / "bin/git", "echo Already up to date.")
        self.environment = {
            "PATH": f"{folder / 'bin'}:{programs}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "SHELL": "/bin/bash",
            "TERM": "dumb",
        }

    def run(self, *lines: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            start_new_session=True,
        )
        assert done.returncode == 0 or MAY_FAIL.search(lines[-1]), (lines, done.stdout, done.stderr)
        return done

    def wait(self) -> None:
        """Wait until every process of this home has ended: a proxy that ends is not listed, but writes for a while."""
        give_up = time.monotonic() + 60
        while process_with(f"HOME={self.home}") and time.monotonic() < give_up:
            time.sleep(0.05)


# They fail where there is nothing to do, or where there is no service manager, as in a container.
MAY_FAIL = re.compile(r"^agent-logger (service|env --stop|doctor|hook --uninstall)")


@pytest.fixture
def place(tmp_path: Path, installed: Path) -> Place:
    return Place(tmp_path, installed)


def page(name: str) -> list[str]:
    return list(commands((ROOT / "docs/howto" / f"{name}.md").read_text()))


@pytest.fixture
def api(place: Place) -> Iterator[FakeAPI]:
    with FakeAPI(answers(*[TURN] * 9)) as api:
        place.environment["ANTHROPIC_BASE_URL"] = api.url
        yield api


def test_every_page_is_tried() -> None:
    assert {page.stem for page in PAGES} == {
        "another-machine",
        "gateways",
        "login",
        "sdk-requests",
        "several-homes",
        "uninstall",
        "upgrade",
    }


def test_the_readme_begins_with_commands_that_work(place: Place, api: FakeAPI) -> None:
    install, usage, run, view = list(commands((ROOT / "README.md").read_text()))[:4]
    assert install == "pip install ."  # what `installed` does
    assert "No sessions yet" in place.run(usage).stderr or place.run(usage).returncode == 0
    assert "1 request recorded" in place.run(run).stderr
    assert view == "agent-logger view"
    link = "for _ in $(seq 100); do grep -q http out && break; sleep 0.1; done; cat out; kill $!"
    assert "http://127.0.0.1:" in place.run(f"{view} --no-open > out 2>&1 & {link}").stdout


def test_requests_of_a_program_are_recorded(place: Place, api: FakeAPI) -> None:
    run, show, *shell = page("sdk-requests")
    last = re.search(r"1 request recorded .* agent-logger show ([\w-]+)", place.run(run).stderr)
    assert last and "/v1/messages" in place.run(show.replace("ID", last[1])).stdout
    assert "200" in place.run(*shell).stdout
    assert len(api.calls) == 2


def test_gateways_and_local_models_are_followed(place: Place) -> None:
    claude, program, proxy = page("gateways")
    with FakeAPI(answers(TURN)) as one, FakeAPI(answers(TURN)) as other:
        first = place.run(claude.replace("http://127.0.0.1:4000", one.url))
        (place.project / "program.py").write_text(PROGRAM + ASKS_OPENAI)
        second = place.run(program.replace("http://127.0.0.1:11434", other.url))
    assert "1 request recorded" in first.stderr and len(one.calls) == 1
    assert "1 request recorded" in second.stderr and [call.path for call in other.calls] == ["/v1/chat/completions"]
    started = place.run(f"timeout 20 {proxy} --port 0 > out 2>&1 & {WAIT}")
    assert "The proxy listens on" in started.stdout


@pytest.mark.needs("curl")
def test_agents_with_a_login_are_recorded(place: Place, tmp_path: Path) -> None:
    codex, program, *shell = page("login")
    body = json.dumps({"model": "gpt-fake-1", "stream": True, "input": [{"role": "user", "content": "Hi"}]})
    asks = f"curl -sS -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    script(tmp_path / "bin/codex", f"exec {asks} https://chatgpt.com/backend-api/codex/responses")
    (place.home / ".codex").mkdir(parents=True)
    (place.home / ".codex/auth.json").write_text(json.dumps(chatgpt_login()))
    command = [*shlex.split(asks), "https://api.openai.com/v1/responses"]
    (place.project / "program.py").write_text(f"import subprocess\nsubprocess.run({command}, check=True)\n")
    with VendorHosts(answers(TURN, repeat=True)) as api, Internet(tmp_path / "internet", api.port) as internet:
        place.environment |= {"HTTPS_PROXY": internet.url, "SSL_CERT_FILE": str(internet.ca_file)}
        assert "1 request recorded" in place.run(codex).stderr
        assert "1 request recorded" in place.run(program).stderr
        place.run(shell[0], "python program.py", shell[1])
        place.wait()
        assert {tunnel.host for tunnel in internet.tunnels} == {"chatgpt.com", "api.openai.com"}
        assert len(api.calls) == 3
    logs = [path.read_text() for path in (place.home / ".agent-logger/logs/openai").glob("*.jsonl")]
    assert sum(text.count('"type":"request"') for text in logs) == 3


WAIT = "for _ in $(seq 100); do grep -q listens out && break; sleep 0.1; done; cat out; kill $!; wait"


def test_recordings_move_to_another_machine(place: Place, api: FakeAPI, tmp_path: Path) -> None:
    place.run("agent-logger run -- claude -p 'Hi there'")
    place.wait()
    *before, unpack, listed = page("another-machine")
    for line in before:
        place.run(line)
    there = tmp_path / "there"
    there.mkdir()
    place.environment["HOME"] = str(there)
    place.run(unpack)
    assert "program" not in place.run(listed).stderr
    assert (there / ".agent-logger/key").exists() and list((there / ".agent-logger/logs").rglob("*.jsonl"))


def test_recordings_of_several_machines_are_read_together(place: Place, api: FakeAPI) -> None:
    place.run("agent-logger run -- claude -p 'Hello there'")
    place.wait()
    copied = place.home / "homes/laptop"
    copied.parent.mkdir()
    (place.home / ".agent-logger").rename(copied)
    (copied / "machine.json").unlink()
    listed, usage, month, search, export = page("several-homes")
    assert "laptop" in place.run(listed).stdout
    assert "total" in place.run(usage).stdout
    assert "total" in place.run(month).stdout
    assert "hello" in place.run(search).stdout.lower()
    place.run(export)
    assert list((place.project / "sessions").iterdir())


def test_upgrading_keeps_recordings(place: Place, api: FakeAPI) -> None:
    place.run("agent-logger run -- claude -p 'Hi there'")
    pull, install, version, *rest = page("upgrade")
    place.run(pull)
    assert install == "pip install ."
    assert place.run(version).stdout.startswith("agent-logger")
    for line in rest:
        place.run(line)
    assert "Hi" in place.run("agent-logger ls").stdout


def test_uninstalling_leaves_nothing(place: Place, api: FakeAPI, installed: Path) -> None:
    place.run("agent-logger run -- claude -p 'Hi there'")
    *taken_back, du, remove, uninstall = page("uninstall")
    for line in [*taken_back, du]:
        place.run(line)
    place.wait()
    place.run(remove)
    assert not (place.home / ".agent-logger").exists()
    place.run(f"PYTHONPATH= {uninstall}")
    assert not (installed / "agent-logger").exists()
    _install(installed / "python")
