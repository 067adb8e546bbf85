"""A scenario, run by the real client against the scripted API: directly, or through `agent-logger proxy`."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_logger.config import Origin
from tests.clients import (
    ANTHROPIC_KEY,
    GEMINI_KEY,
    OPENAI_KEY,
    QUIET_CLAUDE,
    Finished,
    Sandbox,
    find_claude,
    find_codex,
    find_gemini,
    find_opencode,
)
from tests.commands import run_command
from tests.fakeapi import Call, FakeAPI
from tests.proxy.process import Process

from .scenarios import PRINTED_ID, Scenario, printed_id

PROGRAMS = Path(__file__).with_name("programs")
KEYS = (ANTHROPIC_KEY, OPENAI_KEY, GEMINI_KEY)
SECONDS = 60.0


@dataclass(frozen=True)
class Start:
    """How a client is started: `prepare` writes the settings that it reads."""

    needs: tuple[str, ...]
    provider: str
    command: Callable[[], Sequence[str]]
    environment: Callable[[str], Mapping[str, str]]  # of the API's base URL, without `/v1`
    prepare: Callable[[Sandbox, str], None] = lambda sandbox, url: None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _codex_websocket(sandbox: Sandbox, url: str) -> None:
    """The built-in provider, which tries a WebSocket first."""
    _write(sandbox.home / ".codex" / "config.toml", f'openai_base_url = "{url}/v1"\n{CODEX_QUIET}')


def _codex_http(sandbox: Sandbox, url: str) -> None:
    """A provider of one's own, as docs/proxy.md shows it."""
    provider = f'[model_providers.recorded]\nname = "OpenAI, recorded"\nbase_url = "{url}/v1"\n'
    provider += 'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
    _write(sandbox.home / ".codex" / "config.toml", f'model_provider = "recorded"\n{CODEX_QUIET}\n{provider}')


CODEX_QUIET = """\
model = "gpt-fake-1"
check_for_update_on_startup = false
analytics.enabled = false
feedback.enabled = false
"""


def _gemini(sandbox: Sandbox, url: str) -> None:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    _write(sandbox.home / ".gemini" / "settings.json", json.dumps(settings))


def _opencode(package: str, name: str) -> Callable[[Sandbox, str], None]:
    def prepare(sandbox: Sandbox, url: str) -> None:
        limit = {"context": 200_000, "output": 8_000}
        model = {"name": "Fake", "tool_call": True, "limit": limit}
        options = {"baseURL": f"{url}/v1", "apiKey": OPENAI_KEY}
        provider = {"npm": package, "name": name, "options": options, "models": {"fake-1": model}}
        config = {
            "model": f"{name}/fake-1",
            "autoupdate": False,
            "share": "disabled",
            "provider": {name: provider},
        }
        _write(sandbox.home / ".config" / "opencode" / "opencode.json", json.dumps(config))

    return prepare


def _program(name: str) -> Callable[[], Sequence[str]]:
    return lambda: [sys.executable, str(PROGRAMS / f"{name}.py")]


def _claude_environment(url: str) -> Mapping[str, str]:
    return {**QUIET_CLAUDE, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": ANTHROPIC_KEY}


CLIENTS: Mapping[str, Start] = {
    "claude-cli": Start(("claude",), "anthropic", lambda: [str(find_claude())], _claude_environment),
    "claude-agent-sdk": Start(("claude_agent_sdk",), "anthropic", _program("claude_agent"), _claude_environment),
    "codex": Start(
        ("codex",),
        "openai",
        lambda: [str(find_codex())],
        lambda url: {"OPENAI_API_KEY": OPENAI_KEY},
        _codex_http,
    ),
    "codex-websocket": Start(
        ("codex",),
        "openai",
        lambda: [str(find_codex())],
        lambda url: {"CODEX_API_KEY": OPENAI_KEY},
        _codex_websocket,
    ),
    "anthropic-python": Start(
        ("anthropic",),
        "anthropic",
        _program("anthropic_sdk"),
        lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": ANTHROPIC_KEY},
    ),
    "openai-python": Start(
        ("openai",),
        "openai",
        _program("openai_sdk"),
        lambda url: {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": OPENAI_KEY},
    ),
    "gemini-cli": Start(
        ("gemini",),
        "gemini",
        lambda: [str(find_gemini())],
        lambda url: {
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": GEMINI_KEY,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        _gemini,
    ),
    "opencode": Start(
        ("opencode",),
        "anthropic",
        lambda: [str(find_opencode())],
        lambda url: {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        _opencode("@ai-sdk/anthropic", "anthropic"),
    ),
    "opencode-openai": Start(
        ("opencode",),
        "openai",
        lambda: [str(find_opencode())],
        lambda url: {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        _opencode("@ai-sdk/openai-compatible", "local"),
    ),
}


@dataclass
class Ran:
    url: str
    finished: dict[str, Finished] = field(default_factory=dict)  # by the step's label
    commands: dict[str, list[str]] = field(default_factory=dict)  # as they were run
    calls: list[Call] = field(default_factory=list)
    sandbox: Sandbox | None = None

    @property
    def sessions(self) -> list[str]:
        """Those that were printed."""
        return list(dict.fromkeys(name for it in self.finished.values() for name in PRINTED_ID.findall(it.stdout)))


def run(scenario: Scenario, root: Path, api: FakeAPI, url: str, before: Sequence[str] = ()) -> Ran:
    """All steps, one after the other, in one home, each command with these words before it."""
    shutil.rmtree(root, ignore_errors=True)
    sandbox, start = Sandbox(root), CLIENTS[scenario.client]
    (sandbox.project / "seed.txt").write_text("hello\n")
    start.prepare(sandbox, url)
    environment = {**start.environment(url), **scenario.environment}
    ran = Ran(url, sandbox=sandbox)
    ids: dict[str, str] = {}
    for step in scenario.steps():
        arguments = [_filled(it, ids) for it in step.arguments]
        ran.commands[step.label] = arguments
        finished = sandbox.run(
            [*before, *start.command(), *arguments], environment, stdin=scenario.stdin, seconds=SECONDS
        )
        ran.finished[step.label] = finished
        ids[step.label] = printed_id(finished.stdout) or ""
    ran.calls = api.calls
    return ran


def _filled(argument: str, ids: Mapping[str, str]) -> str:
    return ids[argument[1:-1]] if argument[1:-1] in ids and argument.startswith("{") else argument


def fake_api(scenario: Scenario, root: Path) -> FakeAPI:
    return FakeAPI(scenario.played(), {"CWD": str(root / "project")})


def run_directly(scenario: Scenario, root: Path) -> Ran:
    with fake_api(scenario, root) as api:
        return run(scenario, root, api, api.url)


@dataclass(frozen=True)
class Upstream:
    """As `Process` wants it."""

    origin: Origin


def run_recorded(scenario: Scenario, root: Path, folder: Path) -> tuple[Ran, Path]:
    """Through a proxy of its own, in the same folder as the direct run; and the log folder, when all is in it."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    with fake_api(scenario, root) as api:
        proxy = Process(folder, Upstream(Origin("http", "127.0.0.1", api.port)))  # type: ignore[arg-type]
        try:
            provider = CLIENTS[scenario.client].provider
            url = f"http://127.0.0.1:{proxy.port}/{provider}/127.0.0.1:{api.port}"
            ran = run(scenario, root, api, url)
            assert proxy.stop() == 0
        finally:
            proxy.close()
    return ran, proxy.log_dir


def verify(log_dir: Path) -> subprocess.CompletedProcess[str]:
    return run_command(["verify", str(log_dir)], os.environ)
