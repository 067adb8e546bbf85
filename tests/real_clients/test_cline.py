"""A real Cline through the proxy: its calls and its session file are one session, and count once."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_logger.config import Origin
from tests.agents.foreign import DATA
from tests.clients import OPENAI_KEY, Finished, Sandbox, find_cline
from tests.commands import run_command
from tests.fakeapi import FakeAPI
from tests.proxy.process import Process

from .running import Upstream

pytestmark = pytest.mark.needs("cline")
QUIET = {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1", "CLINE_SESSION_BACKEND_MODE": "local"}
RECORDED = DATA / "cline/3.0.65/subagent"
PROMPT = "Ask a helper to count the lines of the file"


def run_cline(sandbox: Sandbox, *arguments: str) -> Finished:
    # A machine that does other work too may need a minute for what takes ten seconds.
    return sandbox.run([str(find_cline()), *arguments], QUIET, seconds=180)


@contextmanager
def proxied(folder: Path, port: int) -> Iterator[Process]:
    (folder / "home").mkdir(parents=True)
    proxy = Process(folder, Upstream(Origin("http", "127.0.0.1", port)))  # type: ignore[arg-type]
    try:
        yield proxy
    finally:
        proxy.close()


def printed(home: Path, log_dir: Path, *arguments: str) -> Any:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENT_LOGGER_LOG_DIR": str(log_dir)}
    done = run_command([*arguments, "--json"], environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_calls_on_the_wire_join_the_session_of_the_file(tmp_path: Path) -> None:
    sandbox, folder = Sandbox(tmp_path / "cline"), tmp_path / "proxy"
    (sandbox.project / "hello.py").write_text("a\nb\n")
    with FakeAPI(RECORDED / "scenario.json") as api, proxied(folder, api.port) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/openai/127.0.0.1:{api.port}/v1"
        auth = run_cline(sandbox, "auth", "-p", "openai", "-k", OPENAI_KEY, "-m", "gpt-fake-1", "-b", url)
        assert auth.exit_code == 0, auth.stderr
        done = run_cline(sandbox, "--json", PROMPT)
        assert done.exit_code == 0, done.stdout
        assert proxy.stop() == 0
        assert [call.complete for call in api.calls] == [True] * 4
    [session] = printed(sandbox.home, proxy.log_dir, "ls")
    assert (session["agent"], session["title"], session["exchanges"]) == ("cline", PROMPT, 1)
    assert set(session["witnesses"]) == {"transcript", "wire"}
    shown = printed(sandbox.home, proxy.log_dir, "show", session["id"])
    turns = [turn for exchange in shown["exchanges"] for turn in exchange["turns"]]
    assert len(turns) == 4
    assert all(set(turn["witnesses"]) == {"transcript", "wire"} for turn in turns)
    assert {turn["joined_by"] for turn in turns} == {"order"}
    assert sum(turn["usage"]["output_tokens"] for turn in turns) == 61 + 41 + 13 + 23
