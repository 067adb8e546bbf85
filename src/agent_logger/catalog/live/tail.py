"""What live sessions do now: files that grow are followed, and each line is reported once.

Of several witnesses of a session, the one that knows it best is followed: the agent's own file, else an SDK's or a
run's log, else the wire. New lines go to the reader of their format, which makes a session of them, whose moments are
reported. So a session may grow for days, and a poll costs only what is new.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from agent_logger.agents.registry import agent_called
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.catalog.discovery.all_sources import find_sources
from agent_logger.catalog.discovery.reader import session_of
from agent_logger.catalog.live.liveness import LIVE_SECONDS
from agent_logger.catalog.live.moments import Moment, moments_of
from agent_logger.catalog.live.open_calls import follower_near_end
from agent_logger.errors import SourceError
from agent_logger.files.parts import PartFile, live_files_of, part_of, parts_of
from agent_logger.files.sources import Source, StampCache
from agent_logger.home.homes import Homes
from agent_logger.journal.bodies import decode
from agent_logger.journal.live_exchanges import from_live
from agent_logger.logs.exchange_log import session_of as exchange_session
from agent_logger.logs.find import client_id, session_id_of
from agent_logger.logs.log_records import kind_of_log
from agent_logger.logs.wire_log.session import Reading
from agent_logger.model.records import AnyRecord, ExchangeRecord, Kind, SessionStart
from agent_logger.model.session import Session
from agent_logger.protocols.jsonl import Damage, JsonEntry

LOOK_SECONDS = 2.0  # between two searches for files that are new, or grow again

Entries = list[JsonEntry | Damage]


class Tail:
    """Follows sessions; nothing happens between calls of `poll`. `session`: only this one, live or not."""

    def __init__(self, homes: Homes, session: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._homes, self._session, self._clock = homes, session, clock
        self._remembered = StampCache()
        self._ids: dict[str, str] = {}  # ids that are only inside the files
        self._watched: dict[str, _Watched] = {}  # watched sources by session
        self._looked = 0.0

    @property
    def sessions(self) -> list[str]:
        """Return the sessions that are followed now."""
        return list(self._watched)

    def poll(self) -> list[Moment]:
        """Return what happened since the last call, in the order of time; at first what the ends of the files show."""
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS or now < self._looked:
            self._look(now)
        moments = [moment for watch in self._watched.values() for moment in watch.moments()]
        return sorted(moments, key=lambda moment: (moment.at is None, moment.at.timestamp() if moment.at else 0.0))

    def _look(self, now: float) -> None:
        self._looked = now
        for name, source in self._best_sources(now).items():
            watch = self._watched.get(name)
            if watch is None or watch.source.key != source.key:
                self._watched[name] = _Watched(name, source, watch)
            self._watched[name].look(source)

    def _best_sources(self, now: float) -> dict[str, Source]:
        """Return the best source of each session that is followed."""
        best: dict[str, Source] = {}
        for source in find_sources(self._homes, self._remembered):
            is_old = self._session is None and now - source.modified >= LIVE_SECONDS
            if is_old or source.is_of_hooks or source.is_document or source.is_of_no_session or source.imported:
                continue
            name = self._id_of(source)
            if self._session in (None, name) and (name not in best or _rank(source) < _rank(best[name])):
                best[name] = source
        return best

    def _id_of(self, source: Source) -> str:
        agent = agent_called(source.agent)
        if agent and not agent.has_id_inside:
            return source.name
        if source.key not in self._ids and (session_id := _read_id(source)):
            self._ids[source.key] = session_id
        return self._ids.get(source.key, source.name)  # the file may name it later


def _read_id(source: Source) -> str | None:
    """Return the client's id, where it is only inside the file."""
    if source.agent:
        return next((session.id for session in _read_session(source)), None)
    log = PartFile(Path(source.path).parent, source.name)
    return client_id(log) or session_id_of(log)


