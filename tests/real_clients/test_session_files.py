"""What real clients wrote into their own files is read, and is one session with what the proxy saw of the same run."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Session, Usage, Witness
from tests.clients import OPENAI_KEY, Sandbox, find_copilot, find_grok, find_kimi, find_pi
from tests.fakeapi import FakeAPI

DATA = Path(__file__).parents[1] / "data"

COUNTED = {"input_tokens": 40, "output_tokens": 7, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0}
USED = Usage(input_tokens=40, output_tokens=7, cache_read_tokens=20)
TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "copilot-cli": ("bash", {"command": "ls", "description": "List"}),
    "grok-build": ("run_terminal_command", {"command": "ls", "description": "List"}),
    "kimi-code": ("Bash", {"command": "ls"}),
    "pi": ("bash", {"command": "ls"}),
}


@dataclass(frozen=True)
class Client:
    agent: str
    find: Callable[[], Path | None]
    first: tuple[str, ...]
    further: tuple[str, ...]  # `{}` is the session
    environment: Mapping[str, str]  # `{}` is the base URL of the API
    witnesses: frozenset[Witness]
    component: str

    def prepare(self, sandbox: Sandbox, url: str) -> dict[str, str]:
        models = {
            "baseUrl": f"{url}/v1",
            "api": "openai-completions",
            "apiKey": OPENAI_KEY,
            "models": [{"id": "gpt-5.4"}],
        }
        path = sandbox.home / ".pi/agent/models.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"providers": {"fake": models}}))
        beside = f"{self.program.parent}:{os.environ['PATH']}"  # where the Node is that it may need
        return {"PATH": beside, **{name: value.format(url) for name, value in self.environment.items()}}

    @property
    def program(self) -> Path:
        program = self.find()
        assert program
        return program


COPILOT = Client(
    agent="copilot-cli",
    find=find_copilot,
    first=("-p", "List the files", "--allow-all-tools", "--output-format", "json"),
    further=("-p", "Again", "--allow-all-tools", "--output-format", "json", "--resume={}"),
    environment={
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": "gpt-5.4",
        "COPILOT_PROVIDER_API_KEY": OPENAI_KEY,
        "COPILOT_PROVIDER_BASE_URL": "{}/v1",
    },
    witnesses=frozenset({"transcript", "wire"}),
    component="copilot",
)
GROK_WORDS = ("--always-approve", "--output-format", "json")
GROK = Client(
    agent="grok-build",
    find=find_grok,
    first=(*GROK_WORDS, "-p", "List the files"),
    further=(*GROK_WORDS, "--resume", "{}", "-p", "Again"),
    environment={
        "GROK_CLI_CHAT_PROXY_BASE_URL": "{}/v1",
        "GROK_MODELS_BASE_URL": "{}/v1",
        "GROK_TELEMETRY_DISABLED": "1",
        "XAI_API_KEY": OPENAI_KEY,
    },
    witnesses=frozenset({"transcript", "wire"}),
    component="grok",
)
KIMI_WORDS = ("--output-format", "stream-json")
KIMI = Client(
    agent="kimi-code",
    find=find_kimi,
    first=(*KIMI_WORDS, "-p", "List the files"),
    further=(*KIMI_WORDS, "--session", "{}", "-p", "Again"),
    environment={
        "KIMI_CODE_NO_AUTO_UPDATE": "1",
        "KIMI_DISABLE_TELEMETRY": "1",
        "KIMI_MODEL_API_KEY": OPENAI_KEY,
        "KIMI_MODEL_BASE_URL": "{}/v1",
        "KIMI_MODEL_NAME": "gpt-5.4",
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
    },
    witnesses=frozenset({"transcript", "wire"}),
    component="kimi",
)
PI_WORDS = ("--provider", "fake", "--model", "gpt-5.4", "--mode", "json")
PI = Client(
    agent="pi",
    find=find_pi,
    first=(*PI_WORDS, "-p", "List the files"),
    further=(*PI_WORDS, "--session", "{}", "-p", "Again"),
    environment={"PI_OFFLINE": "1"},
    witnesses=frozenset({"transcript", "run"}),  # the base URL in its file is not replaced
    component="pi",
)
CLIENTS = [
    pytest.param(client, id=client.agent, marks=pytest.mark.needs(client.component))
    for client in (COPILOT, GROK, KIMI, PI)
]


def script(agent: str) -> dict[str, object]:
    tool, given = TOOLS[agent]
    call = {"type": "tool_use", "name": tool, "input": given}
    turns: list[dict[str, Any]] = [
        {"content": [{"type": "text", "text": "Looking."}, call]},
        {"text": "One file."},
        {"text": "Still one."},
    ]
    title = {"type": "tool_use", "name": "session_title", "input": {"session_title": "Files"}}
    sides = {
        "title": ({"model_re": "^grok"}, {"content": [title]}),
        "later": ({"no_tools": True}, {"text": "Files"}),
        "dashboard": ({"last_user_re": "ultra-short dashboard line"}, {"text": "Listed"}),
    }
    lanes = [{"name": name, "match": match, "repeat": True, "turns": [turn]} for name, (match, turn) in sides.items()]
    main = {"name": "main", "turns": [{**turn, "usage": COUNTED} for turn in turns]}
    return {"models": ["gpt-5.4"], "lanes": [*lanes, main]}


def run_twice(client: Client, sandbox: Sandbox) -> None:
    """Run the client, and resume its session, each time under `agent-logger run`."""
    words = [sys.executable, "-m", "agent_logger", "run", "--", str(client.program)]
    with FakeAPI(script(client.agent)) as api:
        environment = client.prepare(sandbox, api.url)
        for arguments in (client.first, client.further):
            ids = [session.id for session in sessions_in(sandbox)] or [""]
            finished = sandbox.run([*words, *(word.format(ids[0]) for word in arguments)], environment)
            assert finished.exit_code == 0, finished.stdout + finished.stderr
        assert [call.complete for call in api.calls if call.lane == "main"] == [True] * 3


def sessions_in(sandbox: Sandbox) -> list[Session]:
    with Catalog.open(sandbox.home / ".agent-logger") as catalog:
        return [session for row in catalog.sessions() if (session := catalog.session(row.id))]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_file_of_a_real_client_is_one_session_with_its_run(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path)
    monkeypatch.setenv("HOME", str(sandbox.home))
    run_twice(client, sandbox)
    [session] = sessions_in(sandbox)
    assert (session.agent, session.project) == (client.agent, str(sandbox.project))
    assert [exchange.user_input for exchange in session.exchanges] == ["List the files", "Again"]
    assert [(call.name, call.is_error) for call in session.tool_calls] == [(TOOLS[client.agent][0], False)]
    turns = [turn for turn in session.turns if turn.thread == "main"]
    assert [turn.usage for turn in turns] == [USED] * 3
    assert [client.witnesses - turn.witnesses for turn in turns] == [frozenset()] * 3


@pytest.mark.needs("copilot")
def test_calls_of_sub_agents_are_threads_of_their_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(tmp_path)
    monkeypatch.setenv("HOME", str(sandbox.home))
    words = [sys.executable, "-m", "agent_logger", "run", "--", str(COPILOT.find()), *COPILOT.first]
    with FakeAPI(DATA / "copilot-cli/1.0.102/agents/scenario.json", {"CWD": str(sandbox.project)}) as api:
        finished = sandbox.run(words, COPILOT.prepare(sandbox, api.url))
        assert finished.exit_code == 0, finished.stdout + finished.stderr
        assert len(api.calls) == 6
    [session] = sessions_in(sandbox)
    assert [turn.thread for turn in session.turns].count("main") == 2
    assert {agent.kind for agent in session.agents} == {"explore", "general-purpose"}
    assert all({"transcript", "wire"} <= turn.witnesses for turn in session.turns)
