"""`agent-logger proxy`: run the transparent recording proxy."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options

if TYPE_CHECKING:
    from agent_logger.proxy.call_lines import CallLine

SETTINGS = ("port", "log_dir", "allow_upstream", "redact", "seal_after", "workers")


@click.command()
@settings_options(*SETTINGS)
def command(settings: config.Configuration) -> None:
    """Record what passes between agents and their models, byte for byte.

    The proxy listens on 127.0.0.1. To send an agent through it, set the agent's base URL, which names the provider and
    the host to forward to. Nothing else about the agent changes:

    \b
      ANTHROPIC_BASE_URL=http://127.0.0.1:8080/anthropic/api.anthropic.com
      OPENAI_BASE_URL=http://127.0.0.1:8080/openai/api.openai.com/v1

    \b
    Some agents read their base URL from a file. Codex, ~/.codex/config.toml:
      model_provider = "recorded"
      [model_providers.recorded]
      name = "OpenAI, recorded"
      base_url = "http://127.0.0.1:8080/openai/api.openai.com/v1"
      wire_api = "responses"
      env_key = "OPENAI_API_KEY"
    Codex with a ChatGPT login, instead of the last three lines:
      base_url = "http://127.0.0.1:8080/openai/chatgpt.com/backend-api/codex"
      wire_api = "responses"
      requires_openai_auth = true
    opencode, opencode.json (with /v1 for Anthropic too):
      {"provider": {"anthropic": {"options": {"baseURL":
        "http://127.0.0.1:8080/anthropic/api.anthropic.com/v1"}}}}
    Kilo: the same in kilo.json.
    Cline, with one of its providers (-p openai: any that is like OpenAI):
      cline auth -p openai -k KEY -m MODEL \\
        -b http://127.0.0.1:8080/openai/api.openai.com/v1
    pi, ~/.pi/agent/models.json:
      {"providers": {"anthropic": {"baseUrl":
        "http://127.0.0.1:8080/anthropic/api.anthropic.com"}}}
    Kimi Code, ~/.kimi-code/config.toml:
      [providers.moonshot]
      base_url = "http://127.0.0.1:8080/openai/api.moonshot.ai/v1"
    Grok Build, ~/.grok/config.toml:
      [model.mine]
      base_url = "http://127.0.0.1:8080/openai/api.x.ai/v1"
    Continue, a model in ~/.continue/config.yaml:
      apiBase: http://127.0.0.1:8080/openai/api.openai.com/v1
    Droid, a model of your own in ~/.factory/config.json:
      "base_url": "http://127.0.0.1:8080/openai/api.openai.com/v1"
    Mistral Vibe, a provider in ~/.vibe/config.toml:
      api_base = "http://127.0.0.1:8080/openai/api.mistral.ai/v1"
    OpenHands, with --override-with-envs:
      LLM_BASE_URL=http://127.0.0.1:8080/openai/api.openai.com/v1

    Calls are written to the log folder as they happen. Ctrl-C stops the proxy when the responses in
    progress have ended, after 30 seconds at most; a second Ctrl-C stops it at once.

    \b
    Examples:
      agent-logger proxy
      agent-logger proxy --port 9000 --log-dir ~/agent-logs
    """
    serve(settings)


def serve(settings: config.Configuration, listening: Callable[[], None] = lambda: None) -> None:
    """Run the proxy. Calls `listening` once it listens."""
    from agent_logger.proxy.relay_process import RelayOptions
    from agent_logger.proxy.server import run

    options = RelayOptions(
        port=settings.port,
        port_is_chosen=not settings.is_default("port"),
        log_dir=settings.log_dir,
        home=settings.home,
        allow=settings.allow_upstream,
        patterns=settings.redact == "all",
        seal_after_seconds=settings.seal_after,
        workers=settings.workers,
        network=config.network(),
    )

    def ready(port: int) -> None:
        _print_start(port, options.log_dir)
        listening()

    run(options, ready, _show if sys.stderr.isatty() else None)


def _print_start(port: int, log_dir: object) -> None:
    base = f"http://127.0.0.1:{port}"
    _output.note(f"The proxy listens on {base}. Press Ctrl-C to stop it.")
    _output.note(f"Logs are written to {log_dir}.")
    _output.note("To send an agent through it:")
    _output.note(f"  ANTHROPIC_BASE_URL={base}/anthropic/api.anthropic.com claude")
    _output.note(f"  OPENAI_BASE_URL={base}/openai/api.openai.com/v1 ...")


def _show(line: "CallLine") -> None:
    """Print a call: session, model and usage of a call to a model; the request line and size of any other call."""
    parts = [time.strftime("%H:%M:%S"), str(line.status or "---")]
    if line.session:
        parts += [f"{line.session[9:]:11}", f"{line.thread or '':5}"]
    if line.model:
        parts += [line.model, f"{_count(line.input_tokens)} in, {_count(line.output_tokens)} out"]
    else:
        parts += [f"{line.method} {line.path}", f"{line.bytes:,} B"]
    parts += [_duration(line.ttfb_ms), _duration(line.total_ms)]
    _output.note("  ".join(parts + _marks(line)))


def _marks(line: "CallLine") -> list[str]:
    marks = [f"fork of {line.forked_from[9:]}"] if line.forked_from else []
    marks += [f"retry of {line.retry_of}"] if line.retry_of else []
    marks += ["history rewritten"] if line.rewrites else []
    marks += [] if line.is_understood else ["not understood, kept as bytes"]
    return marks + ([line.reason] if line.reason else [])


def _count(tokens: int | None) -> str:
    from agent_logger.views.figures import short

    return "?" if tokens is None else short(tokens)


def _duration(milliseconds: float | None) -> str:
    from agent_logger.views.figures import seconds_text

    return "-" if milliseconds is None else seconds_text(milliseconds / 1000)
