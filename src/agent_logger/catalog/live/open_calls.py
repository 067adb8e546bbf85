"""The calls of a session that are being answered now: requests at the end of its wire logs without a response yet."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger.files.follow import Follower, Position
from agent_logger.files.parts import PartFile, part_of
from agent_logger.logs.log_records import kind_of_log
from agent_logger.model.session import MAIN, SIDE
from agent_logger.protocols.jsonl import JsonEntry

FIRST_BYTES = 4 << 20  # bytes at the end of a file that are read when it is first seen


class LiveCall(NamedTuple):
    call: str
    thread: str


class _Head(msgspec.Struct):
    """The fields of a record that are needed."""

    type: str = ""
    call: str | None = None
    thread: str | None = None


_head = msgspec.json.Decoder(_Head).decode


class OpenCalls:
    """The open calls of one session, by the paths of its files. Call `poll` repeatedly."""

    def __init__(self, paths: Iterable[Path]) -> None:
        parts = [part for path in paths if (part := part_of(path))]
        self._logs = [part for part in parts if kind_of_log(part.folder, part.name) == "wire"]
        self._followers: dict[PartFile, Follower] = {}
        self._open: dict[str, LiveCall] = {}

    def poll(self) -> list[LiveCall]:
        """Return the open calls of the conversation, the oldest first, including those that will never be answered."""
        for log in self._logs:
            for item in self._follower(log.newest()).read():
                if isinstance(item, JsonEntry):
                    self._take(item.raw)
        return [open_call for open_call in self._open.values() if open_call.thread != SIDE]

    def _follower(self, part: PartFile) -> Follower:
        if part not in self._followers:
            self._followers[part] = follower_near_end(part.path)
        return self._followers[part]

    def _take(self, line: bytes) -> None:
        try:
            head = _head(line)
        except (ValueError, RecursionError):
            return
        if head.type == "request" and head.call:
            self._open[head.call] = LiveCall(head.call, head.thread or MAIN)
        elif head.type == "response" and head.call:
            self._open.pop(head.call, None)


def follower_near_end(path: Path) -> Follower:
    """Follow a file from near its end."""
    try:
        start = max(0, path.stat().st_size - FIRST_BYTES)
    except OSError:
        start = 0
    return Follower(path, Position(offset=start))
