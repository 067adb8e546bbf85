"""The files of mini-swe-agent: a document for each run, wherever the user wants it. Other JSON files are beside it, so
the content tells; the name of a file is the beginning of the session's id."""

import re
from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path

from agent_logger.agents.base import Agent
from agent_logger.agents.cline.document import MessageForm
from agent_logger.agents.cline.files import document_file
from agent_logger.agents.locations import main_files
from agent_logger.agents.mini_swe_agent.session import ROLES, id_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.sources import FIRST_BYTES, FileStamps, Source, StampCache, stat_of_copy
from agent_logger.providers.json_values import Json

_BEGINNING = re.compile(rb'\s*\{\s*"(?:info|messages|trajectory_format|instance_id)"\s*:')
_STATS = re.compile(rb'"model_stats"\s*:\s*\{[^{}]*"(?:instance_cost|api_calls)"')
_FORMAT = re.compile(rb'"trajectory_format"\s*:\s*"mini-swe-agent-')


def _is_message(value: Json) -> bool:
    return value.get("role") in ROLES or value.get("object") == "response" or "call_id" in value


MESSAGE = MessageForm(re.compile(r'\{\s*"(?:role|content|extra|type|id|object|tool_call_id|call_id)"\s*:'), _is_message)


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str], sealed: bool
) -> Iterator[Source]:
    for path in map(str, main_files(agent.location, folders, sealed=sealed) if agent.location else ()):
        if not (stat := stat_of_copy(path)):
            continue
        files = FileStamps()
        files.add_stat(stat, "")
        name = cache.cached(path, files.stamp, partial(_name_in, path))
        if name and name not in skip:
            yield Source(path, agent.name, path, name, files.modified, files.size, files.stamp)


def _name_in(path: str) -> str:
    """Return the id of the session; empty if the file is none of mini-swe-agent's."""
    try:
        if not recognises(next(foreign.chunks(Path(path)), b"")[:FIRST_BYTES]):
            return ""
        return id_of(_file(Path(path)))
    except (OSError, SourceError):
        return ""


def open_session(source: Source) -> SourceFiles:
    return SourceFiles(_file(Path(source.path)))


def _file(path: Path) -> File:
    return document_file(path.parent, path.name, MESSAGE)


def begins_session(first: bytes) -> bool:
    return recognises(first)


def recognises(first: bytes) -> bool:
    return bool(_BEGINNING.match(first) and (_STATS.search(first) or _FORMAT.search(first)))
