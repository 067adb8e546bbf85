"""What a model is saying right now, word by word: turns that are not in any log yet."""

import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agent_logger.catalog.live.open_calls import OpenCalls
from agent_logger.catalog.summary import SessionSummary
from agent_logger.model.session import Block, Turn
from agent_logger.providers.blocks.registry import answer_blocks
from agent_logger.proxy.in_flight import InFlight
from agent_logger.proxy.spool.folder import spool_folder

POLL_SECONDS = 0.2  # between two reads of a spool, for any number of watchers
FORGET_SECONDS = 30.0  # after the last watcher left


@dataclass(slots=True)
class _Spool:
    """The spool of one log folder."""

    in_flight: InFlight
    polled_at: float = 0.0
    used_at: float = 0.0


@dataclass(slots=True)
class _WatchedSession:
    """A session that somebody looks at."""

    calls: OpenCalls
    spools: list[Path]
    used_at: float = 0.0


_WORD = re.compile(r"[!-~]+\Z")


def _complete_words(blocks: list[Block]) -> list[Block]:
    """The blocks without the word that is being written: half of a key would not be recognised as one."""
    if not blocks:
        return []
    *before, last = blocks
    input_value = _WORD.sub("", last.input) if isinstance(last.input, str) else last.input
    return [*before, replace(last, text=_WORD.sub("", last.text), input=input_value)]


class InFlightTurns:
    """The turns in flight, for all watchers, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spools: dict[Path, _Spool] = {}
        self._sessions: dict[tuple[Path, ...], _WatchedSession] = {}

    def turns(self, summary: SessionSummary) -> list[Turn]:
        """The turns of a session that are being written: not complete, and without a number yet."""
        if "wire" not in summary.witnesses:
            return []
        with self._lock:
            now = time.monotonic()
            self._forget(now)
            session = self._session(summary.paths)
            session.used_at = now
            return list(self._open_turns(session, now))

    def _open_turns(self, session: _WatchedSession, now: float) -> Iterator[Turn]:
        spools = [reader for folder in session.spools if (reader := self._poll(folder, now))]
        for call in session.calls.poll():
            for read_answer in filter(None, (spool.answer(call.call) for spool in spools)):
                dialect, answer = read_answer
                blocks = answer_blocks(dialect, answer.message) if answer.message is not None else []
                yield Turn(
                    message_id=answer.message_id,
                    thread=call.thread,
                    model=answer.model,
                    blocks=_complete_words(blocks),
                    complete=False,
                )

    def _session(self, paths: tuple[Path, ...]) -> _WatchedSession:
        if paths not in self._sessions:
            folders = dict.fromkeys(spool_folder(path.parent.parent) for path in paths)
            existing = [folder for folder in folders if os.path.isdir(folder)]
            self._sessions[paths] = _WatchedSession(OpenCalls(paths), existing)
        return self._sessions[paths]

    def _poll(self, folder: Path, now: float) -> InFlight | None:
        spool = self._spools.setdefault(folder, _Spool(InFlight(folder)))
        spool.used_at = now
        if now - spool.polled_at >= POLL_SECONDS:
            spool.polled_at = now
            try:
                spool.in_flight.poll()
            except OSError:  # removed while we read it: the next poll starts again
                self._spools.pop(folder).in_flight.close()
                return None
        return spool.in_flight

    def _forget(self, now: float) -> None:
        for folder, spool in list(self._spools.items()):
            if now - spool.used_at > FORGET_SECONDS:
                self._spools.pop(folder).in_flight.close()
        for paths, session in list(self._sessions.items()):
            if now - session.used_at > FORGET_SECONDS:
                del self._sessions[paths]
