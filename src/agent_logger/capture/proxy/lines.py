"""One line per call, for whoever watches the proxy in a terminal."""

from collections.abc import Callable
from dataclasses import dataclass

from agent_logger.capture.proxy.call import Tap
from agent_logger.capture.proxy.frames import (
    AnyFrame,
    CallEnd,
    Refusal,
    RequestHead,
    ResponseData,
    ResponseHead,
    TunnelData,
)


@dataclass(slots=True)
class CallLine:
    """What a line says of a call that has ended."""

    method: str
    path: str  # without its query, where keys may stand
    began_ns: int  # monotonic
    status: int | None = None
    bytes: int = 0  # of the answer
    ttfb_ms: float | None = None
    total_ms: float = 0.0
    reason: str | None = None


class LinesTap:
    """Passes every frame on, and tells `show` of each call that ends."""

    def __init__(self, tap: Tap, show: Callable[[CallLine], None]) -> None:
        self._tap, self._show = tap, show
        self._open: dict[int, CallLine] = {}
        self.credential = tap.credential

    def put(self, *frames: AnyFrame) -> None:
        self._tap.put(*frames)
        for frame in frames:
            self._look(frame)

    def _look(self, frame: AnyFrame) -> None:
        if isinstance(frame, RequestHead):
            self._open[frame.call] = CallLine(_method(frame.head), _path(frame.path), frame.ns)
        elif isinstance(frame, Refusal):
            self._show(
                CallLine(_method(frame.head), "(refused)", frame.ns, frame.status, reason=frame.reason)
            )
        elif line := self._open.get(frame.call):
            self._see(frame, line)

    def _see(self, frame: AnyFrame, line: CallLine) -> None:
        since_ms = (frame.ns - line.began_ns) / 1e6
        match frame:
            case ResponseHead():
                line.status = _status(frame.head)
                line.ttfb_ms = since_ms if line.ttfb_ms is None else line.ttfb_ms
            case ResponseData() | TunnelData():
                line.bytes += len(frame.data)
            case CallEnd():
                line.total_ms, line.reason = since_ms, frame.reason
                self._show(self._open.pop(frame.call))


def _method(head: bytes) -> str:
    return head.partition(b" ")[0][:20].decode("latin-1")


def _path(path: bytes) -> str:
    return path.partition(b"?")[0].decode("latin-1")


def _status(head: bytes) -> int | None:
    code = head.split(b" ", 2)[1:2]
    return int(code[0]) if code and code[0].isdigit() else None
