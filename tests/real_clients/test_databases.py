"""Real clients with SQLite databases: read while they write, without a trace, and billed as the API says."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_logger.agents.registry import readable_agent
from agent_logger.errors import SourceError
from agent_logger.files.sources import StampCache
from agent_logger.model.session import Session, Usage
from tests.clients import Finished, Sandbox, find_goose, find_kilo
from tests.fakeapi import FakeAPI

SECONDS = 300


@dataclass(frozen=True)
class Client:
    """`arguments` of a first start, and those of one that resumes a session."""

    agent: str
    find: Callable[[], Path | None]
    arguments: Callable[[str, str | None], list[str]]
    prepare: Callable[[Sandbox, str], dict[str, str]]
    tool: dict[str, Any]


def _prepare_kilo(sandbox: Sandbox, url: str) -> dict[str, str]:
    config = {
        "autoupdate": False,
        "provider": {
            "fake": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{url}/v1", "apiKey": "sk-fake"},
                "models": {"fake-model": {}},
            }
        },
        "permission": {"bash": "allow"},
    }
    path = sandbox.home / ".config/kilo/kilo.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return {
        "KILO_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "KILO_TELEMETRY_LEVEL": "off",
    }


def _prepare_goose(_sandbox: Sandbox, url: str) -> dict[str, str]:
    return {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "fake-model",
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
        "GOOSE_TELEMETRY_ENABLED": "false",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "sk-fake",
    }


def _kilo_arguments(prompt: str, session: str | None) -> list[str]:
    options = ["--session", session] if session else []
    return ["run", "-m", "fake/fake-model", "--auto", "--format", "json", *options, prompt]


def _goose_arguments(prompt: str, session: str | None) -> list[str]:
    options = ["--resume", "--session-id", session] if session else []
    return ["run", "--output-format", "stream-json", *options, "-t", prompt]


CLIENTS = [
    Client("kilo", find_kilo, _kilo_arguments, _prepare_kilo, {"command": "echo 4711", "description": "Echo"}),
    Client("goose", find_goose, _goose_arguments, _prepare_goose, {"command": "echo 4711"}),
]
TOOLS = {"kilo": "bash", "goose": "shell"}


def _usage(given: int, output: int, cached: int = 0) -> dict[str, int]:
    cache = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
    return {"input_tokens": given, "output_tokens": output, **cache}


def sessions_of(agent: str, home: Path) -> list[Session]:
    reader = readable_agent(agent)
    assert reader and reader.location
    folders = [home / name for name in reader.location.default]
    return [reader.session_of(reader.open_session(source)) for source in reader.discover(folders, StampCache())]


def read_meanwhile(agent: str, home: Path, is_done: threading.Event) -> None:
    while not is_done.wait(0.05):
        try:
            sessions_of(agent, home)
        except (SourceError, FileNotFoundError):
            continue


@pytest.mark.parametrize("client", [pytest.param(it, id=it.agent, marks=pytest.mark.needs(it.agent)) for it in CLIENTS])
def test_a_client_is_read_while_it_runs_and_billed_as_the_api_says(client: Client, sandbox: Sandbox) -> None:
    call = {"type": "tool_use", "name": TOOLS[client.agent], "input": client.tool}
    turns = [
        {"content": [call], "usage": _usage(100, 11, 50)},
        {"text": "It was 4711.", "usage": _usage(200, 12)},
        {"text": "Once more.", "usage": _usage(300, 13)},
    ]
    side = {"name": "side", "match": {"no_tools": True}, "repeat": True, "turns": [{"text": "A title"}]}
    script = {"models": ["fake-model"], "lanes": [side, {"name": "main", "match": {}, "turns": turns}]}
    program = client.find()
    assert program
    with FakeAPI(script) as api:
        environment = client.prepare(sandbox, api.url)

        def start(prompt: str, session: str | None = None) -> Finished:
            command = [str(program), *client.arguments(prompt, session)]
            return sandbox.run(command, environment, seconds=SECONDS)

        done = threading.Event()
        reader = threading.Thread(target=read_meanwhile, args=(client.agent, sandbox.home, done))
        reader.start()
        try:
            first = start("Echo")
            [session] = sessions_of(client.agent, sandbox.home)
            second = start("Again", session.id)
        finally:
            done.set()
            reader.join(60)
    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr + second.stderr
    before = {path: path.stat().st_mtime_ns for path in sandbox.home.rglob("*.db*")}
    [session] = sessions_of(client.agent, sandbox.home)
    assert {path: path.stat().st_mtime_ns for path in sandbox.home.rglob("*.db*")} == before
    assert [exchange.user_input for exchange in session.exchanges] == ["Echo", "Again"]
    assert session.usage == Usage(input_tokens=600, output_tokens=36, cache_read_tokens=50)
    assert [(tool.name, tool.is_error) for tool in session.tool_calls] == [(TOOLS[client.agent], False)]
    assert session.project and os.path.samefile(session.project, sandbox.project)
