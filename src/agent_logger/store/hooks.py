"""What hooks were told, read back: one file each in `<home>/hooks/YYYYMMDD/`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agent_logger import records
from agent_logger.formats.hooks import HookInput
from agent_logger.records import Hook
from agent_logger.store import foreign

MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class KeptHook:
    path: Path
    ts: str
    input: HookInput  # empty if it was no JSON object
    context: Any = None  # which instructions and settings applied, at the start of a session


def hooks_path(home: Path) -> Path:
    return home / "hooks"


def read_hooks(home: Path, since_day: str = "") -> Iterator[KeptHook]:
    """In the order they came; from `since_day` on (`20261115`). What cannot be read is left out."""
    for folder in sorted(hooks_path(home).glob("[0-9]*")):
        if folder.name >= since_day:
            yield from filter(None, map(_read, sorted(folder.glob("[0-9]*.json"))))


def _read(path: Path) -> KeptHook | None:
    line = foreign.text(path, MOST_BYTES)
    try:
        record = records.decode((line or "").encode(), "hook")
        if not isinstance(record, Hook):
            return None
        told = msgspec.json.decode(record.input) if isinstance(record.input, msgspec.Raw) else {}
        context = msgspec.json.decode(record.context) if isinstance(record.context, msgspec.Raw) else None
    except (msgspec.MsgspecError, RecursionError):
        return None
    return KeptHook(path, record.ts, HookInput.of(told if isinstance(told, dict) else {}), context)
