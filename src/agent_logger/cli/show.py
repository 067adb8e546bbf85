"""`agent-logger show`: show one session."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import homes_option
from agent_logger.cli._damaged import note_damage
from agent_logger.cli._pager import paged, pager_option
from agent_logger.cli._select import SelectedSession, selected
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.home.homes import Homes
from agent_logger.model.plurals import pluralize
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
@click.argument("session", metavar="[ID]", default="last")
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Show one turn in full.")
@click.option("--thinking", is_flag=True, help="Show thinking in full instead of one line each.")
@click.option("--tools", is_flag=True, help="Show a table of tools: calls, errors, time.")
@click.option("--files", is_flag=True, help="List the files that were read, written or edited.")
@click.option("--wire", is_flag=True, help="Show the request and the response that the proxy recorded; needs --turn.")
@click.option(
    "--diff", type=click.IntRange(min=0), metavar="N", help="Compare the request with that of turn N; needs --wire."
)
@click.option("--raw", is_flag=True, help="Print the lines of the files.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema' lists the schemas.")
@pager_option()
@settings_options()
@homes_option(with_database=True)
def command(
    settings: config.Configuration,
    homes: Homes,
    session: str,
    turn: int | None,
    thinking: bool,
    tools: bool,
    files: bool,
    wire: bool,
    diff: int | None,
    raw: bool,
    as_json: bool,
    pager: bool,
) -> None:
    """Show a session as a conversation.

    ID is the client's id of a session, the name of its log, a unique prefix of either, a label, the path of a file (one
    of ours or of an agent, under any name), or `last`: the session last active, which is shown without an ID. The
    recordings of all witnesses are shown as one session. Keys are redacted.

    The number of a turn is on the left, its cost and time on the right. Tool input and results are shortened, thinking
    takes one line, sub-agents appear under the call that started them.

    --wire --diff N prints what differs between the requests of turn N and of --turn, or of the last turn: settings,
    system prompt, tools, messages.

    \b
    Examples:
      agent-logger show last
      agent-logger show 1f320356
      agent-logger show 1f320356 --turn 12
      agent-logger show 1f320356 --turn 12 --wire
      agent-logger show 1f320356 --turn 12 --wire --diff 11
      agent-logger show logs/anthropic/20261115-084532-a7f3.jsonl --tools
      agent-logger show 1f320356 --json | jq '.exchanges[0].user_input'
    """
    if sum((tools, files, raw, turn is not None)) > 1:
        raise click.UsageError("use only one of --turn, --tools, --files, --raw")
    if wire and turn is None and diff is None:
        raise click.UsageError("--wire needs --turn N")
    if diff is not None and not wire:
        raise click.UsageError("--diff needs --wire")
    with selected(settings, homes, session) as chosen, paged(pager):
        if raw:
            _print_raw(chosen.files())
        elif diff is not None:
            _print_wire_diff(chosen, diff, turn, as_json=as_json)
        elif wire and turn is not None:
            _print_wire(chosen, turn, as_json=as_json)
        elif turn is not None:
            _print_turn(chosen.session(), turn, as_json=as_json)
        elif tools or files:
            _print_counts(chosen.session(), tools=tools, as_json=as_json)
        else:
            _print_session(chosen.session(), _mark_lines(chosen), thinking=thinking, as_json=as_json)
            note_damage(chosen.damaged_files)


def _mark_lines(chosen: SelectedSession) -> list[str]:
    from agent_logger.views.lists import mark_text

    marks = chosen.marks()
    lines = (mark_text(marks.labels, pinned=marks.pinned), marks.note and f"note: {marks.note}") if marks else ()
    return [line for line in lines if line]


def _print_session(session: "Session", marks: Sequence[str], *, thinking: bool, as_json: bool) -> None:
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.session import SessionText

    if as_json:
        _output.hidden_json(session)
        return
    columns = screen.columns()
    print_rows(SessionText(session, columns, thinking=thinking, marks=marks).rows(), columns)


def _print_turn(session: "Session", number: int, *, as_json: bool) -> None:
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.session import SessionText

    columns = screen.columns()
    rows = SessionText(session, columns, whole=True).turn(number)
    if rows is None:
        turns = session.turns
        numbers = f"{pluralize(len(turns), 'turn')}, numbered from 0" if turns else "no turns"
        raise SourceError(f"no turn {number}: the session has {numbers}")
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
        _output.note("No files were read, written or edited.")


def _print_tools(metrics: "Metrics") -> None:
    from agent_logger.views.figures import seconds_text

    if not metrics.tools:
        _output.note("No tools were called.")
        return
    rows = []
    for tool in metrics.tools:
        took = "-" if tool.seconds is None else seconds_text(tool.seconds)
        rows.append((_output.hidden(tool.name or "-"), tool.kind, tool.calls, tool.errors, took))
    _output.table(("tool", "kind", "calls", "errors", "time"), rows)


def _print_raw(files: Iterable[Path]) -> None:
    """Print the lines of every file of the session, and on stderr which file it is."""
    from agent_logger.files.line_files import raw_lines

    for file in files:
        _output.note(f"{file}:")
        _output.raw_lines(raw_lines(file))


def _without_credentials(detail: "CallDetail") -> "CallDetail":
    from agent_logger.views.hide import hidden_headers

    request, response = detail.request, detail.response
    request = msgspec.structs.replace(request, headers=hidden_headers(request.headers))
    if response and response.headers:
        response = msgspec.structs.replace(response, headers=hidden_headers(response.headers))
    return msgspec.structs.replace(detail, request=request, response=response)


def _print_wire(chosen: SelectedSession, turn: int, *, as_json: bool) -> None:
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.wire import WireText

    details = _turn_calls(chosen)(turn)
    if as_json:
        _output.hidden_json([_without_credentials(call) for call in details])
        return
    columns = screen.columns()
    print_rows(WireText(columns).rows(details), columns)


def _print_wire_diff(chosen: SelectedSession, before: int, turn: int | None, *, as_json: bool) -> None:
    from agent_logger.catalog.joining.calls import call_detail
    from agent_logger.views.request_diff import request_diff
    from agent_logger.views.terminal.rows import print_rows
    from agent_logger.views.terminal.wire import WireText, own_call

    calls_of_turn = _turn_calls(chosen)
    old, new = own_call(calls_of_turn(before)), own_call(calls_of_turn(turn))
    if as_json:
        detail = call_detail(chosen.calls(), new.call.call, old.call.call) or new
        _output.hidden_json([_without_credentials(detail)])
        return
    diff = request_diff(old, new)
    if diff is None:
        raise SourceError("these calls cannot be compared: a request asked no model, or cannot be read")
    columns = screen.columns()
    print_rows(WireText(columns).diff_rows(old, new, diff), columns)


def _turn_calls(chosen: SelectedSession) -> "Callable[[int | None], list[CallDetail]]":
    """Return the function that gives the calls of a turn; without a number, of the last turn that has any."""
    from agent_logger.catalog.joining.calls import call_detail
    from agent_logger.catalog.joining.calls_by_turn import calls_by_turn

    calls = chosen.calls()
    by_turn = calls_by_turn(chosen.session(), calls)
    last = max((number for number in by_turn if number is not None), default=0)

    def details(turn: int | None) -> "list[CallDetail]":
        number = last if turn is None else turn
        turn_details = [detail for call in by_turn.get(number, []) if (detail := call_detail(calls, call.call))]
        if not turn_details:
            raise SourceError(f"no proxied request was recorded for turn {number}")
        return turn_details

    return details
