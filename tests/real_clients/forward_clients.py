"""Clients that take no base URL, or need none: they are to be recorded by the forward door.

They are started as a user starts them, at their vendors' hosts. The programs that tests do not install with `./dev` are
taken from the folder `TEST_CLIENTS`, where each has been installed with npm into a folder of its name.
"""

import json
import os
import pwd
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.clients import (
    ANTHROPIC_KEY,
    GEMINI_KEY,
    OPENAI_KEY,
    QUIET_CLAUDE,
    Sandbox,
    find_claude,
    find_codex,
    find_copilot,
    find_gemini,
    find_goose,
    find_opencode,
    find_pi,
    npm_program,
)
from tests.internet import packages
from tests.internet.vendors import NEVER, chatgpt_login

PROGRAMS = Path(__file__).with_name("programs")
PROMPT = "Say hello"
ANSWER = "Hello from the fake model."
OAUTH_TOKEN = "sk-ant-oat01-FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE-fakeAA"
GITHUB_TOKEN = "gho_FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE0000"


@dataclass(frozen=True)
class ForwardClient:
    name: str
    program: Callable[[], Path | None]  # none: not installed
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Sandbox], None] = lambda sandbox: None
    model_host: str = ""
    needs: tuple[str, ...] = ()  # components of `./dev`
    prints: str = ANSWER
    # Whether it prints the same each time, but for what `alike` knows to be made up.
    is_repeatable: bool = True

    def command(self) -> list[str]:
        program = self.program()
        assert program, f"{self.name} is not installed"
        return [str(program), *self.arguments]


def _on_path(name: str) -> Callable[[], Path | None]:
    return lambda: Path(found) if (found := shutil.which(name)) else None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _codex(sandbox: Sandbox, provider: str = "") -> None:
    quiet = "check_for_update_on_startup = false\nanalytics.enabled = false\nfeedback.enabled = false\n"
    _write(sandbox.home / ".codex" / "config.toml", f'model = "gpt-fake-1"\n{provider}{quiet}')


def _codex_chatgpt(sandbox: Sandbox) -> None:
    _codex(sandbox)
    _write(sandbox.home / ".codex" / "auth.json", json.dumps(chatgpt_login()))


def _opencode(sandbox: Sandbox) -> None:
    model = {"name": "Fake", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    provider = {"npm": "@ai-sdk/anthropic", "options": {"apiKey": ANTHROPIC_KEY}, "models": {"fake-1": model}}
    config = {
        "model": "anthropic/fake-1",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"anthropic": provider},
    }
    _write(sandbox.home / ".config" / "opencode" / "opencode.json", json.dumps(config))


def _gemini(sandbox: Sandbox) -> None:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    _write(sandbox.home / ".gemini" / "settings.json", json.dumps(settings))


def _gemini_google(sandbox: Sandbox) -> None:
    settings = {"security": {"auth": {"selectedType": "oauth-personal"}}}
    _write(sandbox.home / ".gemini" / "settings.json", json.dumps(settings))
    login = {
        "access_token": "ya29.FAKEFAKEFAKEFAKEFAKE",
        "refresh_token": "1//FAKE",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "token_type": "Bearer",
        "expiry_date": NEVER * 1000,
    }
    _write(sandbox.home / ".gemini" / "oauth_creds.json", json.dumps(login))


def _pi(sandbox: Sandbox) -> None:
    provider = {
        "baseUrl": "https://api.openai.com/v1",
        "api": "openai-completions",
        "apiKey": OPENAI_KEY,
        "models": [{"id": "gpt-fake-1"}],
    }
    _write(sandbox.home / ".pi" / "agent" / "models.json", json.dumps({"providers": {"fake": provider}}))


