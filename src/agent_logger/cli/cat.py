"""`agent-logger cat`: print every record of a log."""

from collections.abc import Iterator
from pathlib import Path

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import homes_option, open_catalog
from agent_logger.cli._select import resolve_id
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.files.line_files import whole_lines
from agent_logger.files.parts import PartFile, part_of, parts_of
from agent_logger.home.homes import Homes
from agent_logger.logs.find import distinct_logs
from agent_logger.logs.log_records import kind_of_log


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@settings_options()
@homes_option()
def command(settings: config.Configuration, homes: Homes, logs: tuple[str, ...]) -> None:
    """Print every record of a log as JSONL: all its parts in order, sealed or not.

    LOG is the path of a log or of one of its parts, or a session: its id, the name of its log, a unique prefix of
    either, a label, or `last`. A session may have several logs; their paths are on stderr. A line that is still being
    written is left out. Keys are hidden, as in every view.

    \b
    Examples:
      agent-logger cat last | jq -r 'select(.type == "response") | .model'
      agent-logger cat logs/anthropic/20261115-084532-a7f3.jsonl | wc -l
    """
    for log in _logs(settings, homes, logs):
        _output.note(f"{log.path}:")
        for part in parts_of(log.folder, log.name):
            _output.raw_lines(whole_lines(part))


def _logs(settings: config.Configuration, homes: Homes, names: tuple[str, ...]) -> Iterator[PartFile]:
    for name in names:
        part = part_of(Path(name))
        if part and kind_of_log(part.folder, part.name):
            yield PartFile(part.folder, part.name)
        elif Path(name).exists():
            raise SourceError(f"{name}: not a log of agent-logger; 'agent-logger show --raw' prints other files")
        else:
            yield from _logs_of_session(settings, homes, name)


def _logs_of_session(settings: config.Configuration, homes: Homes, session: str) -> list[PartFile]:
    with open_catalog(settings, homes) as catalog:
        logs = distinct_logs(filter(None, map(part_of, catalog.logs(resolve_id(catalog, session)))))
    if not logs:
        raise SourceError(f"agent-logger has no log of {session}; 'agent-logger show --raw' prints the agent's files")
    return logs
