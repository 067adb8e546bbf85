"""TLS with a client that believes that we are its host.

`asyncio` has TLS of its own, but a connection there cannot be closed in one direction only, does not tell a clean end
from a cut, and does not say how a handshake failed.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Literal

_RECORD_BYTES = 16 << 10  # the most that one TLS record holds
# A client that closes the connection so soon after the handshake, and asks for nothing, did not like our certificate:
# many verify it only then.
DECISION_SECONDS = 2.0
_DISTRUST = (
    "UNKNOWN_CA",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "UNSUPPORTED_CERTIFICATE",
    "ACCESS_DENIED",
)

# `left`: the client closed the connection on seeing our certificate, and did not say why.
Outcome = Literal["opened", "not_trusted", "left", "no_handshake"]


class TlsConnection(asyncio.Protocol):
    """The protocol of a client's connection, and the transport of who speaks with the client inside of it."""

    def __init__(
        self,
        transport: asyncio.Transport,
        context: ssl.SSLContext,
        make_inner: Callable[[], asyncio.Protocol],
        on_outcome: Callable[[Outcome], None],
        on_close: Callable[[], None],
    ) -> None:
        """Take over the transport. `make_inner` is called when the handshake is done; `on_outcome` once, when it is
        known whether the client accepts us."""
        self._transport, self._make_inner, self._on_outcome, self._on_close = (
            transport, make_inner, on_outcome, on_close,
        )  # fmt: skip
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._inner: asyncio.Protocol | None = None
        self._outcome: Outcome | None = None
        self._began = asyncio.get_running_loop().time()
        self._has_answered = False  # our certificate is on its way
        self._input_has_ended = self._output_has_ended = self._is_closing = self._stays_open = False
        self.get_extra_info, self.get_write_buffer_size = transport.get_extra_info, transport.get_write_buffer_size
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        transport.set_protocol(self)

    # ---- the client's side

    def data_received(self, data: bytes) -> None:
        if self._is_closing:
            return
        self._incoming.write(data)
        if self._inner is None and not self._shake_hands():
            return
        self._read()

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            has_answered = self._has_answered
            self._flush()  # our alert
            self._decide("not_trusted" if has_answered and _is_distrust(error) else "no_handshake")
            self.cut()
            return False
        self._flush()
        self._began = asyncio.get_running_loop().time()
        self._inner = self._make_inner()
        self._inner.connection_made(self)  # type: ignore[arg-type]
        return True

    def _read(self) -> None:
        pieces: list[bytes] = []
        has_ended = is_broken = False
        try:
            while piece := self._tls.read(_RECORD_BYTES):
                pieces.append(piece)
            has_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            is_broken = True
            if _is_distrust(error) and not pieces:
                self._decide("not_trusted")
        if self._outgoing.pending:
            self._flush()
        if pieces and self._inner is not None:
            self._decide("opened")
            self._inner.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_broken:
            self.abort()
        elif has_ended:
            self.eof_received()

    def eof_received(self) -> bool:
        """Note the end of what the client sends, whether TLS or TCP says so."""
        if self._inner is None or self._is_closing:
            return False
        if not self._input_has_ended:
            self._input_has_ended = True
            self._decide_at_end()
            self._stays_open = bool(self._inner.eof_received()) and not self._is_closing
            if not self._stays_open:
                self.close()
        return self._stays_open

    def connection_lost(self, exc: Exception | None) -> None:
        # Before the handshake it ends because of what the client saw, unless it saw nothing.
        if self._inner is None:
            self._decide("left" if self._has_answered else "no_handshake")
        else:
            self._decide_at_end()
            self._inner.connection_lost(exc)
        self._is_closing = True
        self._on_close()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def _decide_at_end(self) -> None:
        soon = asyncio.get_running_loop().time() - self._began < DECISION_SECONDS
        self._decide("left" if soon and not self._is_closing else "opened")

    def _decide(self, outcome: Outcome) -> None:
        if self._outcome is None:
            self._outcome = outcome
            self._on_outcome(outcome)

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._has_answered = True
            self._transport.write(data)

    # ---- a transport

    def write(self, data: bytes) -> None:
        if self._is_closing or self._output_has_ended or not data:
            return
        written = self._tls.write(data)
        if written < len(data):
            view = memoryview(data)
            while written < len(data):
                written += self._tls.write(view[written:])
        self._transport.write(self._outgoing.read())

    def write_eof(self) -> None:
        self._say_end()
        if not self._transport.is_closing():
            self._transport.write_eof()

    def can_write_eof(self) -> bool:
        return True

    def _say_end(self) -> None:
        if self._output_has_ended or self._inner is None:
            return
        self._output_has_ended = True
        with contextlib.suppress(ssl.SSLError):  # the client has not said so yet
            self._tls.unwrap()
        self._flush()

    def close(self) -> None:
        if not self._is_closing:
            self._say_end()
            self.cut()

    def cut(self) -> None:
        """Close without saying that this is the end, as somebody does who is cut off."""
        self._is_closing = True
        self._transport.close()

    def abort(self) -> None:
        self._is_closing = True
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    # ---- while the hands are shaken

    def hurry(self, before: float) -> None:
        if self._inner is None and self._began < before:
            self.abort()

    def stop(self, *, now: bool) -> None:
        if now or self._inner is None:
            self.abort()


def _is_distrust(error: ssl.SSLError) -> bool:
    return any(word in (error.reason or "") for word in _DISTRUST)
