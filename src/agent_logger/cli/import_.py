"""`agent-logger import`: keep sessions of other machines beside those of this one."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options
from agent_logger.model.plurals import pluralize

if TYPE_CHECKING:
    from agent_logger.imports.run import ImportResult


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--list", "lists", is_flag=True, help="List the imports.")
@click.option("--remove", metavar="NAME", help="Delete an import, with all its sessions.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema import' describes it.")
@settings_options()
def command(
    settings: config.Configuration,
    paths: tuple[Path, ...],
    lists: bool,
    remove: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Import sessions that were recorded elsewhere.

    PATH is a bundle that 'agent-logger export --to bundle' wrote, a session file of any known agent or of agent-logger,
    whatever its name, another home (a folder .agent-logger), or a folder with bundles, homes or session files.

    The files are copied to archive/imported/ in the home. Imported sessions are listed, shown, searched and counted
    like others; their origin is shown with them. A response that this machine recorded itself is never counted again,
    and a session that this machine has is shown as this machine recorded it. The same import twice is one import; a
    home that is imported again replaces its earlier import.

    A bundle is refused as a whole if it has anything but regular files in the layout of a bundle: links, absolute
    names, "..", two files of one name, more than 100,000 files or 10 GB, or bytes packed more than 200 times.

    \b
    Examples:
      agent-logger import session.tar.zst
      agent-logger import ~/Downloads/colleague.jsonl
      agent-logger import /mnt/laptop/home/ann/.agent-logger
      agent-logger import --list
      agent-logger import --remove session-3f2a9c1d
    """
    if sum((bool(paths), lists, remove is not None)) != 1:
        raise click.UsageError("give paths to import, or one of --list and --remove NAME")
    if lists:
        _list(settings.home, as_json)
        return 0
    if remove is not None:
        return _remove(settings.home, remove, yes=yes)
    return _import(settings.home, paths, as_json)


def _import(home: Path, paths: tuple[Path, ...], as_json: bool) -> int:
    from agent_logger.errors import AgentLoggerError
    from agent_logger.imports.run import importable, run_import, size_of

    results, failed = [], 0
    chosen = [each for path in paths for each in importable(path)]
    with _output.progress("importing", sum(map(size_of, chosen))) as advance:
        for path in chosen:
            try:
                results.append(run_import(home, path, advance))
            except AgentLoggerError as error:
                if len(chosen) == 1:
                    raise
                failed += 1
                _output.note(_output.hidden(str(error)))
    if as_json:
        _output.json(results)
    else:
        for result in results:
            _output.echo(_output.printable(_text(result)))
    return 1 if failed else 0


def _text(result: "ImportResult") -> str:
    match result.state:
        case "there":
            return f"{result.path}: imported before, as {result.import_name}"
        case "replaced":
            done = "imported again"
        case _:
            done = "imported"
    origin = f" from {result.machine}" if result.machine else ""
    sizes = f"{pluralize(result.files, 'file')}, {pluralize(result.bytes, 'byte')}"
    return f"{result.path}: {done}{origin} as {result.import_name}: {sizes}"


def _list(home: Path, as_json: bool) -> None:
    from agent_logger.archive.imported import imports

    origins = imports(home)
    if as_json:
        _output.json(origins)
    elif not origins:
        _output.note("Nothing was imported yet.")
    else:
        rows = [[each.name, each.kind, each.machine or "-", each.at[:10], each.path] for each in origins]
        _output.table(
            ["name", "kind", "machine", "imported", "from"],
            [[_output.printable(text) for text in row] for row in rows],
        )


def _remove(home: Path, name: str, *, yes: bool) -> int:
    from agent_logger.archive.imported import origin_of, remove_import

    if origin_of(home, name) and not _output.confirm(f"Delete the import {name} with all its sessions?", yes=yes):
        return 1
    remove_import(home, name)
    _output.note(f"removed {name}")
    return 0
