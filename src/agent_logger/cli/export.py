"""`agent-logger export`: a session as a file for others."""

from collections.abc import Iterable
from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import output
from agent_logger.errors import SourceError, StoreError

MOST_CANDIDATES = 10


@click.command()
@click.argument("session", metavar="ID")
@click.option("--to", "form", required=True, type=click.Choice(["wire"]), help="What to write.")
@click.option(
    "-o", "--output", "file", type=click.Path(path_type=Path), help="Write to this new file, not to stdout."
)
@config.settings_options("log_dir")
def command(settings: config.Settings, session: str, form: str, file: Path | None) -> None:  # noqa: ARG001
    """Write a session as one file that needs no other.

    ID is the name of a wire log, the client's id of its session, the beginning of one of them
    that no other has, or a path.

    `--to wire` writes the records of the log, from all its parts, sealed or not. The log of a
    branch holds only what is its own: before that come the records of its parent up to the fork.

    \b
    Examples:
      agent-logger export 20261115-084532-a7f3_b1 --to wire > branch.jsonl
      agent-logger export 1f320356 --to wire --output session.jsonl
    """
    from agent_logger.export.wire import wire_lines

    log = _found(settings.log_dir, session)
    damage: list[object] = []
    lines = wire_lines(log.parent, log.name, damage.append)
    if file:
        _write(file, lines)
    else:
        output.json_lines(lines)
    if damage:
        places = "1 damaged place" if len(damage) == 1 else f"{len(damage):,} damaged places"
        output.note(f"left out: {places}; 'agent-logger verify' names them")


def _found(log_dir: Path, wanted: str) -> Path:
    """The folder and the name of the log that is meant."""
    from agent_logger.store.find import logs_called

    logs = logs_called(log_dir, wanted)
    if not logs:
        raise SourceError(f"no session {wanted!r} in {log_dir}")
    if len(logs) > 1:
        names = [log.name for log in logs[:MOST_CANDIDATES]] + ["..."] * (len(logs) > MOST_CANDIDATES)
        raise click.UsageError(f"{wanted!r} may be any of {', '.join(names)}; say more of it, or the path")
    return logs[0].folder / logs[0].name


def _write(file: Path, lines: Iterable[bytes]) -> None:
    """What others may not read stays so; a file that is there, perhaps a log, is not touched."""
    from agent_logger.store import platform

    try:
        held = platform.open_file(file, create=True)
    except OSError as error:
        raise StoreError(f"cannot write to {file}: {error.strerror}") from error
    try:
        for line in lines:
            held.write(line)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    finally:
        held.close()
