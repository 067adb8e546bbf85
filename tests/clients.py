"""Real clients, each run in a home of its own and pointed at a loopback URL.

They see nothing of the caller's environment: no key, no settings, no sessions. What they try to
reach beyond loopback goes to a proxy that is not there.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
ANTHROPIC_KEY = "sk-ant-api03-FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE-fakeAA"
OPENAI_KEY = "sk-proj-FAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE"
GEMINI_KEY = "AIzaFAKEFAKEFAKEFAKEFAKEFAKEFAKEFAKE000"
NOWHERE = "http://127.0.0.1:9"  # the discard port: nobody listens


def find_claude() -> Path | None:
    """The Claude Code binary that comes inside the Agent SDK."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    binary = Path(spec.origin).parent / "_bundled" / "claude"
    return binary if binary.exists() else None


def find_codex() -> Path | None:
    return _of_npm("codex")


def find_gemini() -> Path | None:
    return _of_npm("gemini")


def find_opencode() -> Path | None:
    return _of_npm("opencode")


def find_kilo() -> Path | None:
    return _of_package("@kilocode/cli-linux-x64-baseline", "kilo")


def find_goose() -> Path | None:
    return _of_package("@aaif/goose-binary-linux-x64", "goose")


def find_copilot() -> Path | None:
    return _of_npm("copilot")


def find_pi() -> Path | None:
    return _of_npm("pi")


def find_cline() -> Path | None:
    return _of_npm("cline")


def find_cn() -> Path | None:
    """Continue's command line."""
    return _of_npm("cn")


def find_grok() -> Path | None:
    return _of_npm("grok")


def find_kimi() -> Path | None:
    """Kimi Code, beside the Node that it needs, which is not the machine's."""
    folder = ROOT / ".components/node/node_modules/.bin"
    return folder / "kimi" if (folder / "kimi").exists() and (folder / "node").exists() else None


def find_ccusage() -> Path | None:
    return _of_npm("ccusage")


def npm_program(name: str, folder: str | None = None) -> Path | None:
    """Return a program that npm has installed into a folder of its own, which has the client's name, below
    `TEST_CLIENTS`."""
    others = os.environ.get("TEST_CLIENTS")
    program = Path(others or "/", folder or name, "node_modules", ".bin", name)
    return program if others and program.exists() else None


def _of_package(package: str, name: str) -> Path | None:
    """Return a program that is in a package for one kind of machine."""
    program = ROOT / ".components" / "node_modules" / package / "bin" / name
    return program if program.exists() else None


def find_harbor() -> Path | None:
    """Return the Python that has Harbor, which needs a newer one than we do."""
    own = ROOT / ".components" / "harbor" / "bin" / "python"
    program = shutil.which("harbor")
    beside = Path(program).resolve().parent / "python" if program else None
    return own if own.exists() else beside if beside and beside.exists() else None


def _of_npm(name: str) -> Path | None:
    """Return the program if it can run here: most of them are scripts for Node."""
    program = ROOT / ".components" / "node_modules" / ".bin" / name
    if not program.exists():
        return None
    with program.open("rb") as file:
        for_node = re.match(rb"#!.*\bnode\b", file.readline(100))
    return None if for_node and not shutil.which("node") else program


@dataclass(frozen=True)
class Finished:
    exit_code: int
    stdout: str
    stderr: str


class Sandbox:
    """A home and a project folder under `root`, kept for the test to look at."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        for folder in (self.home, self.project):
            folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
        """Run a client while entered; on exit it and its children are killed if they still run."""
        process = subprocess.Popen(
            command,
            cwd=self.project,
            env={**self._environment(), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], *, stdin: str = "", seconds: float = 60
    ) -> Finished:
        with self.start(command, environment) as process:
            stdout, stderr = process.communicate(stdin, timeout=seconds)
        return Finished(process.returncode, stdout, stderr)

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
        }


# What it would tell its makers.
QUIET_CLAUDE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


def run_claude(sandbox: Sandbox, url: str, *arguments: str, stdin: str = "", seconds: float = 60) -> Finished:
    """`claude` with these arguments, `-p` included; `url` is the base URL of Anthropic's API."""
    environment = {**QUIET_CLAUDE, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": ANTHROPIC_KEY}
    return sandbox.run([str(find_claude()), *arguments], environment, stdin=stdin, seconds=seconds)


def run_codex(sandbox: Sandbox, url: str, *arguments: str, seconds: float = 60) -> Finished:
    """`codex exec --json` with these arguments; `url` is the base URL of OpenAI's API, without `/v1`."""
    settings = {
        "openai_base_url": f'"{url}/v1"',
        "check_for_update_on_startup": "false",
        "analytics.enabled": "false",
        "feedback.enabled": "false",
    }
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    fixed = ["--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", "gpt-fake-1"]
    command = [str(find_codex()), "exec", *options, *fixed, *arguments]
    return sandbox.run(command, {"CODEX_API_KEY": OPENAI_KEY}, seconds=seconds)
