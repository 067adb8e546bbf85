"""Clients that `./dev` does not install, through the proxy: they do once more what their recordings in tests/data did.

`TEST_CLIENTS/bin` has the programs, in the versions of the recordings (the manifests say how to install them).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agents.foreign import DATA
from tests.clients import Sandbox
from tests.commands import run_command
from tests.fakeapi import FakeAPI

from .test_cline import proxied

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
RECORDED_API = "http://127.0.0.1:8000"
TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}


@dataclass(frozen=True)
class Recording:
    agent: str
    version: str
    program: str

    @property
    def folder(self) -> Path:
        return DATA / self.agent / self.version / "tools"


RECORDINGS = [
    Recording("aider", "0.86.2", "aider"),
    Recording("droid", "0.225.2", "droid"),
    Recording("gptme", "0.35.1", "gptme"),
    Recording("hermes", "0.19.0", "hermes"),
    Recording("mini-swe-agent", "2.4.6", "mini"),
    Recording("mistral-vibe", "3.0.2", "vibe"),
    Recording("openclaw", "2026.9.6", "openclaw"),
    Recording("openhands", "1.16.0", "openhands"),
]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.agent)
def test_a_client_is_recorded_and_counted_as_it_was(recording: Recording, tmp_path: Path) -> None:
    programs = Path(os.environ.get("TEST_CLIENTS", "/"), "bin")
    if not (programs / recording.program).exists():
        pytest.skip(f"{recording.program} is not installed; TEST_CLIENTS names the folder of further clients")
    manifest = json.loads((recording.folder / "manifest.json").read_text())
    first = manifest["commands"][0]
    sandbox = Sandbox(tmp_path / "home")
    (sandbox.project / "hello.py").write_text("def greet():\n    print('Hello')\n")
    with (
        FakeAPI(recording.folder / "scenario.json", {"CWD": str(sandbox.project)}) as api,
        proxied(tmp_path / "proxy", api.port) as proxy,
    ):
        url = f"http://127.0.0.1:{proxy.port}/openai/127.0.0.1:{api.port}"
        here = {RECORDED_API: url, "/home/user/project": str(sandbox.project), "/home/user": str(sandbox.home)}
        for name, text in manifest["config_files"].items():
            path = sandbox.home / name.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(replaced(text, here))
        environment = {name: replaced(value, here) for name, value in manifest["environment"].items()}
        environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        done = sandbox.run(["bash", "-c", replaced(first["command"], here)], environment, seconds=200)
        assert done.exit_code == first["exit_code"], done.stdout + done.stderr
        assert proxy.stop() == 0
    totals = printed(sandbox, proxy.log_dir, "usage")["totals"]
    assert {name: totals[name] for name in TOKENS} == billed(recording, api)
    [session] = [row for row in printed(sandbox, proxy.log_dir, "ls") if row["agent"] == recording.agent]
    assert {"transcript", "wire"} <= set(session["witnesses"])


def billed(recording: Recording, api: FakeAPI) -> dict[str, int]:
    """What the API billed for all that it answered, and said: aider asks it for no usage where it streams."""
    scenario = json.loads((recording.folder / "scenario.json").read_text())
    turns = {lane["name"]: lane["turns"] for lane in scenario["lanes"]}
    answered = [call for call in api.calls if call.lane is not None and call.complete and b'_tokens":' in call.sent]
    assert answered
    usages = [turns[call.lane][(call.turn or 0) % len(turns[call.lane])]["usage"] for call in answered]
    return {name: sum(usage.get(field, 0) for usage in usages) for name, field in TOKENS.items()}


def replaced(text: str, by: Mapping[str, str]) -> str:
    for old, new in by.items():
        text = text.replace(old, new)
    return text


def printed(sandbox: Sandbox, log_dir: Path, *arguments: str) -> Any:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(sandbox.home),
        "AGENT_LOGGER_LOG_DIR": str(log_dir),
        "AGENT_LOGGER_AGENT_FOLDERS": f"{sandbox.project},{sandbox.home}",
    }
    done = run_command([*arguments, "--json"], environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
