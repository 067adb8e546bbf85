"""Brings a hub up to date with what is shared. The rules are those of `docs/hub-protocol.md`; files and sockets are
elsewhere."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from agent_logger.push.protocol import (
    LEVELS,
    MOST_RANGE_BYTES,
    DeviceReport,
    Form,
    HubRefusalError,
    Level,
    ObjectHead,
    Offset,
    Statement,
    Withdrawn,
)
from agent_logger.push.state import ObjectState, PendingRange, PushState, StatedSession

ATTEMPTS = 4  # to agree with the hub on a generation or a revision
FATAL = ("unauthorized", "version")  # nothing else will be taken, either
RENEWED = ("stale_generation", "conflict", "gap", "unknown_object")


class RewrittenError(Exception):
    """A file no longer begins with what was sent of it."""


class RedactedPiece(NamedTuple):
    """The next lines of a file, redacted."""

    data: bytes
    end: int  # in the file
    tail: str  # the hash of what stands before that in the file


class Content(Protocol):
    """What an object consists of that does not grow."""

    @property
    def length(self) -> int: ...
    @property
    def sha256(self) -> str: ...
    def read(self, offset: int, length: int, /) -> bytes: ...
    def close(self) -> None: ...


class SharedObject(Protocol):
    """An object that is shared."""

    @property
    def id(self) -> str: ...
    @property
    def form(self) -> Form: ...
    @property
    def rules(self) -> str: ...
    @property
    def place(self) -> tuple[str, ...]: ...
    @property
    def origin(self) -> str: ...
    @property
    def version(self) -> str:
        """What tells whether something that does not grow has changed."""

    @property
    def modified(self) -> float: ...

    def piece(self, start: int, tail: str, end: int | None, /) -> RedactedPiece | None:
        """Return what a growing file has behind `start`, up to `end` if it is given; None if that is nothing. Raises
        `RewrittenError` if the file does not have this tail there, or nothing up to `end`."""

    def content(self) -> Content: ...


class SharedSession(NamedTuple):
    """A session, the level at which it is shared, and its objects."""

    id: str
    level: Level
    project: str
    objects: Callable[[], Sequence[SharedObject]]
    version: str = ""  # what tells whether anything has changed; empty: look


class Hub(Protocol):
    """A hub, as a sender calls it. Raises `HubRefusalError`, and `OSError` if there is no answer."""

    def report(self) -> DeviceReport: ...
    def state_level(self, session: str, statement: Statement, /) -> Statement: ...
    def begin(self, name: str, generation: int, head: ObjectHead, /) -> Offset: ...
    def append(self, name: str, generation: int, offset: int, data: bytes, modified: float, /) -> Offset: ...
    def withdraw(self, session: str, /) -> Withdrawn: ...


class Sent:
    """What a push did."""

    def __init__(self) -> None:
        self.statements = self.objects = self.ranges = self.bytes = 0
        self.withdrawn: list[str] = []
        self.refused: list[tuple[str, str]] = []  # sessions of which the hub does not take something, with the reason


class Sender:
    def __init__(self, state: PushState, hub: Hub) -> None:
        self._state, self._hub = state, hub
        self.sent = Sent()

    def push(self, shared: Iterable[SharedSession]) -> None:
        """Send what the hub does not have. Lowered levels come first."""
        sessions = list(shared)
        for session in sessions:
            if self._is_lowered(session):
                self._push_session(session, only_level=True)
        for session in sessions:
            self._push_session(session)

    def withdraw(self, session: str) -> Withdrawn:
        state = self._state.session(session) or StatedSession(level="none", revision=0)
        withdrawn = self._hub.withdraw(session)
        self._state.put_session(session, replace(state, is_withdrawn=True))
        return withdrawn

    # ------------------------------------------------------------ sessions

    def _is_lowered(self, session: SharedSession) -> bool:
        state = self._state.session(session.id)
        return state is not None and (
            LEVELS.index(session.level) < LEVELS.index(state.level) or not state.is_acknowledged
        )

    def _push_session(self, session: SharedSession, *, only_level: bool = False) -> None:
        above = 0
        for attempt in range(ATTEMPTS):
            try:
                state = self._stated(session, above)
                if state and not only_level and session.level != "none":
                    self._push_objects(session, state)
                return
            except HubRefusalError as error:
                if error.refusal.error == "withdrawn":
                    self._note_withdrawn(session)
                    return
                if error.refusal.error in FATAL:
                    raise
                if error.refusal.error != "stale_revision" or attempt == ATTEMPTS - 1:
                    self.sent.refused.append((session.id, str(error)))
                    return
                above = error.refusal.revision or 0
                self._forget_level(session)

    def _note_withdrawn(self, session: SharedSession) -> None:
        state = self._state.session(session.id) or StatedSession(level="none", revision=0)
        self._state.put_session(session.id, replace(state, is_withdrawn=True))
        self.sent.withdrawn.append(session.id)

    def _forget_level(self, session: SharedSession) -> None:
        if state := self._state.session(session.id):
            self._state.put_session(session.id, replace(state, level="none", is_acknowledged=False))

    def _stated(self, session: SharedSession, above: int) -> StatedSession | None:
        """State the level, if the hub does not know it. Returns None if nothing is to be sent of the session."""
        state = self._state.session(session.id)
        if (state is None and session.level == "none") or (state and state.is_withdrawn):
            return None
        if state is None or state.level != session.level or above or state.project != session.project:
            is_same = state is not None and state.level == session.level and not above
            state = StatedSession(
                level=session.level,
                revision=state.revision if state and is_same else self._state.next_number(above),
                is_acknowledged=is_same and state is not None and state.is_acknowledged,
                project=session.project,
            )
            self._state.put_session(session.id, state)
        if not state.is_acknowledged:
            self._hub.state_level(session.id, Statement(level=state.level, revision=state.revision))
            state = replace(state, is_acknowledged=True)
            self._state.put_session(session.id, state)
            self.sent.statements += 1
        return state

    def _push_objects(self, session: SharedSession, state: StatedSession) -> None:
        if session.version and session.version == state.version:
            return
        for outgoing in session.objects():
            self._push_object(outgoing, session, state)
        if session.version:
            self._state.put_session(session.id, replace(state, version=session.version))

    # ------------------------------------------------------------ objects

    def _push_object(self, outgoing: SharedObject, session: SharedSession, state: StatedSession) -> None:
        above, renews = 0, False
        for attempt in range(ATTEMPTS):
            current = None if renews else self._continued(outgoing, session, state)
            try:
                if outgoing.form == "lines":
                    self._grow(outgoing, current or self._renewed(outgoing, session, state, above), session)
                elif current is None or not current.is_complete:
                    self._replace(outgoing, current or self._renewed(outgoing, session, state, above), session)
                return
            except RewrittenError:
                if attempt == ATTEMPTS - 1:
                    return  # it changes all the time: the next push tries again
                above, renews = 0, True
            except HubRefusalError as error:
                if error.refusal.error not in RENEWED or attempt == ATTEMPTS - 1:
                    raise
                above, renews = error.refusal.generation or 0, True

    def _continued(self, outgoing: SharedObject, session: SharedSession, state: StatedSession) -> ObjectState | None:
        """Return what is known of the object, if its newest generation can be continued."""
        current = self._state.object(outgoing.id)
        if current is None or (current.session, current.revision, current.rules) != (
            session.id,
            state.revision,
            outgoing.rules,
        ):
            return None
        return current if outgoing.form == "lines" or current.version == outgoing.version else None

    def _renewed(self, outgoing: SharedObject, session: SharedSession, state: StatedSession, above: int) -> ObjectState:
        renewed = ObjectState(
            session=session.id,
            revision=state.revision,
            rules=outgoing.rules,
            generation=self._state.next_number(above),
            version=outgoing.version,
        )
        self._state.put_object(outgoing.id, renewed)
        return renewed

    def _grow(self, outgoing: SharedObject, current: ObjectState, session: SharedSession) -> None:
        """Send what a growing file has beyond what the hub has."""
        offset = current.offset
        if current.pending:  # it may have been stored before a crash
            offset = self._begin(outgoing, current, _head(outgoing, current, session))
        for piece in self._pieces(outgoing, current):
            current = self._state.object(outgoing.id) or current
            if not current.has_begun:
                offset = self._begin(outgoing, current, _head(outgoing, current, session))
                current = replace(current, has_begun=True)
                self._state.put_object(outgoing.id, current)
            end = current.offset + len(piece.data)
            if not current.offset <= offset <= end:
                raise RewrittenError
            while offset < end:
                start = offset - current.offset
                offset = self._append(outgoing, current, offset, piece.data[start : start + MOST_RANGE_BYTES])
            if offset != end:
                raise RewrittenError
            acknowledged = replace(current, offset=end, source=piece.end, tail=piece.tail, pending=None)
            self._state.put_object(outgoing.id, acknowledged)

    def _pieces(self, outgoing: SharedObject, current: ObjectState) -> Iterator[RedactedPiece]:
        """Yield what is to be sent, each after it was noted."""
        while True:
            current = self._state.object(outgoing.id) or current
            pending = current.pending
            piece = outgoing.piece(current.source, current.tail, pending.end if pending else None)
            if piece is None:
                return
            noted = PendingRange(end=piece.end, length=len(piece.data), sha256=hashlib.sha256(piece.data).hexdigest())
            if pending and noted != pending:
                raise RewrittenError
            if not pending:
                self._state.put_object(outgoing.id, replace(current, pending=noted))
            yield piece

    def _replace(self, outgoing: SharedObject, current: ObjectState, session: SharedSession) -> None:
        """Send something that does not grow, as a whole."""
        with closing(outgoing.content()) as content:
            head = replace(_head(outgoing, current, session), length=content.length, sha256=content.sha256)
            offset = self._begin(outgoing, current, head)
            while offset < content.length:
                offset = self._append(outgoing, current, offset, content.read(offset, MOST_RANGE_BYTES))
        self._state.put_object(outgoing.id, replace(current, has_begun=True, offset=offset, is_complete=True))

    def _begin(self, outgoing: SharedObject, current: ObjectState, head: ObjectHead) -> int:
        if not current.has_begun:
            self.sent.objects += 1
        return self._hub.begin(outgoing.id, current.generation, head).offset

    def _append(self, outgoing: SharedObject, current: ObjectState, offset: int, data: bytes) -> int:
        after = self._hub.append(outgoing.id, current.generation, offset, data, outgoing.modified).offset
        self.sent.ranges += 1
        self.sent.bytes += len(data)
        if after < offset + len(data):
            raise RewrittenError
        return after


def _head(outgoing: SharedObject, current: ObjectState, session: SharedSession) -> ObjectHead:
    return ObjectHead(
        session=session.id,
        level=session.level,
        revision=current.revision,
        form=outgoing.form,
        rules=outgoing.rules,
        place=outgoing.place,
        origin=outgoing.origin,
    )


def begin_numbers(state: PushState, report: DeviceReport) -> None:
    """Continue from what the hub knows of this device, of which nothing is remembered here: above its numbers, and with
    its levels, so that one that was lowered since is stated."""
    for session, statement in report.levels.items():
        stated = StatedSession(level=statement.level, revision=statement.revision, is_acknowledged=True)
        state.put_session(session, stated)
    state.next_number(max(report.revision, report.generation))
