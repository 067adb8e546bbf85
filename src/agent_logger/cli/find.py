"""`agent-logger find`: print where a session's file is, or which agents have sessions here."""

from pathlib import Path

import click
import msgspec

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import homes_option, open_catalog
from agent_logger.cli._select import resolve_id
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.home.homes import Homes


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    path: str
    modified: str
    bytes: int


@click.command()
@click.argument("session", metavar="[ID]", required=False)
@click.option("--repo", type=click.Path(path_type=Path), help="Prefer the session of this project folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema find' describes it.")
@settings_options()
@homes_option()
def command(settings: config.Configuration, homes: Homes, session: str | None, repo: Path | None, as_json: bool) -> int:
    """Print the path of a session's file; without an ID, the agents that have sessions on this machine.

    ID is the client's id of a session, the name of its log, a unique prefix of either, a label, or `last`.

    Looks in the folders of all known agents, then in the archive, then in the recordings made here. Claude Code's
    folders are those in $CLAUDE_CONFIG_DIR, which may be a comma-separated list, otherwise ~/.claude and
    ~/.config/claude. If several files have the same id, the newest is printed, and the others are listed on stderr.
    Exit code: 0 if found, 1 if not.

    The list of agents says how many sessions each has, and whether its files count tokens for each response of the
    model, for each exchange, for the session, or not at all ('agent-logger schema find-agents' describes its JSON). An
    agent is `unverified` if its files are read as its documentation describes them, not tested on files of its client.

    \b
    Examples:
      agent-logger find
      agent-logger find 707575f7
      less "$(agent-logger find 707575f7-6966-4682-abc3-e62e1560a136)"
    """
    if session is None:
        return _list_agents(as_json=as_json)
    name, paths = session, _by_id(settings.home, session, repo) if homes.are_own_alone else []
    if not paths:
        name, paths = _by_any_name(settings, homes, session)
    if as_json:
        _output.json([_file_row(name, path) for path in paths])
    elif paths:
        _output.echo(str(paths[0]))
        for other in paths[1:]:
            _output.note(f"also: {other}")
    else:
        raise SourceError(f"no session {session!r}; 'agent-logger ls' lists them")
    return 0 if paths else 1


def _list_agents(*, as_json: bool) -> int:
    from agent_logger.catalog.discovery.installed_agents import installed_agents

    agents = installed_agents()
    if as_json:
        _output.json(agents)
        return 0
    if not agents:
        _output.note("no agent has session files here")
    rows = [(each.title, str(each.sessions), each.tokens_per or "none", ", ".join(each.folders)) for each in agents]
    rows = [("agent", "sessions", "tokens per", "folder"), *rows] if rows else []
    widths = [max(len(row[at]) for row in rows) for at in range(3)] if rows else []
    for name, count, per, folder in rows:
        _output.echo(f"{name:<{widths[0]}}  {count:>{widths[1]}}  {per:<{widths[2]}}  {folder}")
    for reason in (reason for each in agents for reason in each.unreadable):
        _output.note(reason)
    return 0


def _by_id(home: Path, session: str, repo: Path | None) -> list[Path]:
    """The files with this id. This is quick, and works also if the catalog cannot be stored."""
    from agent_logger.archive.sessions import copies_of
    from agent_logger.catalog.discovery.sessions import files_of

    try:
        return files_of(session, repo) or copies_of(home, session)
    except ValueError:
        return []  # it is the name of a log, or a prefix of an id


def _by_any_name(settings: config.Configuration, homes: Homes, session: str) -> tuple[str, list[Path]]:
    """The id of the session, and its files."""
    with open_catalog(settings, homes) as catalog:
        summary = catalog.summary(resolve_id(catalog, session)) if catalog.resolve(session) else None
    return (summary.id, list(summary.paths)) if summary and not summary.prompts_only else (session, [])


def _file_row(session: str, path: Path) -> FoundFile:
    from agent_logger.clock import timestamp

    status = path.stat()
    return FoundFile(id=session, path=str(path), modified=timestamp(status.st_mtime), bytes=status.st_size)
