"""`agent-logger export`: write a session as a file for others."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._select import MOST_CANDIDATES, session_called
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError, StoreError

if TYPE_CHECKING:
    from agent_logger.model.session import Session
    from agent_logger.platform import Held


@click.command()
@click.argument("session", metavar="ID")
@click.option(
    "--to", "form", required=True, type=click.Choice(["html", "md", "json", "wire"]), help="Format to write."
)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path),
    help="Write to this new file instead of stdout.",
)
@settings_options("log_dir")
def command(settings: config.Configuration, session: str, form: str, file: Path | None) -> None:
    """Write a session as one file that needs no other.

    ID is the client's id of a session, the name of its log, a prefix of either that no other has, or a path. The
    recordings of all witnesses are written as one session; what looks like a key is not written.

    \b
    html  a page to read, print or send: no script, nothing loaded
    md    Markdown, the same bytes for the same session
    json  everything that was derived, as `show --json` prints it
    wire  the records of the proxy's log, from all its parts, sealed or not;
          for a branch also those of its parent up to the fork

    \b
    Examples:
      agent-logger export 1f320356 --to html -o session.html
      agent-logger export 1f320356 --to md | less
      agent-logger export 20261115-084532-a7f3_b1 --to wire > branch.jsonl
    """
    if form == "wire":
        _write_wire(settings, session, file)
        return
    texts = _texts(session_called(settings, session), form)
    if file:
        _write(file, (text.encode() for text in texts))
    elif form == "json":
        _output.json_text("".join(texts).rstrip("\n"))
    else:
        _output.texts(texts)


def _texts(session: "Session", form: str) -> Iterable[str]:
    match form:
        case "html":
            from agent_logger.views.html.session import session_html

            return session_html(session)
        case "md":
            from agent_logger.views.markdown import session_markdown

            return session_markdown(session)
        case _:
            from agent_logger.views.json import session_json

            return [session_json(session), "\n"]


def _write_wire(settings: config.Configuration, name: str, file: Path | None) -> None:
    from agent_logger.views.wire_export import wire_lines

    log = _path_of(settings, name)
    damage: list[object] = []
    lines = wire_lines(log.parent, log.name, damage.append)
    if file:
        _write(file, lines)
    else:
        _output.json_lines(lines)
    if damage:
        places = "1 damaged place" if len(damage) == 1 else f"{len(damage):,} damaged places"
        _output.note(f"left out: {places}; 'agent-logger verify' names them")


def _path_of(settings: config.Configuration, name: str) -> Path:
    """The folder and the name of the log: in the log folder, otherwise in any folder that was ever recorded to."""
    from agent_logger.home.facts import known_folders
    from agent_logger.logs.find import logs_called

    parts = (log for folder in known_folders(settings.home) for log in logs_called(folder, name))
    logs = logs_called(settings.log_dir, name) or list(dict.fromkeys(parts))
    if not logs:
        raise SourceError(
            f"the proxy has recorded no session {name!r} in {settings.log_dir} or wherever else it recorded to"
        )
    if len(logs) > 1:
        names = [log.name for log in logs[:MOST_CANDIDATES]] + ["..."] * (len(logs) > MOST_CANDIDATES)
        raise click.UsageError(f"{name!r} is ambiguous ({', '.join(names)}): use a longer prefix or a path")
    return logs[0].folder / logs[0].name


def _create(file: Path) -> "Held":
    from agent_logger import platform

    try:
        return platform.open_file(file, create=True)
    except OSError as error:
        raise StoreError(f"cannot write to {file}: {error.strerror}") from error


def _write(file: Path, lines: Iterable[bytes]) -> None:
    """Write a new file that others cannot read; an existing file, perhaps a log, is not touched."""
    held = _create(file)
    try:
        for line in lines:
            held.write(line)
    except BaseException as error:
        file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreError(f"cannot export to {file}: {error.strerror}") from error
        raise
    finally:
        held.close()