CODEX = ("exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", PROMPT)
CLAUDE = ("-p", PROMPT, "--output-format", "json")
GEMINI = ("-p", PROMPT, "-m", "gemini-fake-1", "--output-format", "json")
COPILOT_QUIET = {"COPILOT_AUTO_UPDATE": "false"}
FETCH = f"""
const headers = {{authorization: "Bearer {OPENAI_KEY}", "content-type": "application/json"}};
const body = JSON.stringify({{model: "gpt-fake-1", messages: [{{role: "user", content: "{PROMPT}"}}]}});
const answer = await fetch("https://api.openai.com/v1/chat/completions", {{method: "POST", headers, body}});
console.log((await answer.json()).choices[0].message.content);
"""
ASK = json.dumps({"model": "gpt-fake-1", "messages": [{"role": "user", "content": PROMPT}]})


def _cargo_environment() -> Mapping[str, str]:
    """Where rustup keeps the toolchain that the program `cargo` starts, if it is rustup's."""
    homes = (os.path.expanduser("~"), pwd.getpwuid(os.getuid()).pw_dir)  # the first may be empty, for a trial
    places = [os.environ.get("RUSTUP_HOME", ""), *(f"{home}/.rustup" for home in homes)]
    return next(({"RUSTUP_HOME": place} for place in places if os.path.isdir(f"{place}/toolchains")), {})


def _cargo(sandbox: Sandbox) -> None:
    manifest = '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
    manifest += f'{packages.NAME} = {{ version = "{packages.VERSION}", registry = "fake" }}\n'
    _write(sandbox.project / "Cargo.toml", manifest)
    _write(sandbox.project / "src" / "lib.rs", "")
    index = f'[registries.fake]\nindex = "sparse+https://{packages.CARGO_HOST}/index/"\n'
    _write(sandbox.home / ".cargo" / "config.toml", index)


