"""A call that has begun and not ended: its pieces so far, and which of its records are in the logs."""

import hashlib
import uuid
from dataclasses import dataclass, field

import msgspec

from agent_logger.protocols.websocket import WebSocketMessages
from agent_logger.proxy.recorder.calls.recorded_call import RecordedCall
from agent_logger.proxy.recorder.checkpoint import OpenCallPosition, Retained
from agent_logger.proxy.recorder.logs import LogName
from agent_logger.proxy.spool.segments import SpoolFollower


@dataclass(slots=True)
class Tunnel:
    """An upgraded connection: each message of the client begins a call of its own."""

    client: WebSocketMessages
    server: WebSocketMessages
    call: RecordedCall | None = None
    count: int = 0


@dataclass(slots=True)
class OpenCall:
    relay: SpoolFollower
    number: int  # the number of the call in its relay
    call: RecordedCall
    retained: Retained
    was: OpenCallPosition | None = None  # the call in the last checkpoint: its first records are in the logs
    records: int = 0  # how many records it has by now
    tunnel: Tunnel | None = None
    last_entry: int = 0
    last: RecordedCall | None = None  # the last call whose request was written
    request_written: bool = False
    passed_over: bool = False  # a tunnel whose first bytes were let go: the rest cannot be read without them
    credentials: frozenset[int] = frozenset()
    # Requests in the logs that have no response yet, by id.
    unanswered: dict[str, tuple[LogName, int]] = field(default_factory=dict)
    blind: bool = False  # a credential was not available when it was needed: none is put back any more

    def for_position(self) -> OpenCallPosition:
        """Return the facts for a recorder that reads the call's frames again."""
        was = self.was or OpenCallPosition(relay=self.relay.relay, call=self.number)
        last = self.last or self.call
        return msgspec.structs.replace(
            was,
            records=max(self.records, was.records),
            seq=self.call.seq or was.seq,
            log=self.call.log or was.log,
            last_seq=last.seq or was.last_seq,
            last_log=last.log or was.last_log,
        )


def message_id(call: str, count: int, ns: int) -> str:
    """A UUIDv7 that is the same whenever it is made: after a crash a message must be recognised."""
    milliseconds = (uuid.UUID(call).int >> 80) + ns // 1_000_000
    rest = int.from_bytes(hashlib.sha256(f"{call}:{count}".encode()).digest()[:10], "big")
    high = (milliseconds & (1 << 48) - 1) << 16 | 0x7000 | rest >> 68
    return str(uuid.UUID(int=high << 64 | 2 << 62 | rest & (1 << 62) - 1))
