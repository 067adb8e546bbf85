"""`agent-logger find`: where a session's file is."""

from pathlib import Path

import click
import msgspec

from agent_logger import config
from agent_logger.cli import output


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    path: str
    modified: str
    bytes: int


@click.command()
@click.argument("session", metavar="ID")
@click.option("--repo", type=click.Path(path_type=Path), help="Prefer the session of this project folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/schemas/find.json).")
@config.settings_options()
def command(settings: config.Settings, session: str, repo: Path | None, as_json: bool) -> int:
    """Print where the file of a session is.

    Looks where Claude Code keeps sessions ($CLAUDE_CONFIG_DIR, which may be a list with commas, else ~/.claude and
    ~/.config/claude), and Codex, Gemini CLI and opencode; for what they have no more, in the archive. Where several
    files have the same id, the newest is printed and the others are named on stderr. Exit code: 0 found, 1 there
    is none, 2 that is no session id.

    \b
      agent-logger find 707575f7-6966-4682-abc3-e62e1560a136
      less "$(agent-logger find 707575f7-6966-4682-abc3-e62e1560a136 --repo .)"
    """
    from agent_logger.catalog.sessions import files_of
    from agent_logger.store.archived import copies_of

    try:
        found = files_of(session, repo) or copies_of(settings.home, session)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="ID") from error
    if as_json:
        output.json([_told(session, it) for it in found])
    elif found:
        output.echo(str(found[0]))
        for other in found[1:]:
            output.note(f"also: {other}")
    else:
        output.note(f"no file of session {session} on this machine; 'agent-logger ls' lists sessions")
    return 0 if found else 1


def _told(session: str, path: Path) -> FoundFile:
    from agent_logger.store.clock import timestamp

    status = path.stat()
    return FoundFile(id=session, path=str(path), modified=timestamp(status.st_mtime), bytes=status.st_size)
