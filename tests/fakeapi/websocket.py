"""The server's side of a WebSocket: the `websockets` protocol without its I/O, on our connection."""

from collections.abc import AsyncIterator

from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import State
from websockets.server import ServerProtocol

from agent_logger.demo.http import HEAD_LIMIT, DemoRequest, Reply

from .calls import Call
from .channels import split

MESSAGE = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class WebSocket:
    """Text messages both ways, compressed if the client offers it."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._protocol = ServerProtocol(extensions=[ServerPerMessageDeflateFactory()], max_size=None)

    async def accept(self, request: DemoRequest) -> bool:
        self._protocol.receive_data(request.head)
        for handshake in self._protocol.events_received():
            assert isinstance(handshake, Handshake)
            response = self._protocol.accept(handshake)
            self._protocol.send_response(response)
            self.reply.status = response.status_code
        await self._flush()
        return self._open

    async def messages(self) -> AsyncIterator[bytes]:
        """Whole messages, until the client says goodbye or is gone."""
        message = bytearray()
        while self._open and (data := await self.reply.reader.read(HEAD_LIMIT)):
            self._protocol.receive_data(data)
            frames = [frame for frame in self._protocol.events_received() if isinstance(frame, Frame)]
            await self._flush()  # pongs, and the answer to a close
            for frame in frames:
                if frame.opcode in MESSAGE:
                    message += frame.data
                    if frame.fin:
                        yield bytes(message)
                        message.clear()

    @property
    def _open(self) -> bool:
        return self._protocol.state is State.OPEN

    async def send(self, message: bytes, fragment_bytes: int = 0) -> None:
        first, *rest = split(message, fragment_bytes)
        self._protocol.send_text(first, fin=not rest)
        for number, fragment in enumerate(rest, 1):
            self._protocol.send_continuation(fragment, fin=number == len(rest))
        await self._flush()

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:  # the empty one asks for a half-close; the connection is about to close whole
                self.reply.writer.write(data)
        await self.reply.writer.drain()


class WebSocketChannel:
    """One message per piece of the answer; the answer has no end of its own."""

    def __init__(self, websocket: WebSocket, call: Call, split_bytes: int) -> None:
        self.reply, self._websocket = websocket.reply, websocket
        self._call, self._split_bytes = call, split_bytes

    async def write(self, piece: bytes) -> None:
        self._call.sent += piece + b"\n"
        await self._websocket.send(piece, self._split_bytes)

    async def end(self) -> None:
        self._call.complete = True