CLIENTS = {
    client.name: client
    for client in (
        ForwardClient(
            "claude-key",
            find_claude,
            CLAUDE,
            {**QUIET_CLAUDE, "ANTHROPIC_API_KEY": ANTHROPIC_KEY},
            model_host="api.anthropic.com",
            needs=("claude",),
        ),
        ForwardClient(
            "claude-oauth",
            find_claude,
            CLAUDE,
            {**QUIET_CLAUDE, "CLAUDE_CODE_OAUTH_TOKEN": OAUTH_TOKEN},
            model_host="api.anthropic.com",
            needs=("claude",),
        ),
        ForwardClient(
            "codex-chatgpt", find_codex, CODEX, {}, _codex_chatgpt, model_host="chatgpt.com", needs=("codex",)
        ),
        ForwardClient(
            "codex-key",
            find_codex,
            CODEX,
            {"CODEX_API_KEY": OPENAI_KEY},
            _codex,
            model_host="api.openai.com",
            needs=("codex",),
        ),
        ForwardClient(
            "opencode",
            find_opencode,
            ("run", "--format", "json", PROMPT),
            {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
            _opencode,
            model_host="api.anthropic.com",
            needs=("opencode",),
        ),
        ForwardClient(
            "gemini-key",
            find_gemini,
            GEMINI,
            {"GEMINI_API_KEY": GEMINI_KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
            _gemini,
            model_host="generativelanguage.googleapis.com",
            needs=("gemini",),
        ),
        ForwardClient(
            "gemini-google",
            find_gemini,
            GEMINI,
            {"GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_BROWSER": "true"},
            _gemini_google,
            model_host="cloudcode-pa.googleapis.com",
            needs=("gemini",),
        ),
        ForwardClient(
            "copilot-github",
            lambda: find_copilot() or npm_program("copilot"),
            ("-p", PROMPT, "--allow-all-tools", "--output-format", "json"),
            {**COPILOT_QUIET, "COPILOT_GITHUB_TOKEN": GITHUB_TOKEN},
            model_host="api.individual.githubcopilot.com",
            needs=("copilot",),
            is_repeatable=False,
        ),
        ForwardClient(
            "copilot-own-key",
            lambda: find_copilot() or npm_program("copilot"),
            ("-p", PROMPT, "--allow-all-tools", "--output-format", "json"),
            {
                **COPILOT_QUIET,
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": "https://api.openai.com/v1",
                "COPILOT_PROVIDER_API_KEY": OPENAI_KEY,
                "COPILOT_MODEL": "gpt-5.4",
            },
            model_host="api.openai.com",
            needs=("copilot",),
            is_repeatable=False,
        ),
        ForwardClient(
            "pi",
            lambda: find_pi() or npm_program("pi"),
            ("--provider", "fake", "--model", "gpt-fake-1", "--mode", "json", "-p", PROMPT),
            {"PI_OFFLINE": "1"},
            _pi,
            model_host="api.openai.com",
            needs=("pi",),
            is_repeatable=False,
        ),
        ForwardClient(
            "goose",
            lambda: find_goose() or npm_program("goose-binary-linux-x64", "goose"),
            ("run", "-t", PROMPT, "--output-format", "json"),
            {
                "GOOSE_PROVIDER": "openai",
                "OPENAI_API_KEY": OPENAI_KEY,
                "GOOSE_MODEL": "gpt-fake-1",
                "GOOSE_MODE": "auto",
                "GOOSE_DISABLE_KEYRING": "1",
                "GOOSE_TELEMETRY_ENABLED": "false",
            },
            model_host="api.openai.com",
            needs=("goose",),
            is_repeatable=False,
        ),
        *(
            ForwardClient(
                name,
                lambda: Path(sys.executable),
                (str(PROGRAMS / f"{name}_post.py"), OPENAI_KEY, ASK),
                model_host="api.openai.com",
                needs=(name,),
            )
            for name in ("httpx", "requests")
        ),
        ForwardClient(
            "curl",
            _on_path("curl"),
            (
                "-sS",
                "https://api.openai.com/v1/chat/completions",
                "-H",
                f"Authorization: Bearer {OPENAI_KEY}",
                "-H",
                "Content-Type: application/json",
                "-d",
                ASK,
            ),
            model_host="api.openai.com",
            needs=("curl",),
        ),
        *(
            ForwardClient(
                f"node{version}",
                _on_path("node") if version == 20 else partial(npm_program, "node", f"node{version}"),
                ("--input-type=module", "-e", FETCH),
                model_host="api.openai.com",
                needs=(f"node{version}",),
            )
            for version in (20, 22, 24)
        ),
    )
}

# Programs that agents start, and the hosts that they call: their tunnels are not opened.
TOOLS = {
    client.name: client
    for client in (
        ForwardClient(
            "git",
            _on_path("git"),
            ("clone", f"https://{packages.GIT_HOST}/thing.git"),
            packages.QUIET_GIT,
            model_host=packages.GIT_HOST,
            needs=("git",),
            prints="",
        ),
        ForwardClient(
            "pip",
            lambda: Path(sys.executable),
            (
                *("-m", "pip", "--disable-pip-version-check", "download", "--no-cache-dir", "--no-deps"),
                *("--index-url", f"https://{packages.PIP_HOST}/simple/", packages.NAME),
            ),
            {"PIP_CONFIG_FILE": os.devnull},
            model_host=packages.PIP_HOST,
            prints="Successfully downloaded thing",
        ),
        ForwardClient(
            "npm",
            _on_path("npm"),
            ("install", "--no-audit", "--no-fund", f"--registry=https://{packages.NPM_HOST}/", packages.NAME),
            {"npm_config_update_notifier": "false", "npm_config_globalconfig": "/dev/null"},
            model_host=packages.NPM_HOST,
            needs=("npm",),
            prints="added 1 package",
        ),
        ForwardClient(
            "cargo",
            _on_path("cargo"),
            ("fetch",),
            _cargo_environment(),
            _cargo,
            model_host=packages.CARGO_HOST,
            needs=("cargo",),
            prints="",
        ),
    )
}
