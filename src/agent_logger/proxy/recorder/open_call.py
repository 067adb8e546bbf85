"""A call that has begun and not ended: what was read of it, and how much of that is in the logs."""

import hashlib
import uuid
from dataclasses import dataclass, field

import msgspec

from agent_logger.protocols.websocket import WebSocketMessages
from agent_logger.proxy.recorder.checkpoint import Open, Retained
from agent_logger.proxy.recorder.logs import LogName
from agent_logger.proxy.recorder.recorded_call import RecordedCall
from agent_logger.proxy.spool.segments import SpoolFollower


@dataclass(slots=True)
class Tunnel:
    """An upgraded connection: each message of the client begins a pair of its own."""

    client: WebSocketMessages
    server: WebSocketMessages
    pair: RecordedCall | None = None
    count: int = 0


@dataclass(slots=True)
class OpenCall:
    relay: SpoolFollower
    number: int  # of the call, among the relay's
    pair: RecordedCall
    retained: Retained
    was: Open | None = None  # in the last position: its first records are in the logs
    records: int = 0  # that it has by now
    tunnel: Tunnel | None = None
    last_entry: int = 0
    last: RecordedCall | None = None  # that a request was written of
    request_written: bool = False
    passed_over: bool = False  # a tunnel whose first bytes were let go: the rest makes no sense without them
    credentials: frozenset[int] = frozenset()
    unanswered: dict[str, tuple[LogName, int]] = field(
        default_factory=dict
    )  # its requests in the logs, by id
    blind: bool = False  # some of these could not be had when they were needed: none is put back any more

    def for_position(self) -> Open:
        """What a recorder that reads the call's frames again has to know."""
        was = self.was or Open(relay=self.relay.relay, call=self.number)
        last = self.last or self.pair
        return msgspec.structs.replace(
            was,
            records=max(self.records, was.records),
            seq=self.pair.seq or was.seq,
            log=self.pair.log or was.log,
            last_seq=last.seq or was.last_seq,
            last_log=last.log or was.last_log,
        )


def message_id(call: str, count: int, ns: int) -> str:
    """A UUIDv7 that is the same whenever it is made: after a crash a message must be recognised."""
    milliseconds = (uuid.UUID(call).int >> 80) + ns // 1_000_000
    rest = int.from_bytes(hashlib.sha256(f"{call}:{count}".encode()).digest()[:10], "big")
    high = (milliseconds & (1 << 48) - 1) << 16 | 0x7000 | rest >> 68
    return str(uuid.UUID(int=high << 64 | 2 << 62 | rest & (1 << 62) - 1))
