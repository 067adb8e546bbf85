"""The stored inputs of hooks, read back: one file each in `<home>/hooks/YYYYMMDD/`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agent_logger.agents.folders import agent_folders
from agent_logger.agents.objects import time_of
from agent_logger.agents.registry import located
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.home.layout import is_hashed
from agent_logger.hooks.events import HookInput
from agent_logger.hooks.session import HookEvent
from agent_logger.logs.context import context_files
from agent_logger.logs.hook_files import files_with, session_named
from agent_logger.model import records
from agent_logger.model.records import Hook
from agent_logger.model.session import ContextFile

MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class KeptHook:
    path: Path
    ts: str
    input: HookInput  # empty if it was no JSON object
    context: Any = None  # which instructions and settings applied, at the start of a session
    context_files: Sequence[ContextFile] = ()  # the same in short


def hooks_in(folder: Path, tag: str) -> list[KeptHook]:
    """The hooks of one session on one day, as `hook_files` names them."""
    return [hook for path in files_with(folder, tag) if (hook := _read(path))]


def session_in(folder: Path, tag: str) -> str:
    """The id of the session that a tag stands for. Raises `SourceError` if no file names it."""
    if not is_hashed(tag):
        return tag
    names = (session_named(hook.input.session_id, hook.input.transcript_path) for hook in hooks_in(folder, tag))
    if name := next(filter(None, names), None):
        return name
    raise SourceError(f"{folder}: no file names the session of {tag}")


def events_in(folders: Iterable[Path], tag: str) -> list[HookEvent]:
    """The events of a session, in the order they came."""
    hooks = [hook for folder in sorted(folders, key=lambda folder: folder.name) for hook in hooks_in(folder, tag)]
    once = {hook.path.name: hook for hook in reversed(hooks)}  # another home may have a copy
    events = (hook for hook in hooks if once[hook.path.name] is hook)
    return [HookEvent(time_of(hook.ts), hook.input, hook.context_files) for hook in events]


def agent_of(events: Iterable[HookEvent]) -> str | None:
    """The agent that called these hooks: the one whose folder holds the transcript."""
    paths = {event.input.transcript_path for event in events if event.input.transcript_path}
    for agent, location in located():
        if not location.is_named_by_user and any(
            Path(path).is_relative_to(folder) for path in paths for folder in agent_folders(location)
        ):
            return agent.name
    return None


def _read(path: Path) -> KeptHook | None:
    line = foreign.text(path, MOST_BYTES)
    try:
        record = records.decode((line or "").encode(), "hook")
        if not isinstance(record, Hook):
            return None
        fields = msgspec.json.decode(record.input) if isinstance(record.input, msgspec.Raw) else {}
        context = msgspec.json.decode(record.context) if isinstance(record.context, msgspec.Raw) else None
    except (ValueError, RecursionError):
        return None
    fields = HookInput.of(fields if isinstance(fields, dict) else {})
    return KeptHook(path, record.ts, fields, context, context_files(record.context))
