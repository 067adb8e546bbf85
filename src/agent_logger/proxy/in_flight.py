"""Answers while they arrive, for a viewer: they are read from the spool, which has them within 50 ms of being
forwarded. So nothing is written for this, and nothing is done without a viewer.

Only streams are followed: any other body cannot be read before its end. Masked credentials stay masked; the caller that
shows the rest hides texts that look like keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_logger.protocols.encodings import DecodeError, Decoder, decoder
from agent_logger.protocols.websocket import MessageKind, WebSocketMessages
from agent_logger.providers.answer import Answer, AnswerReader
from agent_logger.providers.ending import ends_answer
from agent_logger.providers.registry import Dialect, dialect_of
from agent_logger.proxy.call_state import is_stream
from agent_logger.proxy.head import ParsedHead, status_line
from agent_logger.proxy.recorder import checkpoint
from agent_logger.proxy.recorder.calls.open_call import message_id
from agent_logger.proxy.spool import frames
from agent_logger.proxy.spool.segments import SegmentStart, SpoolFollower, segments_of

ALL = 1 << 64
LONGEST = 8 << 20  # bytes of an answer that are followed
MOST_ENDED = 200  # calls that have ended: their records may not be in the log yet


@dataclass(slots=True)
class PartialAnswer:
    """A call whose answer is expected, and the answer so far."""

    dialect: Dialect
    reader: AnswerReader
    undo: Decoder | None = None
    size: int = 0  # bytes that were received
    ended: Answer | None = None  # all of it, when nothing more comes

    def take(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > LONGEST:
            return
        try:
            self.reader.feed(self.undo.feed(data) if self.undo else data)
        except DecodeError:
            self.size = LONGEST

    def end(self, *, framed: bool) -> None:
        self.ended = self.reader.finish(framed=framed)

    def answer(self) -> Answer:
        return self.ended or self.reader.partial_answer()


@dataclass(slots=True)
class OpenTunnel:
    """An upgraded connection, on which each message of the client is a call."""

    id: str
    began_ns: int
    dialect: Dialect
    client: WebSocketMessages
    server: WebSocketMessages
    count: int = 0
    current: str = ""  # the call that is being answered

    def next(self, ns: int) -> str:
        self.count += 1
        self.current = message_id(self.id, self.count, ns - self.began_ns)
        return self.current


class InFlight:
    """The calls that pass the proxy of a log folder. `poll` it; nothing happens in between."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder  # the folder of the spool
        self._followers: dict[str, SpoolFollower] = {}
        self._numbers: dict[tuple[str, int], str] = {}  # ids of calls, by relay and number
        self._answers: dict[str, PartialAnswer] = {}  # answers by the id of the call
        self._tunnels: dict[tuple[str, int], OpenTunnel] = {}
        self._ended: list[str] = []

    def poll(self) -> None:
        """Read the new entries. Raises `OSError`."""
        there = segments_of(self._folder) if self._folder.is_dir() else {}
        self._look(there)
        for relay, follower in self._followers.items():
            follower.fill()
            while follower.is_waiting:
                for read in follower.take(ALL):
                    for frame in read.frames:
                        self._take(relay, frame)
                follower.fill()

    def answer(self, call: str) -> tuple[Dialect, Answer] | None:
        """The answer of a call so far; `None` if nothing has come, or it is not an answer of a model."""
        coming = self._answers.get(call)
        return (coming.dialect, coming.answer()) if coming and coming.size else None

    def close(self) -> None:
        for follower in self._followers.values():
            follower.close()

    def _look(self, there: dict[str, list[int]]) -> None:
        """Follow the relays that exist now, and drop those that are gone, or that we read too slowly: their next
        segment was removed already."""
        for relay in list(self._followers):
            if relay not in there or there[relay][0] > self._followers[relay].segment + 1:
                self._followers.pop(relay).close()
                self._forget(relay)
        if new := there.keys() - self._followers.keys():
            starts = self._starts()
            for relay in new:
                start = starts.get(relay, SegmentStart(segment=there[relay][0]))
                self._followers[relay] = SpoolFollower(self._folder, relay, start)

    def _forget(self, relay: str) -> None:
        """Forget all open calls of a relay."""
        for key in [key for key in self._numbers if key[0] == relay]:
            self._answers.pop(self._numbers.pop(key), None)
        for key in [key for key in self._tunnels if key[0] == relay]:
            self._answers.pop(self._tunnels.pop(key).current, None)

    def _starts(self) -> dict[str, SegmentStart]:
        try:
            return checkpoint.load(self._folder).starts(self._folder)
        except ValueError:
            return {}

    def _take(self, relay: str, frame: frames.AnyFrame) -> None:
        if isinstance(frame, frames.RequestHeadFrame):
            self._begin(relay, frame)
            return
        if isinstance(frame, frames.Dropped) and not frame.call:
            self._forget(relay)  # it is unknown whose frames they were, and which of these calls will have an end
            return
        if tunnel := self._tunnels.get((relay, frame.call)):
            self._tunnelled(relay, frame, tunnel)
            return
        coming = self._answers.get(self._numbers.get((relay, frame.call), ""))
        if coming is None:
            return
        match frame:
            case frames.ResponseHead():
                self._head(relay, frame, coming)
            case frames.ResponseData():
                coming.take(frame.data)
            case frames.CallEnd():
                self._end(self._numbers.pop((relay, frame.call)), framed=frame.reason is None)

    def _begin(self, relay: str, frame: frames.RequestHeadFrame) -> None:
        dialect = dialect_of(frame.provider, frame.path.decode("latin-1"))
        if dialect and frame.websocket:
            both = WebSocketMessages(masked=True), WebSocketMessages(masked=False)
            self._tunnels[relay, frame.call] = OpenTunnel(frame.id, frame.ns, dialect, *both)
        elif dialect:
            self._numbers[relay, frame.call] = frame.id
            self._answers[frame.id] = PartialAnswer(dialect, dialect.reader())

    def _tunnelled(self, relay: str, frame: frames.AnyFrame, tunnel: OpenTunnel) -> None:
        match frame:
            case frames.ResponseHead():
                extensions = ParsedHead(frame.head).value("sec-websocket-extensions")
                tunnel.client = WebSocketMessages(extensions=extensions, masked=True)
                tunnel.server = WebSocketMessages(extensions=extensions, masked=False)
            case frames.TunnelData(from_client=True):
                for _ in _messages_in(tunnel.client, frame.data):
                    call = tunnel.next(frame.ns)
                    self._answers[call] = PartialAnswer(tunnel.dialect, tunnel.dialect.reader(messages=True))
            case frames.TunnelData():
                for data in _messages_in(tunnel.server, frame.data):
                    if coming := self._answers.get(tunnel.current):
                        coming.take(data)
                    if tunnel.current and ends_answer(data):
                        self._end(tunnel.current, framed=True)
                        tunnel.current = ""
            case frames.CallEnd() | frames.Dropped():  # with a gap, nobody knows which message is which
                del self._tunnels[relay, frame.call]

    def _head(self, relay: str, frame: frames.ResponseHead, coming: PartialAnswer) -> None:
        head = ParsedHead(frame.head)
        if (status_line(head.start).status or 0) < 200:
            return  # another one follows
        if is_stream(head.value("content-type")):
            coming.undo = decoder(head.value("content-encoding"))
        else:
            del self._answers[self._numbers.pop((relay, frame.call))]

    def _end(self, call: str, *, framed: bool) -> None:
        if coming := self._answers.get(call):
            coming.end(framed=framed)
        self._ended.append(call)
        if len(self._ended) > MOST_ENDED:
            self._answers.pop(self._ended.pop(0), None)


def _messages_in(messages: WebSocketMessages, data: bytes) -> Iterator[bytes]:
    """Yield the messages that carry data; one that could not be inflated is empty, but still counts."""
    for message in messages.feed(data):
        if message.kind not in (MessageKind.PING, MessageKind.PONG, MessageKind.CLOSE):
            yield b"" if message.kind is MessageKind.DEFLATED else message.data
