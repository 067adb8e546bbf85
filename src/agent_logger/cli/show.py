"""`agent-logger show`: show one session."""

from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._damaged import note_damage
from agent_logger.cli._select import calls_called, files_called, session_called, session_with_damage
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.joining.calls import CallDetail
    from agent_logger.catalog.ledger.metrics import Metrics
    from agent_logger.model.session import Session


class TouchedFiles(msgspec.Struct, frozen=True):
    """What tools did to which files, in the order of first use."""

    read: list[str]
    written: list[str]
    edited: list[str]


@click.command()
@click.argument("session", metavar="ID")
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Show one turn, nothing left out.")
@click.option("--thinking", is_flag=True, help="Show thoughts in full, not one line of each.")
@click.option("--tools", is_flag=True, help="Show a table of the tools: calls, errors, time.")
@click.option("--files", is_flag=True, help="List the files that were read, written, edited.")
@click.option(
    "--wire", is_flag=True, help="Show the request and the response as the proxy saw them; needs --turn."
)
@click.option("--raw", is_flag=True, help="Print the lines as they are in the files.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/show*.json).")
@settings_options()
def command(
    settings: config.Configuration,
    session: str,
    turn: int | None,
    thinking: bool,
    tools: bool,
    files: bool,
    wire: bool,
    raw: bool,
    as_json: bool,
) -> None:
    """Show a session as a conversation.

    ID is the client's id of a session, the name of its log, a prefix of either that no other has, or a path. The
    recordings of all witnesses are shown as one session; what looks like a key is not shown.

    Each turn has its number to the left, its cost and time to the right. Tools are shortened, thoughts take one line,
    sub-agents are under the call that started them.

    \b
    Examples:
      agent-logger show 1f320356
      agent-logger show 1f320356 --turn 12
      agent-logger show 1f320356 --turn 12 --wire
      agent-logger show logs/anthropic/20261115-084532-a7f3.jsonl --tools
      agent-logger show 1f320356 --json | jq '.exchanges[0].user_input'
    """
    if sum((tools, files, raw, turn is not None)) > 1:
        raise click.UsageError("only one of --turn, --tools, --files, --raw can be shown at a time")
    if wire and turn is None:
        raise click.UsageError("--wire shows one turn: say which with --turn N")
    if raw:
        _print_raw(settings, session)
    elif wire and turn is not None:
        _print_wire(settings, session, turn, as_json=as_json)
    elif turn is not None:
        _print_turn(session_called(settings, session), turn, as_json=as_json)
    elif tools or files:
        _print_counts(session_called(settings, session), tools=tools, as_json=as_json)
    else:
        whole, damaged = session_with_damage(settings, session)
        _print_session(whole, thinking=thinking, as_json=as_json)
        note_damage(damaged)


def _print_session(session: "Session", *, thinking: bool, as_json: bool) -> None:
    from agent_logger.views.json import session_json
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.session import SessionText

    if as_json:
        _output.json_text(session_json(session))
        return
    columns = screen.columns()
    print_rows(SessionText(session, columns, thinking=thinking).rows(), columns)


def _print_turn(session: "Session", number: int, *, as_json: bool) -> None:
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.session import SessionText

    columns = screen.columns()
    rows = SessionText(session, columns, whole=True).turn(number)
    if rows is None:
        raise SourceError(f"no turn {number}: the session has {len(session.turns)}, the first is 0")
    if as_json:
        _output.hidden_json(session.turns[number])
    else:
        print_rows(rows, columns)


def _print_counts(session: "Session", *, tools: bool, as_json: bool) -> None:
    from agent_logger.catalog.ledger.metrics import metrics_of

    metrics = metrics_of(session)
    touched = TouchedFiles([*metrics.files_read], [*metrics.files_written], [*metrics.files_edited])
    if as_json:
        _output.hidden_json(metrics.tools if tools else touched)
    elif tools:
        _print_tools(metrics)
    else:
        _print_files(touched)


def _print_files(touched: TouchedFiles) -> None:
    paths = (("read", touched.read), ("written", touched.written), ("edited", touched.edited))
    rows = [(name, _output.hidden(path)) for name, files in paths for path in files]
    if rows:
        _output.table(("", "file"), rows)
    else:
        _output.note("No file was read, written or edited.")


def _print_tools(metrics: "Metrics") -> None:
    from agent_logger.views.figures import seconds_text

    if not metrics.tools:
        _output.note("No tool was called.")
        return
    rows = []
    for tool in metrics.tools:
        took = "-" if tool.seconds is None else seconds_text(tool.seconds)
        rows.append((_output.hidden(tool.name or "-"), tool.kind, tool.calls, tool.errors, took))
    _output.table(("tool", "kind", "calls", "errors", "time"), rows)


def _print_raw(settings: config.Configuration, name: str) -> None:
    """Print the lines of every file of the session, and on stderr which file it is."""
    from agent_logger.files.line_files import raw_lines

    for file in files_called(settings, name):
        _output.note(f"{file}:")
        _output.raw_lines(raw_lines(file))


def _without_credentials(detail: "CallDetail") -> "CallDetail":
    from agent_logger.views.hide import hidden_headers

    request, response = detail.request, detail.response
    request = msgspec.structs.replace(request, headers=hidden_headers(request.headers))
    if response and response.headers:
        response = msgspec.structs.replace(response, headers=hidden_headers(response.headers))
    return msgspec.structs.replace(detail, request=request, response=response)


def _print_wire(settings: config.Configuration, name: str, turn: int, *, as_json: bool) -> None:
    from agent_logger.catalog.joining.calls import call_detail
    from agent_logger.catalog.joining.calls_by_turn import calls_by_turn
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.wire import WireText

    calls = calls_called(settings, name)
    turn_calls = calls_by_turn(session_called(settings, name), calls).get(turn, [])
    details = [detail for call in turn_calls if (detail := call_detail(calls, call.call))]
    if not details:
        raise SourceError(f"no proxied request was recorded for turn {turn}")
    if as_json:
        _output.hidden_json([_without_credentials(call) for call in details])
        return
    columns = screen.columns()
    print_rows(WireText(columns).rows(details), columns)
