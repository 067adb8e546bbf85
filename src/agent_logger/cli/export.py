"""`agent-logger export`: write sessions as files for others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._agents import agent_option, check_agent
from agent_logger.cli._catalog import (
    NOTHING_YET,
    check_machine,
    homes_option,
    machine_option,
    open_catalog,
    register_folders,
)
from agent_logger.cli._select import MOST_CANDIDATES, selected
from agent_logger.cli._settings import settings_options
from agent_logger.cli._times import time_options
from agent_logger.errors import SourceError
from agent_logger.exports.formats import FORMATS
from agent_logger.exports.masks.mask import KINDS
from agent_logger.home.homes import Homes, folders_inside
from agent_logger.model.plurals import pluralize
from agent_logger.views.terminal.screen import is_terminal

if TYPE_CHECKING:
    from agent_logger.catalog.catalog import Catalog
    from agent_logger.exports.base import ExportedSession, Format
    from agent_logger.exports.masks.mask import Masks
    from agent_logger.exports.write import Export
    from agent_logger.files.parts import PartFile

MOST_HITS = 10_000  # of a search, whose sessions are exported


class MaskKinds(click.ParamType[tuple[str, ...]]):
    name = "mask"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        kinds = tuple(dict.fromkeys(filter(None, str(value).split(",")))) if isinstance(value, str) else value
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            self.fail(f"{unknown[0]!r} cannot be masked; use {', '.join(KINDS)}", param, ctx)
        return tuple(kinds)


@click.command()
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@click.option("--to", "form", required=True, type=click.Choice(list(FORMATS)), help="Format of the file.")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Write to this new file, or into this folder (with a slash at the end), instead of stdout.",
)
@agent_option("sessions")
@machine_option("sessions")
@click.option("--project", help="Only sessions with this in the path of their project.")
@click.option("--label", metavar="NAME", help="Only sessions with this label.")
@click.option("--search", metavar="WORDS", help="Only sessions that 'agent-logger search' finds with these words.")
@time_options("sessions", since="active since", until="that began until")
@click.option(
    "--mask",
    type=MaskKinds(),
    default=(),
    metavar="KINDS",
    help="Replace paths, names, emails (separated by commas) by pseudonyms.",
)
@click.option("--check", is_flag=True, help="Scan the finished output with stricter rules; fail if they find anything.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the report as JSON; 'agent-logger schema export' describes it."
)
@click.option("--yes", is_flag=True, help="Export all sessions without asking.")
@settings_options("log_dir")
@homes_option()
def command(
    settings: config.Configuration,
    homes: Homes,
    sessions: tuple[str, ...],
    form: str,
    output: str | None,
    mask: tuple[str, ...],
    check: bool,
    as_json: bool,
    yes: bool,
    **conditions: Any,
) -> int:
    """Write sessions to self-contained files.

    ID is the client's id of a session, the name of its log, a unique prefix of either, a label, `last` or a path.
    Without an ID, the options select the sessions; without these, too, all are exported. The recordings of all
    witnesses are written as one session. Keys are redacted. Several sessions are written into one file or stream, or
    with `-o FOLDER/` into one file each; an export that was interrupted continues when it is called again.

    \b
    html  a page to read, print or send; it has no script and loads nothing
    md    Markdown; the same session always gives the same bytes
    json  all data about the session, as `show --json` prints it
    wire  the records of the proxy's log, from all its parts, sealed or not;
          for a branch also those of its parent up to the fork
    messages  conversations as JSONL of OpenAI's chat API: messages with tool
              calls, tools and the system prompt where the proxy recorded them
    atif  Agent Trajectory Interchange Format 1.7: steps with tool calls,
          tokens and costs; sub-agents as embedded trajectories
    bundle  the files of all witnesses as .tar.zst, for another machine:
          'agent-logger import' takes it

    At the end, a report on stderr says what was removed, by rule and place, and what looks odd and stayed: e-mail
    addresses, home paths, host names, long base64. With -o and --json it is printed on stdout.

    --mask replaces, by pseudonyms that are the same in every export: `paths`, which are home folders of any user
    (/home/*, /Users/*, C:\\Users\\*), the session's working folder and what lies below them; `names`, which are the
    login, the full name, the name of the host, the git authors of the session's repository, and the words of [mask] in
    the settings; `emails`. Nothing else is promised.

    \b
    Examples:
      agent-logger export 1f320356 --to html -o session.html
      agent-logger export 1f320356 --to md --mask paths,names,emails --check
      agent-logger export 20261115-084532-a7f3_b1 --to wire > branch.jsonl
      agent-logger export --to json --since 'last week' -o week/
      agent-logger export 1f320356 --to bundle -o session.tar.zst
    """
    from agent_logger.exports.write import Export

    if mask and FORMATS[form].packed:
        raise click.UsageError("a bundle cannot be masked, because an import needs the paths; use another format")
    selectors = {name: value for name, value in conditions.items() if value is not None}
    if sessions and selectors:
        raise click.UsageError("give either IDs, or options that select sessions")
    with _chosen(settings, homes, sessions, FORMATS[form], conditions, yes=yes) as chosen:
        _check_target(FORMATS[form], chosen, output)
        with _output.progress("exporting", sum(session.bytes for session in chosen)) as advance:
            export = Export(FORMATS[form], chosen, _masks(settings, mask), checks=check, advance=advance)
            _write(export, output)
    report = export.finish()
    if as_json:
        _print_json(report, to_stdout=output is not None)
    else:
        _print_report(report)
    return 1 if report.hits or report.failed else 0


def _write(export: "Export", output: str | None) -> None:
    if output is None:
        export.write_to_stdout(_printer(export.form))
    elif _is_folder(output):
        export.write_into(Path(output))
    else:
        export.write_to_file(Path(output))


def _is_folder(output: str) -> bool:
    return output.endswith("/") or Path(output).is_dir()


def _check_target(form: "Format", sessions: "Sequence[ExportedSession]", output: str | None) -> None:
    if len(sessions) > 1 and not form.joins and (output is None or not _is_folder(output)):
        raise click.UsageError(f"a file of {form.name} has one session: name a folder for several, with -o FOLDER/")
    if form.packed and output is None and is_terminal():
        raise click.UsageError(f"a {form.name} is no text: name a file for it, with -o FILE.{form.suffix}")


def _printer(form: "Format") -> Callable[[bytes], None]:
    match form.name:
        case "wire":
            return lambda data: _output.json_lines([data])
        case "html" | "md":
            return lambda data: _output.texts([data.decode("utf-8", "replace")])
        case "bundle":
            return lambda data: click.echo(data, nl=False)
    return _output.json_bytes


def _masks(settings: config.Configuration, kinds: Sequence[str]) -> "Masks":
    from agent_logger.exports.masks.machine import git_authors, this_machine
    from agent_logger.exports.masks.mask import Machine, Masks
    from agent_logger.home.layout import install_key

    if not kinds:
        return Masks((), bytes(32), Machine(), git_authors)
    return Masks(kinds, install_key(settings.home), this_machine(settings.mask_words), git_authors)


def _print_report(report: Any) -> None:
    from agent_logger.exports.report import report_lines

    for line in report_lines(report):
        _output.note(_output.hidden(line))


def _print_json(report: Any, *, to_stdout: bool) -> None:
    from agent_logger.views.json import json_of

    text = _output.hidden(json_of(report))
    if to_stdout:
        _output.json_text(text)
    else:
        _output.note(text, lines=True)


# ---------------------------------------------------------------- which sessions


@contextmanager
def _chosen(
    settings: config.Configuration,
    homes: Homes,
    names: Sequence[str],
    form: "Format",
    conditions: dict[str, Any],
    *,
    yes: bool,
) -> "Iterator[list[ExportedSession]]":
    if not names:
        with open_catalog(settings, homes) as catalog:
            yield _selected_by_filter(catalog, conditions, yes=yes)
        return
    if form.name == "wire":
        yield [_wire_session(_log_named(settings, homes, name)) for name in names]
        return
    with ExitStack() as stack:
        sessions = [stack.enter_context(selected(settings, homes, name)).exported() for name in names]
        yield list({session.id: session for session in sessions}.values())


def _selected_by_filter(catalog: "Catalog", conditions: dict[str, Any], *, yes: bool) -> "list[ExportedSession]":
    from agent_logger.catalog.summary import Filter
    from agent_logger.exports.sessions import exported_sessions

    words = conditions.pop("search")
    where = Filter(**conditions)
    check_agent(catalog, where.agent)
    check_machine(catalog, where.machine)
    if words:
        hits = catalog.search(words, limit=MOST_HITS, since=where.since, until=where.until)
        where = Filter(**conditions, sessions=frozenset(hit.session for hit in hits))
    sessions = exported_sessions(catalog, where)
    if not sessions:
        raise SourceError("no sessions match" if catalog.count() else NOTHING_YET.replace("\n", " "))
    if (
        not words
        and where == Filter()
        and not _output.confirm(f"Export all {pluralize(len(sessions), 'session')}?", yes=yes)
    ):
        raise click.Abort
    return sessions


def _wire_session(log: "PartFile") -> "ExportedSession":
    from agent_logger.exports.sessions import exported_log

    return exported_log(log)


def _log_named(settings: config.Configuration, homes: Homes, name: str) -> "PartFile":
    """The log: in the log folder, otherwise in any folder that was ever recorded to."""
    from agent_logger.logs.find import log_at

    if log := log_at(name):
        return log
    logs = _logs_called(settings, homes, name)
    if not logs:
        raise SourceError(
            f"no wire log of session {name!r} in {settings.log_dir} or any other folder that the proxy recorded to"
        )
    if len(logs) > 1:
        names = [log.name for log in logs[:MOST_CANDIDATES]] + ["..."] * (len(logs) > MOST_CANDIDATES)
        raise click.UsageError(f"{name!r} is ambiguous ({', '.join(names)}): use a longer prefix or a path")
    return logs[0]


def _logs_called(settings: config.Configuration, homes: Homes, name: str) -> "list[PartFile]":
    from agent_logger.home.facts import known_folders
    from agent_logger.logs.find import distinct_logs, logs_called

    folders = [folder for home in homes.others for folder in folders_inside(home)]
    if homes.has_own:
        register_folders(settings)
        log_dir, own = settings.log_dir.resolve(), known_folders(settings.home)
        if log_dir in own and (logs := logs_called(log_dir, name)):
            return logs
        folders = [*own, *folders]
    return distinct_logs(log for folder in folders for log in logs_called(folder, name))
