"""`agent-logger demo`: a session to look at, without a key."""

import tempfile
import threading
from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.session import session_lines


@click.command()
@click.option("--once", is_flag=True, help="Exit after printing instead of keeping the scripted API running.")
@settings_options(sessions_dir="a new temporary folder")
def command(settings: config.Configuration, once: bool) -> None:
    """Record a scripted conversation and show the recording.

    A scripted model API listens on 127.0.0.1. A small agent talks to it through the proxy and uses tools. Two witnesses
    record the conversation: the agent's messages go to an exchange log, the proxied calls to a wire log. This needs no
    key and no network.

    The logs go to a new temporary folder, or to the folder given with --sessions-dir; `ls`, `show` and the page then
    list the session like any other.

    \b
    Examples:
      agent-logger demo --once
      agent-logger demo --once --sessions-dir ./sessions && agent-logger ls
    """
    from agent_logger.demo.conversation import scripted_api
    from agent_logger.demo.proxied import proxied
    from agent_logger.demo.recorded import record

    folder = _prepared_folder(settings)
    with scripted_api() as api:
        _output.note(f"A scripted model API is running at {api.url}. An agent talks to it:")
        with proxied(api.url, folder / "logs") as url:
            log = record(url, folder, lambda text: _output.note(f"  you: {text}"))
        _show(folder, log.stem)
        _show_calls(folder / "logs")
        if not once:
            _output.note("")
            _output.note(f"The scripted API (Anthropic Messages) keeps running at {api.url}.")
            _output.note("Press Ctrl-C to stop it.")
            threading.Event().wait()


def _prepared_folder(settings: config.Configuration) -> Path:
    from agent_logger.home.facts import register_log_folder
    from agent_logger.home.layout import prepare_log_folder

    if settings.is_default("sessions_dir"):
        folder = Path(tempfile.mkdtemp(prefix="agent-logger-demo-"))
    else:
        folder = settings.sessions_dir
        register_log_folder(settings.home, folder)
        register_log_folder(settings.home, folder / "logs")
    prepare_log_folder(folder)
    return folder


def _show(folder: Path, name: str) -> None:
    """Print the session, all of it read back from the log."""
    from agent_logger.files.parts import PartFile
    from agent_logger.logs.exchange_log import session_of
    from agent_logger.logs.log_records import read_exchanges, read_log
    from agent_logger.logs.verify import verify_file
    from agent_logger.model.records import Record, SessionEnd, tag

    records = [item.value for item in read_log(folder, name) if isinstance(item.value, Record)]
    _output.note("\nRead back from the exchange log:\n", lines=True)
    for line in session_lines(session_of(records, read_exchanges(folder, name)), screen.columns()):
        _output.echo(line)
    _output.echo()
    for end in (record for record in records if isinstance(record, SessionEnd)):
        _output.echo(f"cost:    ${end.total_cost_usd:.4f}, as reported by the client")
    _output.echo(f"records: {' '.join(tag(record) for record in records)}")
    report = verify_file(PartFile(folder, name).path)
    state = "damaged" if report.damage else "no damage"
    _output.echo(f"log:     {report.path}")
    _output.echo(f"         {pluralize(report.bytes, 'byte')}, {state}")


def _show_calls(folder: Path) -> None:
    """Print what the proxy saw of the same conversation."""
    from agent_logger.demo.proxied import calls
    from agent_logger.logs.wire_log.answers import answer_of
    from agent_logger.providers.registry import ANTHROPIC

    _output.note("\nRead back from the wire log of the proxy:\n", lines=True)
    head = ("call", "thread", "status", "bytes", "tokens in", "out", "first byte", "total")
    rows: list[list[str | int]] = []
    for number, call in enumerate(calls(folder), 1):
        response = call.response
        row: list[str | int] = [number, (call.request.thread or "-")[:14]]
        if response is None:
            rows.append([*row, "-", 0, 0, 0, "-", "-"])
            continue
        answer = answer_of(response, ANTHROPIC)
        usage = answer.usage if answer else None
        tokens = [usage.context_tokens, usage.output_tokens] if usage else [0, 0]
        times = [
            f"{milliseconds:,.0f} ms" if milliseconds is not None else "-"
            for milliseconds in (response.timing.ttfb_ms, response.timing.total_ms)
        ]
        rows.append([*row, str(response.status), response.bytes or 0, *tokens, *times])
    _output.table(head, rows)
    _output.echo()
    _output.echo(f"log:     {folder}")
