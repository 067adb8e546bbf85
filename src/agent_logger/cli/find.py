"""`agent-logger find`: print where a session's file is."""

from pathlib import Path

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import opened
from agent_logger.cli._select import one_called
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    path: str
    modified: str
    bytes: int


@click.command()
@click.argument("session", metavar="ID")
@click.option("--repo", type=click.Path(path_type=Path), help="Prefer the session of this project folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/find.json).")
@settings_options()
def command(settings: config.Configuration, session: str, repo: Path | None, as_json: bool) -> int:
    """Print the path of a session's file.

    ID is the client's id of a session, the name of its log, or a prefix of either that no other has.

    Looks where Claude Code keeps sessions ($CLAUDE_CONFIG_DIR, which may be a list with commas, else ~/.claude and
    ~/.config/claude), Codex, Gemini CLI, opencode and Qwen Code; for sessions that they no longer have, in the archive.
    If several files have the same id, the newest is printed and the others are named on stderr. Exit code: 0 found, 1
    not found.

    \b
    Examples:
      agent-logger find 707575f7
      less "$(agent-logger find 707575f7-6966-4682-abc3-e62e1560a136)"
    """
    paths = _by_id(settings.home, session, repo) or _by_any_name(settings, session)
    if as_json:
        _output.json([_file_row(session, path) for path in paths])
    elif paths:
        _output.echo(str(paths[0]))
        for other in paths[1:]:
            _output.note(f"also: {other}")
    else:
        raise SourceError(f"no session {session!r}; 'agent-logger ls' lists them")
    return 0 if paths else 1


def _by_id(home: Path, session: str, repo: Path | None) -> list[Path]:
    """The files with this id. This is quick, and works also if the catalog cannot be stored."""
    from agent_logger.archive.sessions import copies_of
    from agent_logger.catalog.discovery.sessions import files_of

    try:
        return files_of(session, repo) or copies_of(home, session)
    except ValueError:
        return []  # it is the name of a log, or the beginning of an id


def _by_any_name(settings: config.Configuration, session: str) -> list[Path]:
    with opened(settings) as catalog:
        summary = catalog.summary(one_called(catalog, session)) if catalog.resolve(session) else None
    return list(summary.paths) if summary and not summary.prompts_only else []


def _file_row(session: str, path: Path) -> FoundFile:
    from agent_logger.clock import timestamp

    status = path.stat()
    return FoundFile(id=session, path=str(path), modified=timestamp(status.st_mtime), bytes=status.st_size)