def _rank(source: Source) -> tuple[int, float]:
    """Return a key that sorts the best witness of the conversation first; of several the one last written to."""
    if source.agent:
        return 0, -source.modified
    path = Path(source.path)
    return (2 if kind_of_log(path.parent, source.name) == "wire" else 1), -source.modified


class _Watched:
    """A session that is followed through one witness."""

    def __init__(self, name: str, source: Source, before: "_Watched | None") -> None:
        self.source = source
        # How often each moment was shown, by its hash.
        self.hashes: Counter[int] = before.hashes if before else Counter()
        self._name = name
        self._after = before is not None  # another witness showed the beginning; its times differ
        self._stamp = ""
        self._files: dict[Path, _File] = {}
        self._wire = Reading()

    def look(self, source: Source) -> None:
        self.source = source
        for path in _files_of(source):
            if path not in self._files:
                self._files[path] = _File(path)

    def moments(self) -> Iterator[Moment]:
        for session, is_whole in self._sessions():
            again: Counter[int] = Counter()
            for moment in moments_of(session):
                if self._is_new(moment, again if is_whole else None):
                    agent = moment.agent or self.source.agent
                    yield msgspec.structs.replace(moment, session=self._name, agent=agent)
        self._after = False

    def _is_new(self, moment: Moment, again: "Counter[int] | None") -> bool:
        """Whether a moment is new: in a session that is read as a whole, by how often it occurs; else by the time."""
        words = hash((moment.thread, moment.what, moment.text))
        if again is not None:
            again[words] += 1
            new = again[words] > self.hashes[words]
        else:
            key = hash((moment.at, words))
            new = not self.hashes[key] and not (self._after and self.hashes[words])
            self.hashes[key] += 1
        self.hashes[words] += new
        return new

    def _sessions(self) -> Iterator[tuple[Session, bool]]:
        """Yield the session as a whole, or pieces of it, with what is new."""
        agent = agent_called(self.source.agent)
        if agent and not agent.grows_by_lines:
            if self._stamp != self.source.stamp:
                self._stamp = self.source.stamp
                yield from ((session, True) for session in _read_session(self.source))
            return
        for file in self._files.values():
            if entries := file.read():
                yield self._piece(file, entries)

    def _piece(self, file: "_File", entries: Entries) -> tuple[Session, bool]:
        if agent := agent_called(self.source.agent):
            return agent.session_of(SourceFiles(File(file.path.name, entries))), False
        records = list(file.records(entries))
        if file.kind == "wire":
            for record in records:
                self._wire.take(record)
            return self._wire.session(self._name), True
        ended = [item for item in records if isinstance(item, ExchangeRecord)]
        starts = [item for item in records if isinstance(item, SessionStart)]
        return exchange_session(starts, [*ended, *from_live(records)]), False


class _File:
    """A file that is followed, from near its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        part = part_of(path)
        self.kind: Kind | None = kind_of_log(part.folder, part.name) if part else None
        self._live = path.suffix == ".live" or ".live." in path.name
        self._follower = follower_near_end(path)

    def read(self) -> Entries:
        entries = self._follower.read()
        while self._follower.behind:
            entries += self._follower.read()
        return entries

    def records(self, entries: Entries) -> Iterator[AnyRecord]:
        for entry in entries:
            if isinstance(entry, JsonEntry):
                try:
                    yield decode(entry.raw, "live" if self._live else self.kind or "exchange", self.path.parent)
                except (ValueError, SourceError, OSError):
                    continue  # damage is for `verify` to report


def _files_of(source: Source) -> Iterable[Path]:
    path = Path(source.path)
    if source.agent is None:
        plain = [part.path for part in parts_of(path.parent, source.name) if not part.is_sealed()]
        live = [file for files in live_files_of(path.parent, source.name).values() for file in files]
        return [*plain, *live]
    return [path, *map(Path, source.others or ())]


def _read_session(source: Source) -> Iterator[Session]:
    try:
        yield session_of(source)
    except (SourceError, OSError):
        return
