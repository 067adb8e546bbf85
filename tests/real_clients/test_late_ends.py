"""Real clients that are done with the last event, and an API that ends the body of its answer a little later.

Many close the connection there. Their answers are complete, conversations stay whole, and all of it is in the sums.
"""

import json
import sys
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from agent_logger.config import Origin
from tests.clients import ANTHROPIC_KEY, OPENAI_KEY, Sandbox
from tests.commands import run_command
from tests.fakeapi import FakeAPI, answers
from tests.proxy.process import Process

from . import logged
from .running import PROGRAMS, Upstream, run
from .scenarios import CODEX, Scenario

CONVERSATIONS, TURNS = 4, 3
DELAYS_MS = (
    2,
    5,
    20,
    400,
)  # from the last event to the end of the body; the last is long for a busy machine too
OUTPUT_TOKENS = 1000
SECONDS = 60.0

PROVIDERS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
KINDS = [
    pytest.param(kind, how, marks=pytest.mark.needs("anthropic" if kind == "messages" else "openai"))
    for kind in PROVIDERS
    for how in ("sync", "async")
]


def usage(folder: Path) -> dict[str, Any]:
    done = run_command(["usage", "--json"], {"HOME": str(folder / "home")})
    assert done.returncode == 0, done.stderr
    totals: dict[str, Any] = json.loads(done.stdout)["totals"]
    return totals


def proxy_to(api: FakeAPI, folder: Path) -> Process:
    (folder / "home").mkdir(parents=True, exist_ok=True)
    return Process(folder, Upstream(Origin("http", "127.0.0.1", api.port)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "how"), KINDS)
def test_sdk_conversations_are_complete_when_response_bodies_end_late(kind: str, how: str, tmp_path: Path) -> None:
    turn = {"text": "An answer.", "usage": {"input_tokens": 10, "output_tokens": OUTPUT_TOKENS}}
    with FakeAPI(answers(*({**turn, "end_ms": it} for it in DELAYS_MS), repeat=True)) as api:
        proxy = proxy_to(api, tmp_path / "proxy")
        try:
            url = f"http://127.0.0.1:{proxy.port}/{PROVIDERS[kind]}/127.0.0.1:{api.port}"
            environment = {
                "OPENAI_BASE_URL": f"{url}/v1",
                "OPENAI_API_KEY": OPENAI_KEY,
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
            }
            program = [sys.executable, str(PROGRAMS / "late_ends.py"), kind, how, str(CONVERSATIONS)]
            done = Sandbox(tmp_path / "client").run(program, environment, seconds=SECONDS)
            assert done.exit_code == 0, done.stderr
            assert proxy.stop() == 0
        finally:
            proxy.close()
    logs = logged.read_logs(proxy.log_dir)
    responses = [it for log in logs for it in log.responses.values()]
    assert [it.complete for it in responses] == [True] * CONVERSATIONS * TURNS
    assert Counter(len(log.requests) for log in logs) == {TURNS: CONVERSATIONS}
    assert {it.retry_of for log in logs for it in log.requests} == {None}
    assert usage(proxy.folder)["output_tokens"] == CONVERSATIONS * TURNS * OUTPUT_TOKENS


@pytest.mark.needs("codex")
def test_a_codex_session_over_http_is_complete_when_response_bodies_end_late(tmp_path: Path) -> None:
    scenario = Scenario(client="codex", fixture=f"{CODEX}/exec_resume")
    script, root = scenario.played(), tmp_path / "run"
    turns = [turn for lane in script["lanes"] for turn in lane["turns"]]
    for turn, delay_ms in zip(turns, cycle(DELAYS_MS), strict=False):
        turn["end_ms"] = delay_ms
    with FakeAPI(script, {"CWD": str(root / "project")}) as api:
        proxy = proxy_to(api, tmp_path / "proxy")
        try:
            url = f"http://127.0.0.1:{proxy.port}/openai/127.0.0.1:{api.port}"
            ran = run(scenario, root, api, url)
            assert [it.exit_code for it in ran.finished.values()] == [it.exit_code for it in scenario.steps()]
            assert proxy.stop() == 0
        finally:
            proxy.close()
    [log] = [it for it in logged.read_logs(proxy.log_dir) if it.start]
    asked = [it for it in log.requests if it.thread == "main"]
    assert [log.responses[it.seq].complete for it in asked] == [True] * len(asked)
    assert {it.retry_of for it in log.requests} == {None}
    truth = logged.totals(logged.of_manifest(scenario.manifest))
    assert usage(proxy.folder)["output_tokens"] == sum(it["output_tokens"] for it in truth.values())
