"""A real `cn` of Continue through the proxy: its calls and its session file are one session, and count once."""

from pathlib import Path

import pytest

from tests.agents.foreign import DATA
from tests.clients import OPENAI_KEY, Sandbox, find_cn
from tests.fakeapi import FakeAPI

from .test_cline import printed, proxied

pytestmark = pytest.mark.needs("cn")
QUIET = {"CONTINUE_TELEMETRY_ENABLED": "0", "FORCE_NO_TTY": "true"}
RECORDED = DATA / "continue-cli/1.5.47/tools"
SETTINGS = """\
name: recorded
version: 1.0.0
schema: v1
models:
  - {{name: gpt-fake-1, provider: openai, model: gpt-fake-1, apiKey: {key}, apiBase: "{url}", roles: [chat]}}
"""


def test_calls_on_the_wire_join_the_session_of_the_file(tmp_path: Path) -> None:
    sandbox, folder, settings = Sandbox(tmp_path / "continue"), tmp_path / "proxy", tmp_path / "settings.yaml"
    with FakeAPI(RECORDED / "scenario.json") as api, proxied(folder, api.port) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/openai/127.0.0.1:{api.port}/v1"
        settings.write_text(SETTINGS.format(key=OPENAI_KEY, url=url))
        command = [str(find_cn()), "--config", str(settings), "--auto", "-p", "List the files", "--format", "json"]
        done = sandbox.run(command, QUIET, seconds=120)
        assert done.exit_code == 0, done.stderr
        assert proxy.stop() == 0
        assert [call.complete for call in api.calls] == [True] * 3
    [session] = printed(sandbox.home, proxy.log_dir, "ls")
    assert (session["agent"], session["title"], session["exchanges"]) == ("continue-cli", "List the files", 1)
    assert set(session["witnesses"]) == {"transcript", "wire"}
    shown = printed(sandbox.home, proxy.log_dir, "show", session["id"])
    turns = [turn for exchange in shown["exchanges"] for turn in exchange["turns"]]
    assert [set(turn["witnesses"]) for turn in turns] == [{"transcript", "wire"}] * 3
    assert [turn["joined_by"] for turn in turns] == ["tool call", "tool call", "order"]
    assert session["output_tokens"] == 113 + 291 + 77
